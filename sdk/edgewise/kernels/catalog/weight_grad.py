"""Which native functions serve gradients of packed weights."""

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
from edgewise.kernels.catalog.calls import given, integer, integers, only_f32
from edgewise.kernels.catalog.copy import copy_launch
from edgewise.kernels.catalog.epilogue import LANES, MOST_TASKS, ROWS, TASK_MACS
from edgewise.kernels.catalog.strides import BLOCK, Ints, contiguous

# Temporaries: sums of parts, the padded image.
SUMS, PADDED = range(2)
# Windows of a block: their sixteen outputs stay in the nearest cache, their numbers of
# the image in the next.
WINDOWS = 128
# Windows of a part and bytes of all parts: what they cost beside their products is
# small.  Tiles of a task: for each panel it copies the outputs of a block.
PART, PARTS, FEWEST_TILES = 1024, 1 << 20, 4


def weight_grad(
    x: Word,
    image: Ints,
    dy: Ints,
    window: tuple[Ints, Ints, Ints],
    groups: int,
) -> Binding:
    """Gradient of panels.

    Args:
        x: Where the padded image is.
        image: Its sizes, padding included.
        dy: Sizes of the gradient of the output.
        window: Kernel, strides, dilations.
        groups: Of channels.
    """
    kernel_, strides, dilations = window
    steps = contiguous(image)
    inputs, each = image[3] // groups, dy[3] // groups
    k = math.prod(kernel_) * inputs
    windows, panels = math.prod(dy[:3]), groups * -(-each // LANES)
    size, tiles = 64 * panels * k, -(-k // ROWS)
    want = windows * k * panels * LANES // (4 * TASK_MACS)
    want = max(min(want, MOST_TASKS), 1)
    parts = max(min(want, windows // PART, PARTS // size), 1)
    chunks = max(min(want // (parts * groups), tiles // FEWEST_TILES), 1)
    per_task = -(-tiles // chunks)
    part = max(-(-windows // (parts * WINDOWS)), 1) * WINDOWS
    parts = blocks(windows, part)
    scratch = (64 + 8) * WINDOWS + -(-8 * (per_task + 1) * ROWS // 64) * 64
    words: tuple[Word, ...] = (
        *(x, In(1), Out(0) if parts == 1 else Temp(SUMS)),
        *(strides[0] * steps[1], strides[1] * steps[2], steps[0]),
        *(dy[2], dy[1], windows, dy[3], groups, inputs, each),
        *(kernel_[1], dilations[0] * steps[1], dilations[1] * steps[2]),
        *(k, per_task, part, WINDOWS, Scratch(), scratch),
    )
    tasks = parts * groups * blocks(tiles, per_task)
    launch = Launch("conv_weight_grad_f32", words, tasks)
    if parts == 1:
        return Binding((launch,), (64,), scratch)
    total = (Temp(SUMS), Out(0), parts, size // 4, BLOCK)
    join = Launch("sum_parts_f32", total, blocks(size // 4, BLOCK))
    return Binding((launch, join), (parts * size,), scratch)


@kernel("linear_weight_grad", "conv_weight_grad_f32", "sum_parts_f32")
@only_f32
def linear_weight_grad(call: Call) -> Binding:
    """Rows are the windows of one line."""
    x, dy = given(call, 0).dims, given(call, 1).dims
    rows = math.prod(x[:-1])
    if not math.prod(call.outputs[0].dims):
        return Binding(())
    one = ((1, 1), (1, 1), (1, 1))
    return weight_grad(In(0), (1, 1, rows, x[-1]), (1, 1, rows, dy[-1]), one, 1)


@kernel("conv_weight_grad", "conv_weight_grad_f32", "sum_parts_f32", "copy_4", "fill_4")
@only_f32
def conv_weight_grad(call: Call) -> Binding | None:
    """Over a padded copy of the image, where there is padding."""
    x, dy = given(call, 0).dims, given(call, 1).dims
    if not math.prod(call.outputs[0].dims):
        return Binding(())
    kernel_, strides = integers(call, "kernel"), integers(call, "strides")
    window = (kernel_, strides, integers(call, "dilations"))
    groups, pads = integer(call, "groups"), integers(call, "pads")
    if not any(pads):
        if kernel_ == strides == (1, 1):  # lines are one line
            pixels = math.prod(x[:3])
            x, dy = (1, 1, pixels, x[3]), (1, 1, pixels, dy[3])
        return weight_grad(In(0), x, dy, window, groups)
    top, left, bottom, right = pads
    image = (x[0], x[1] + top + bottom, x[2] + left + right, x[3])
    found = _padded(x, image, (top, left))
    if found is None:
        return None
    grad = weight_grad(Temp(PADDED), image, dy, window, groups)
    launches = (*found, *grad.launches)
    padded = max(-(-4 * math.prod(image) // 64) * 64, 64)
    return Binding(launches, (*grad.temps, padded), grad.scratch)


def _padded(x: Ints, image: Ints, begin: Ints) -> tuple[Launch, ...] | None:
    """Zeros, and the image among them."""
    size, steps = math.prod(image), contiguous(image)
    offset = begin[0] * steps[1] + begin[1] * steps[2]
    middle = copy_launch(4, In(0), Temp(PADDED, 4 * offset), x, contiguous(x), steps)
    border = Launch("fill_4", (Temp(PADDED), size, BLOCK, 0), blocks(size, BLOCK))
    if middle is None:
        return None
    return (border, middle) if math.prod(x) else (border,)
