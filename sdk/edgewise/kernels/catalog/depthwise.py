"""Which native function serves depthwise convolutions."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Scratch,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import given, integers, only_f32, read_steps
from edgewise.kernels.catalog.epilogue import (
    LANES,
    MOST_TASKS,
    epilogue_words,
)
from edgewise.kernels.catalog.matmul import ROWS_APART
from edgewise.kernels.catalog.strides import pitch
from edgewise.kernels.catalog.windows import window_words

PIXELS = 7  # of a strip, as in native/window.py
# Multiply-adds of a task: some three microseconds, longer than products take.
TASK = 40_000
WEIGHTS = 2048  # of a task: they and the rows under them stay in the nearest cache


@kernel("depthwise_conv", "depthwise_f32", strided=ROWS_APART)
@only_f32
def depthwise_conv(call: Call) -> Binding | None:
    """Rows of the output, strip by strip; all channels of a strip before the next."""
    images, height, width, channels = call.outputs[0].dims
    epilogue = epilogue_words(call, channels)
    apart = pitch(given(call, 0).dims, read_steps(call, 0))
    if epilogue is None or apart is None:
        return None
    rows = images * height
    if not rows * width * channels:
        return Binding(())
    kernel_ = integers(call, "kernel")
    taps = math.prod(kernel_)
    block, chunk = cut(rows, width * taps, channels, taps)
    columns = table_columns(call, width)
    scratch = scratch_bytes(chunk, kernel_[0] * columns)
    work = (rows, block, chunk, columns, Scratch(), scratch)
    words = (*epilogue, *window_words(call), apart, In(1), *work)
    tasks = blocks(rows, block) * blocks(channels, chunk)
    return Binding((Launch("depthwise_f32", words, tasks),), (), scratch)


def table_columns(call: Call, width: int) -> int:
    """Columns of the image, borders included, under a row of ``width`` in strips."""
    stride, strips = integers(call, "strides")[1], -(-width // PIXELS) * PIXELS
    reach = (integers(call, "kernel")[1] - 1) * integers(call, "dilations")[1]
    return (strips - 1) * stride + reach + 1


def scratch_bytes(chunk: int, entries: int) -> int:
    """Scratch of a worker: a strip, three numbers for each channel, the table."""
    return -(-(64 * PIXELS + 12 * chunk + 8 * entries) // 64) * 64


def cut(rows: int, work: int, channels: int, taps: int) -> tuple[int, int]:
    """Rows a task and channels a task; ``work`` is that of one channel in a row."""
    chunk = max(WEIGHTS // taps // LANES, 1) * LANES
    chunks = -(-channels // chunk)
    chunk = -(-channels // (chunks * LANES)) * LANES
    want = min(blocks(rows * work * channels, TASK), MOST_TASKS)
    return -(-rows // min(-(-want // chunks), rows)), chunk
