"""Which native functions serve attention."""

from __future__ import annotations

from typing import cast

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Scratch,
    Temp,
    Word,
    blocks,
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import given, has, integer, only_f32, optional, real
from edgewise.kernels.catalog.strides import broadcast, contiguous
from edgewise.ops.attention import Attention

ROWS, LANES = 6, 16
# Multiply-adds of a task, some seven microseconds: its queries pass over the panels of
# a head, which must pay for reading those from a farther cache.
TASK_MACS = 400_000
SCORES = 128 * 1024  # bytes of scores that stay in the second cache, beside panels
PACKED_KEYS = 64  # keys that a task packs


def _steps(form: str, dims: tuple[int, ...]) -> tuple[dict[str, int], int]:
    """Elements along each lettered axis, and those before the index of a digit."""
    steps = dict(zip(form, contiguous(dims), strict=True))
    before = sum(steps.pop(c) * int(c) for c in form if c.isdigit())
    return steps, before


def _rows(queries: int, matrices: int, macs: int, width: int) -> int:
    """Queries a task: enough work for one, few enough that scores stay near."""
    want = -(-TASK_MACS // max(macs, 1))
    most = max(SCORES // width // ROWS, 1) * ROWS
    rows = min(max(-(-want // ROWS) * ROWS, 2 * ROWS), most)
    del matrices
    pieces = blocks(queries, rows)
    return -(-queries // (pieces * ROWS)) * ROWS


@kernel("attention", "attention_pack_f32", "attention_f32")
@only_f32
def attention(call: Call) -> Binding | None:
    """Heads whose numbers lie in one piece, wherever they lie."""
    op = cast("Attention", call.op)
    forms = op.forms()
    if any(forms[place][-1] not in "de" for place in (0, 2, 3)):
        return None
    types = (*(given(call, slot) for slot in range(3)), call.outputs[0])
    found = [_steps(form, type_.dims) for form, type_ in zip(forms, types, strict=True)]
    sizes: dict[str, int] = {}
    for form, type_ in zip(forms, types, strict=True):
        sizes |= dict(zip(form, type_.dims, strict=True))
    few = given(call, 1).dims[forms[1].index("h")]
    n, h, queries, keys, d, e = (sizes[letter] for letter in "nhqkde")
    if not n * h * queries * e:
        return Binding(())
    (q, q_at), (k, k_at), (v, v_at), (y, _) = found
    padded = -(-keys // LANES) * LANES
    # A row more than a power of two, lest all rows meet in the same sets of a cache.
    width = 4 * padded + 64
    rows = _rows(queries, n * h, keys * (d + e), width)
    pieces = blocks(padded, PACKED_KEYS)
    pack: tuple[Word, ...] = (
        *(In(1, 4 * k_at), In(2, 4 * v_at), Temp(0), Temp(1)),
        *(keys, d, e, few, PACKED_KEYS, pieces),
        *(steps[axis] for steps in (k, v) for axis in "nkh"),
        k["d"],
    )
    mask: tuple[int, ...] = (0,) * 4
    if has(call, 3):
        mask = broadcast(given(call, 3).dims, (n, h, queries, keys))
    words: tuple[Word, ...] = (
        *(In(0, 4 * q_at), Temp(0), Temp(1), Out(0), optional(call, 3)),
        *(queries, keys, d, e, h, h // few, rows, blocks(queries, rows)),
        *(steps[axis] for steps in (q, y) for axis in "nqh"),
        *(mask[0], mask[2], mask[1], mask[3]),
        *(f32_word(real(call, "scale")), Scratch(), rows * width, width),
        *(int(op.causal), integer(call, "start"), int(op.guarded)),
    )
    panels = (n * few * padded * d, n * few * keys * (-(-e // LANES) * LANES))
    launches = (
        Launch("attention_pack_f32", pack, n * few * pieces),
        Launch("attention_f32", words, n * h * blocks(queries, rows)),
    )
    temps = tuple(max(-(-4 * size // 64) * 64, 64) for size in panels)
    return Binding(launches, temps, rows * width)
