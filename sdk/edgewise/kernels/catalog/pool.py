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


def _pool(call: Call, symbol: str, border: int) -> Binding:
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


@kernel("max_pool", "max_pool_f32", "max_pool_u8", "max_pool_i8")
def bind_max_pool(call: Call) -> Binding | None:
    """Padding never wins."""
    name = given(call, 0).dtype.value
    return _pool(call, f"max_pool_{name}", 0) if name in {"f32", "u8", "i8"} else None


@kernel("average_pool", "average_pool_f32")
def bind_average_pool(call: Call) -> Binding | None:
    """Over all taps, or over those inside the image."""
    if not all_f32(call):
        return None
    return _pool(call, "average_pool_f32", integer(call, "count_include_pad"))
