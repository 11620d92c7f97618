"""Which native functions serve gradients of depthwise convolutions."""

from __future__ import annotations

import math

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
    kernel,
)
from edgewise.kernels.catalog.calls import given, integers, only_f32
from edgewise.kernels.catalog.epilogue import MOST_TASKS
from edgewise.kernels.catalog.strides import BLOCK, Ints

CHUNK = 256  # channels of a task: the rows under them and the weights stay near
# Each part of a weight gradient is as large as the whole.
MOST_PARTS = 16


def _words(call: Call, image: Ints, dy: Ints) -> tuple[Word, ...]:
    """How windows lie."""
    return (
        *image[1:],
        *dy[1:3],
        *integers(call, "kernel"),
        *integers(call, "strides"),
        *integers(call, "pads")[:2],
        *integers(call, "dilations"),
    )


@kernel("depthwise_input_grad", "depthwise_input_grad_f32")
@only_f32
def depthwise_input_grad(call: Call) -> Binding:
    """Every pixel of the image gathers what saw it."""
    image, dy = call.outputs[0].dims, given(call, 0).dims
    if not math.prod(image):
        return Binding(())
    rows, taps = image[0] * image[1], integers(call, "kernel")
    block = -(-rows // min(rows, MOST_TASKS))
    tables = image[2] * taps[1] + taps[0] + 2 * math.prod(taps)
    scratch = -(-8 * tables // 64) * 64
    words = (In(0), In(1), Out(0), *_words(call, image, dy))
    tasks = blocks(rows, block) * blocks(image[3], CHUNK)
    work = (rows, block, CHUNK, Scratch(), scratch)
    launch = Launch("depthwise_input_grad_f32", (*words, *work), tasks)
    return Binding((launch,), (), scratch)


@kernel("depthwise_weight_grad", "depthwise_weight_grad_f32", "sum_parts_f32")
@only_f32
def depthwise_weight_grad(call: Call) -> Binding:
    """Blocks of rows each have a sum of their own; these are added up."""
    image, dy = given(call, 0).dims, given(call, 1).dims
    size = math.prod(call.outputs[0].dims)
    if not size:
        return Binding(())
    rows = dy[0] * dy[1]
    block = max(-(-rows // MOST_PARTS), 1)
    parts = blocks(rows, block)
    scratch = -(-16 * integers(call, "kernel")[1] // 64) * 64
    words = (In(0), In(1), Temp(0), *_words(call, image, dy))
    work = (rows, block, CHUNK, Scratch(), scratch)
    tasks = parts * blocks(image[3], CHUNK)
    gather = Launch("depthwise_weight_grad_f32", (*words, *work), tasks)
    total = (Temp(0), Out(0), parts, size, BLOCK)
    join = Launch("sum_parts_f32", total, blocks(size, BLOCK))
    temp = -(-4 * parts * size // 64) * 64
    return Binding((gather, join), (temp,), scratch)
