"""Instructions of the innermost loops of products on ARM, as a Markdown table.

    python benchmarks/arm_tiles.py

No board is asked: the loop over four steps of a tile is compiled and taken apart by
``aarch64-linux-gnu-objdump``.  Of its instructions those count as multiplying that do,
and as moved those that keep registers in memory.
"""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from edgewise.kernels.levels import level_named, levels_of

TARGET = "aarch64-linux"
STEPS, LANES = 4, 16
MULTIPLIES = re.compile(r"fmla|smlal2?|smull2?|sdot|sudot|usdot|smmla|usmmla")
LINE = re.compile(r"\s+([0-9a-f]+):\s+[0-9a-f]+\s+(\S+)\s*(.*)")
BACK = re.compile(r"b\.\w+\s.*?\b([0-9a-f]+) <")


class Tile(NamedTuple):
    """What is compiled: rows by a panel, over numbers of ``bytes_`` each."""

    name: str
    rows: int
    bytes_: int


TILES = (
    Tile("REALS", 6, 4),
    Tile("SIGNED", 6, 1),
    Tile("UNSIGNED", 6, 1),
    Tile("NARROW", 6, 1),
    Tile("PAIRED", 5, 1),
)


def compiled(level: str) -> bytes:
    """An object with the tiles, in a process of its own."""
    from edgewise.kernels.native import dot, emit, memory, tile
    from edgewise.kernels.native.abi import OK, i64

    def kernel(shape: Tile) -> Any:
        kind = tile.REALS if shape.name == "REALS" else getattr(dot, shape.name)
        products = tile.make_products(shape.rows, shape.rows, "", kind)
        zeros, rows = tile.make_zeros(shape.rows, kind.vector), shape.rows
        write = memory.store if shape.name == "REALS" else memory.store_i32

        def run(args, _begin, _end, _worker):  # type: ignore[no-untyped-def]
            sums = products(args[0], args[1], args[2], zeros(), (0, 0))
            total = sums[0]
            for row in range(rows):
                total = total + sums[row]
            write(i64(args[3])[0], total)
            return OK

        return run

    emit.retarget(level_named(level))
    return emit.emit({shape.name: kernel(shape) for shape in TILES})


def loops(data: bytes) -> dict[str, list[str]]:
    """Of each function the instructions of its longest innermost loop."""
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        Path(file.name).write_bytes(data)
        command = ["aarch64-linux-gnu-objdump", "-d", file.name]
        text = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, list[str]] = {}
    for part in re.split(r"\n(?=[0-9a-f]+ <)", text.stdout):
        name = re.match(r"[0-9a-f]+ <(\w+)>:", part)
        lines = [(int(a, 16), f"{b} {c}") for a, b, c in LINE.findall(part)]
        for at, line in lines:
            back = BACK.match(line)
            if name and back and (start := int(back[1], 16)) <= at:
                loop = [text for place, text in lines if start <= place <= at]
                found[name[1]] = max(found.get(name[1], []), loop, key=len)
    return found


def main() -> None:
    """Print the table."""
    print("| level | tile | products | instructions | multiply | spills | a product |")
    print("|---|---|--:|--:|--:|--:|--:|")
    spawn = multiprocessing.get_context("spawn")
    for level in reversed(levels_of(TARGET)):
        with ProcessPoolExecutor(1, spawn) as pool:
            parts = loops(pool.submit(compiled, level.name).result())
        for shape in TILES:
            loop = parts[shape.name]
            names = Counter(line.split()[0] for line in loop)
            multiply = sum(n for name, n in names.items() if MULTIPLIES.fullmatch(name))
            spills = sum("[sp" in line for line in loop)
            products = shape.rows * LANES * STEPS * 4 // shape.bytes_
            cells = (products, len(loop), multiply, spills)
            text = " | ".join(map(str, cells))
            what = f"{shape.name.lower()}, {shape.rows} rows"
            each = len(loop) / products
            print(f"| {level.name} | {what} | {text} | {each:.3f} |")


if __name__ == "__main__":
    main()
