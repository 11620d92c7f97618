"""Which native functions serve products of matrices."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    OUT,
    Binding,
    Call,
    In,
    Launch,
    Scratch,
    Temp,
    Word,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import given, only_f32, read_steps
from edgewise.kernels.catalog.epilogue import (
    LANES,
    ROWS,
    cut,
    epilogue_words,
    plain_words,
    scratch_bytes,
)
from edgewise.kernels.catalog.pack import panels_launch
from edgewise.kernels.catalog.strides import broadcast, pitch

LINE = 256  # reduction indices of a panel that stay in the nearest cache
ONE_MATRIX: tuple[Word, ...] = (0,)
ROWS_APART = range(OUT, 1)  # of the output and of x


@kernel("linear", "product_f32", strided=ROWS_APART)
@only_f32
def linear(call: Call) -> Binding | None:
    """All axes of x but the last are rows."""
    return by_rows(call, "product_f32")


def by_rows(call: Call, symbol: str, more: int = 0) -> Binding | None:
    """Vectors along the last axis of x, by the panels of input 1.

    The last ``more`` bytes of a worker's scratch are for the function itself.
    """
    x, columns = given(call, 0).dims, call.outputs[0].dims[-1]
    epilogue, step = epilogue_words(call, columns), pitch(x, read_steps(call, 0))
    if epilogue is None or step is None:
        return None
    shape, tail = (math.prod(x[:-1]), x[-1], columns), (*epilogue, *ONE_MATRIX)
    return product(shape, step, 1, In(1), tail, symbol, more=more)


@kernel("matmul", "product_f32", "pack_panels_f32")
@only_f32
def matmul(call: Call) -> Binding:
    """The right factor is packed first: all its matrices, each once."""
    a, b = given(call, 0).dims, given(call, 1).dims
    batch, columns = call.outputs[0].dims[:-2], b[-1]
    rows, k = a[-2:]
    count, panels = math.prod(b[:-2]), -(-columns // LANES)
    if not math.prod(call.outputs[0].dims):
        return Binding(())
    pack = panels_launch(
        In(1),
        Temp(0),
        shape=(k, columns, 1),
        matrices=((count,), (k * columns,)),
        reduction=((k,), (columns,)),
    )
    if count == 1:
        # One right factor: the rows of all left ones are rows of one matrix.
        rows, batch = rows * math.prod(batch), ()
    a_steps = (step * rows * k for step in broadcast(a[:-2], batch)) if batch else ()
    width = panels * k * LANES
    b_steps = (step * width for step in broadcast(b[:-2], batch)) if batch else ()
    words = (*plain_words(columns), len(batch), *batch, *a_steps, *b_steps)
    made = product((rows, k, columns), k, math.prod(batch), Temp(0), words)
    temp = max(count * width * 4, 64)
    return made._replace(launches=(pack, *made.launches), temps=(temp,))


def lines(k: int) -> tuple[int, int]:
    """In how many lines a reduction is cut, and their length."""
    pieces = max(-(-k // LINE), 1)
    return pieces, max(-(-k // (pieces * 4)) * 4, 1)


def product(
    shape: tuple[int, int, int],
    step: int,
    matrices: int,
    panels: Word,
    tail: tuple[Word, ...],
    symbol: str = "product_f32",
    tile: int = ROWS,
    more: int = 0,
) -> Binding:
    """Rows, ``step`` elements apart, of ``matrices`` matrices by panels.

    ``tail`` is epilogue and batch; elements are words of four bytes; ``tile``: rows of
    the largest tile; ``more`` bytes of scratch come behind those of the product.
    """
    rows, k, columns = shape
    if not rows * columns * matrices:
        return Binding(())
    count, (pieces, line) = -(-columns // LANES), lines(k)
    block, chunk = cut(rows * matrices, count, k, tile)
    block = min(block, -(-rows // tile) * tile)
    scratch = scratch_bytes(block, pieces, more, tile=tile)
    words = (In(0), step, panels, rows, k, line, chunk, block, Scratch(), scratch)
    tasks = matrices * blocks(rows, block) * blocks(count, chunk)
    return Binding((Launch(symbol, (*words, *tail), tasks),), (), scratch)
