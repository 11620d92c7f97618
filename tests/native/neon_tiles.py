"""Tiles of byte products of an ARM level as an object: ``neon_tiles.py LEVEL OUT``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from edgewise.kernels.levels import level_named
from edgewise.kernels.native import emit
from edgewise.kernels.native.abi import OK, i64
from edgewise.kernels.native.dot import NARROW, PAIRED, SIGNED, UNSIGNED
from edgewise.kernels.native.memory import load_i32, store_i32
from edgewise.kernels.native.neon import moved
from edgewise.kernels.native.tile import Sums, make_products, make_tile

KINDS = {"i8": SIGNED, "u8": UNSIGNED, "narrow": NARROW, "paired": PAIRED}


def rows_of(rows: int, kind: Sums) -> Any:
    """Some rows times a panel.  Words: K, addresses of rows, panel, six sums."""
    products = make_products(rows, 6, "", kind)

    def kernel(args, begin, end, worker):  # type: ignore[no-untyped-def]
        at = args[3]
        sums = (
            load_i32(at),
            load_i32(at + 64),
            load_i32(at + 128),
            load_i32(at + 192),
            load_i32(at + 256),
            load_i32(at + 320),
        )
        sums = products(args[0], args[1], args[2], sums, (0, 0))
        store_i32(at, sums[0])
        store_i32(at + 64, sums[1])
        store_i32(at + 128, sums[2])
        store_i32(at + 192, sums[3])
        store_i32(at + 256, sums[4])
        store_i32(at + 320, sums[5])
        return OK

    return kernel


def one_row(kind: Sums) -> Any:
    """A row times four panels."""
    tile = make_tile(1, 4, kind)

    def kernel(args, begin, end, worker):  # type: ignore[no-untyped-def]
        at, row = args[3], i64(args[1])[0]
        sums = (
            load_i32(at),
            load_i32(at + 64),
            load_i32(at + 128),
            load_i32(at + 192),
        )
        sums = tile(args[0], (row,), args[2], 64 * args[0], sums)
        store_i32(at, sums[0])
        store_i32(at + 64, sums[1])
        store_i32(at + 128, sums[2])
        store_i32(at + 192, sums[3])
        return OK

    return kernel


def taken_off(args, begin, end, worker):  # type: ignore[no-untyped-def]
    """What is taken off unsigned bytes."""
    i64(args[0])[0] = moved()
    return OK


def main(level: str, output: str) -> None:
    """Write the object."""
    emit.retarget(level_named(level))
    exports: dict[str, object] = {"taken_off": taken_off}
    for name, kind in KINDS.items():
        exports[f"{name}_one"] = one_row(kind)
        for rows in (kind.rows, kind.rows - 1):
            exports[f"{name}_{rows}"] = rows_of(rows, kind)
    Path(output).write_bytes(emit.emit(exports))


if __name__ == "__main__":
    main(*sys.argv[1:])
