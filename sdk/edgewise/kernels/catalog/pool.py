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


def window_words(
    call: Call, per_task: int, window: tuple[int, ...], border: int
) -> tuple[Word, ...]:
    """Words of a pool whose window is kernel, strides, first pads and dilations."""
    _, height, width, channels = given(call, 0).dims
    images, out_height, out_width, _ = call.outputs[0].dims
    shape = (height, width, channels, max(out_height, 1), out_width)
    return (In(0), Out(0), images * out_height, per_task, *shape, *window, border)


def window_of(call: Call) -> tuple[int, ...]:
    """Of a call whose op has one."""
    return (
        *integers(call, "kernel"),
        *integers(call, "strides"),
        *integers(call, "pads")[:2],
        *integers(call, "dilations"),
    )


def per_task(call: Call, taps: int) -> int:
    """Rows of the output that a task makes."""
    width, channels = call.outputs[0].dims[2:]
    return max(1, WORK // max(width * channels * taps, 1))


def _pool(call: Call, symbol: str, border: int) -> Binding:
    images, height, *_ = call.outputs[0].dims
    each = per_task(call, math.prod(integers(call, "kernel")))
    words = window_words(call, each, window_of(call), border)
    return Binding((Launch(symbol, words, blocks(images * height, each)),))


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
