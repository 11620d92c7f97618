"""Words of the epilogue that ends products and convolutions, and how work is cut."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import Call, Out, Word, f32_word
from edgewise.kernels.catalog.calls import has, optional, real, word, write_steps
from edgewise.kernels.catalog.strides import pitch
from edgewise.ops.epilogue import code

LANES = 16
EPILOGUE_WORDS = 16
REAL: tuple[Word, ...] = (0,) * 6  # the words that only sums of bytes have
ROWS, BLOCK_ROWS = 6, 96
# Multiply-adds of a task: some three microseconds of one core, far above what it costs
# to hand a task over; and no more tasks than keep the largest machines busy.
TASK_MACS, MOST_TASKS = 200_000, 64
# Bytes of scratch before the table: sums and heads, as in native/product.py.
BEFORE_TABLE = BLOCK_ROWS * 64 + BLOCK_ROWS // ROWS * 8


def epilogue_words(call: Call, columns: int) -> tuple[Word, ...] | None:
    """The words; ``None`` where the residual broadcasts other than by whole rows.

    Rows of the output may lie apart if there is no residual, which has to lie alike.
    """
    target = call.outputs[0].dims
    period, step = _residual_rows(call, target), pitch(target, write_steps(call))
    if period is None or step is None or (step != target[-1] and has(call, 4)):
        return None
    addresses = (optional(call, 2), optional(call, 3), optional(call, 4))
    activation = int(code(word(call, "activation")))
    parameters = f32_word(real(call, "alpha")), f32_word(real(call, "beta"))
    return (Out(0), step, columns, *addresses, period, activation, *parameters, *REAL)


def plain_words(columns: int) -> tuple[Word, ...]:
    """The words of an epilogue that stores sums as they are."""
    return (Out(0), columns, columns, 0, 0, 0, 1, int(code("none")), 0, 0, *REAL)


def _residual_rows(call: Call, target: tuple[int, ...]) -> int | None:
    """After how many rows the residual repeats."""
    if not has(call, 4):
        return 1
    residual = call.inputs[4]
    dims = residual.dims if residual else ()
    while dims and dims[0] == 1 and len(dims) > 1:
        dims = dims[1:]
    if dims != target[len(target) - len(dims) :]:
        return None
    return math.prod(dims[:-1])


def cut(rows: int, panels: int, k: int, tile: int = ROWS) -> tuple[int, int]:
    """Rows a task and panels a task, for ``rows`` rows of one matrix or image.

    A task has at most as many tiles as ``ROWS`` rows leave, if they have fewer too.
    """
    blocks = max(-(-rows // (BLOCK_ROWS // ROWS * tile)), 1)
    block = max(-(-rows // (blocks * tile)) * tile, tile)
    want = min(max(rows * panels * LANES * k // TASK_MACS, 1), MOST_TASKS)
    chunks = min(-(-want // blocks), max(panels, 1))
    return block, max(-(-panels // chunks), 1)


def scratch_bytes(rows: int, entries: int, more: int = 0, tile: int = ROWS) -> int:
    """Scratch of a worker: ``entries`` addresses for each row, and ``more`` bytes."""
    table = -(-rows // tile) * ROWS * 8 * entries
    return -(-(BEFORE_TABLE + table + more) // 64) * 64
