"""Which native functions serve gradients of pools."""

from __future__ import annotations

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Word,
    kernel,
)
from edgewise.kernels.catalog.calls import given, integer, integers, only_f32

# Channels of a task: so many lie in neighbouring lines of memory.
CHANNELS = 64


def _pool_grad(call: Call, symbol: str, x: Word, dy: int, border: int) -> Binding:
    images, height, width, channels = call.outputs[0].dims
    out_height, out_width = given(call, dy).dims[1:3]
    shape = (images, height, width, channels, out_height, out_width)
    kernel_, strides = integers(call, "kernel"), integers(call, "strides")
    dilations, pads = integers(call, "dilations"), integers(call, "pads")
    outside = (out_height * strides[0] - height, out_width * strides[1] - width)
    tiled = kernel_ == strides and not any((*pads, *outside)) and dilations == (1, 1)
    ways = (*kernel_, *strides, *pads[:2], *dilations, border, CHANNELS, int(tiled))
    tasks = images * -(-channels // CHANNELS)
    if not tasks * height * width:
        return Binding(())
    words: tuple[Word, ...] = (x, In(dy), Out(0), *shape, *ways)
    return Binding((Launch(symbol, words, tasks),))


@kernel("max_pool_grad", "max_pool_grad_f32")
@only_f32
def max_pool_grad(call: Call) -> Binding:
    """What won is found again."""
    return _pool_grad(call, "max_pool_grad_f32", In(0), 1, 0)


@kernel("average_pool_grad", "average_pool_grad_f32")
@only_f32
def average_pool_grad(call: Call) -> Binding:
    """Over all taps, or over those inside the image."""
    border = integer(call, "count_include_pad")
    return _pool_grad(call, "average_pool_grad_f32", 0, 0, border)
