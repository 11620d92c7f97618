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
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    given,
    integer,
    integers,
    only_f32,
)
from edgewise.kernels.catalog.epilogue import (
    LANES,
    cut,
    epilogue_words,
    scratch_bytes,
)
from edgewise.kernels.catalog.matmul import ROWS_APART, by_rows
from edgewise.kernels.catalog.windows import by_windows, is_product, window_words

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
    if is_product(call):
        return by_rows(call, "product_f32")
    return by_windows(call, "conv_f32")
