"""Which native functions serve convolutions."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    OUT,
    Binding,
    Call,
    In,
    Launch,
    Scratch,
    Word,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    given,
    integer,
    integers,
    only_f32,
    read_steps,
)
from edgewise.kernels.catalog.epilogue import (
    LANES,
    cut,
    epilogue_words,
    scratch_bytes,
)
from edgewise.kernels.catalog.matmul import ONE_MATRIX, ROWS_APART, product
from edgewise.kernels.catalog.strides import pitch

# A row of taps is one line up to here: longer ones would push a panel out of the cache.
LONGEST_LINE = 256
# Tall windows of short rows are gathered, once for so many panels of outputs or more:
# a product takes its time to begin for each row of taps and each panel.
SHORT_LINE, TALL, MANY_PANELS = 6, 5, 4
LONGEST_ROW = 256


@kernel("conv", "stem_f32", strided=range(OUT, 0))
@only_f32
def stem(call: Call) -> Binding | None:
    """Few channels: windows are gathered into rows, which are multiplied."""
    outputs, x = call.outputs[0].dims[-1], given(call, 0).dims
    kernel_ = integers(call, "kernel")
    k, plain = math.prod(kernel_) * x[3], integers(call, "dilations")[1] == 1
    panels = -(-outputs // LANES)
    short = kernel_[1] * x[3] <= SHORT_LINE and k <= LONGEST_ROW
    pays = short and kernel_[0] >= TALL and panels >= MANY_PANELS
    if integer(call, "groups") > 1 or not plain or not pays:
        return None
    epilogue = epilogue_words(call, outputs)
    pixels = math.prod(call.outputs[0].dims[:-1])
    if epilogue is None or not pixels * outputs * k:
        return None
    block, chunk = cut(pixels, panels, k)
    # What is written beyond a row is written again with the next, but for the last.
    scratch = scratch_bytes(block, 1, 4 * (block * k + LANES))
    work = (pixels, block, chunk, Scratch(), scratch, scratch_bytes(block, 1), 0)
    words = (*epilogue, *window_words(call), 1, In(1), k, *work)
    tasks = blocks(pixels, block) * blocks(panels, chunk)
    return Binding((Launch("stem_f32", words, tasks),), (), scratch)


@kernel("conv", "conv_f32", "product_f32", strided=ROWS_APART)
@only_f32
def conv(call: Call) -> Binding | None:
    """Rows of the product are output pixels, its reduction taps and channels."""
    groups, outputs = integer(call, "groups"), call.outputs[0].dims[-1]
    epilogue = epilogue_words(call, outputs // groups)
    if epilogue is None:
        return None
    x, kernel_ = given(call, 0).dims, integers(call, "kernel")
    pixels = math.prod(call.outputs[0].dims[:-1])
    if is_product(call):
        step, shape = pitch(x, read_steps(call, 0)), (pixels, x[3], outputs)
        if step is None:
            return None
        return product(shape, step, 1, In(1), (*epilogue, *ONE_MATRIX))
    if any(call.reads):
        return None
    if not pixels * outputs:
        return Binding(())
    inputs, taps = x[3] // groups, math.prod(kernel_)
    splits = splits_of(call, inputs)
    panels = -(-(outputs // groups) // LANES)
    block, chunk = cut(pixels * groups, panels, taps * inputs)
    scratch = scratch_bytes(block, taps, zeros := vectors(splits * inputs))
    work = (pixels, block, chunk, Scratch(), scratch, scratch - zeros, 0)
    words = (*epilogue, *window_words(call), groups, In(1), splits, *work)
    tasks = blocks(pixels, block) * groups * blocks(panels, chunk)
    return Binding((Launch("conv_f32", words, tasks),), (), scratch)


def splits_of(call: Call, inputs: int) -> int:
    """Pieces, of ``inputs`` words, of a row of taps that is one inside the image."""
    row, across = integers(call, "kernel")[1] * inputs, integers(call, "dilations")[1]
    joined = integer(call, "groups") == 1 and across == 1
    return integers(call, "kernel")[1] if joined and row <= LONGEST_LINE else 1


def is_product(call: Call) -> bool:
    """Whether every output pixel reads the one input pixel below it."""
    single = integers(call, "kernel") == integers(call, "strides") == (1, 1)
    return single and integer(call, "groups") == 1 and not any(integers(call, "pads"))


def window_words(call: Call) -> tuple[Word, ...]:
    """The image, and how windows lie over it."""
    (_, height, width, channels), target = given(call, 0).dims, call.outputs[0].dims
    return (
        In(0),
        height,
        width,
        channels,
        *target[1:3],
        *integers(call, "kernel"),
        *integers(call, "strides"),
        *integers(call, "pads")[:2],
        *integers(call, "dilations"),
    )


def vectors(count: int) -> int:
    """Bytes of whole vectors that hold ``count`` numbers."""
    return max(-(-count // LANES), 1) * 64
