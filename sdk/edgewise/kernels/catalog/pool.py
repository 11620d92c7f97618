"""Which native functions serve pooling."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Word,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import all_f32, given, integer, integers

WORK = 8192  # elements read by a task: about two microseconds


def _pool(call: Call, symbol: str, border: int) -> Binding | None:
    if not all_f32(call):
        return None
    _, height, width, channels = given(call, 0).dims
    images, out_height, out_width, _ = call.outputs[0].dims
    window = integers(call, "kernel")
    rows = images * out_height
    read = out_width * channels * math.prod(window)
    per_task = max(1, WORK // max(read, 1))
    shape = (height, width, channels, max(out_height, 1), out_width)
    ways = (
        *window,
        *integers(call, "strides"),
        *integers(call, "pads")[:2],
        *integers(call, "dilations"),
        border,
    )
    words: tuple[Word, ...] = (In(0), Out(0), rows, per_task, *shape, *ways)
    return Binding((Launch(symbol, words, blocks(rows, per_task)),))


@kernel("max_pool", "max_pool_f32")
def bind_max_pool(call: Call) -> Binding | None:
    """Padding never wins."""
    return _pool(call, "max_pool_f32", 0)


@kernel("average_pool", "average_pool_f32")
def bind_average_pool(call: Call) -> Binding | None:
    """Over all taps, or over those inside the image."""
    return _pool(call, "average_pool_f32", integer(call, "count_include_pad"))
