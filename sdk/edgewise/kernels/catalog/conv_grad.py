"""Which native functions serve gradients of what packed weights are multiplied with."""

from __future__ import annotations

import math
from collections.abc import Iterator

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Temp,
    Word,
    blocks,
    find,
    kernel,
)
from edgewise.kernels.catalog.calls import given, integer, integers, only_f32
from edgewise.kernels.catalog.copy import copy_launch
from edgewise.kernels.catalog.epilogue import LANES, plain_words
from edgewise.kernels.catalog.matmul import ONE_MATRIX, product
from edgewise.kernels.catalog.strides import BLOCK, Ints, contiguous
from edgewise.named import NamedTuple
from edgewise.ops.conv import Conv
from edgewise.types import TensorType

# Weights turned round, and what phases of a strided gradient make.
TURNED, PHASES = 0, 1
# Rows that are multiplied with weights as they lie; numbers of a task: their weights in
# four panels stay in the nearest cache from row to row.
FEW_ROWS, NUMBERS = 8, 64


class Taps(NamedTuple):
    """Taps of a kernel along one axis that one phase of the image is made with.

    Windows that begin at ``stride * j - pad`` see pixel ``stride * i + phase`` with the
    taps ``first``, ``first + stride``, … alone.

    Attributes:
        first: The first of them.
        many: How many they are.
        pad: Rows of zeros before the gradient, as a convolution over it has them.
    """

    first: int
    many: int
    pad: int


@kernel("linear_input_grad", "linear_input_grad_f32")
@only_f32
def few_rows(call: Call) -> Binding | None:
    """To turn the weights would take longer than to read them as they lie."""
    dy, width = given(call, 0).dims, call.outputs[0].dims[-1]
    rows = math.prod(dy[:-1])
    if rows > FEW_ROWS or not rows * dy[-1] * width:
        return None
    words = (In(0), In(1), Out(0), rows, width, dy[-1], NUMBERS)
    return Binding((Launch("linear_input_grad_f32", words, blocks(width, NUMBERS)),))


@kernel("linear_input_grad", "turn_panels_f32", "product_f32")
@only_f32
def linear_input_grad(call: Call) -> Binding:
    """A product with the turned weights."""
    dy, width = given(call, 0).dims, call.outputs[0].dims[-1]
    if not math.prod(call.outputs[0].dims):
        return Binding(())
    rows = math.prod(dy[:-1])
    turn, size = _turn(
        Temp(TURNED), (width, dy[-1]), (1, 1), Taps(0, 1, 0), Taps(0, 1, 0)
    )
    words = (*plain_words(width), *ONE_MATRIX)
    made = product((rows, dy[-1], width), dy[-1], 1, Temp(TURNED), words)
    return made._replace(launches=(turn, *made.launches), temps=(size,))


@kernel(
    "conv_input_grad", "turn_panels_f32", "conv_f32", "product_f32", "copy_4", "fill_4"
)
@only_f32
def conv_input_grad(call: Call) -> Binding | None:
    """A convolution over the gradient for each phase of the image.

    With strides, pixels of the image fall into phases that see different taps; each is
    a convolution without strides, and what they make is interleaved.
    """
    if not math.prod(call.outputs[0].dims):
        return Binding(())
    if not math.prod(given(call, 0).dims):
        return Binding((_zeros(call),))
    strides, dilations = integers(call, "strides"), integers(call, "dilations")
    if strides == (1, 1):
        return _dense(call)
    return _phased(call) if dilations == (1, 1) else None


def _dense(call: Call) -> Binding | None:
    kernel_, pads = integers(call, "kernel"), integers(call, "pads")
    dilations = integers(call, "dilations")
    y, x = (
        Taps(0, size, d * (size - 1) - pad)
        for size, d, pad in zip(kernel_, dilations, pads, strict=False)
    )
    return _convolved(call, call.outputs[0], (y, x), Out(0), phased=False)


def _phased(call: Call) -> Binding | None:
    target, strides = call.outputs[0], integers(call, "strides")
    launches: list[Launch] = []
    sizes, scratch = [64, 64], 0
    steps = contiguous(target.dims)
    whole = True
    for y, x in _phases(call):
        many = tuple(
            -(-(size - phase) // stride)
            for size, phase, stride in zip(
                target.dims[1:3], (y, x), strides, strict=True
            )
        )
        taps = _taps(call, 0, y), _taps(call, 1, x)
        if not math.prod(many) or not taps[0].many * taps[1].many:
            whole = whole and not math.prod(many)
            continue
        dims = (target.dims[0], *many, target.dims[3])
        found = _convolved(
            call, TensorType(target.dtype, dims), taps, Temp(PHASES), phased=True
        )
        offset = y * steps[1] + x * steps[2]
        to = (steps[0], strides[0] * steps[1], strides[1] * steps[2], 1)
        place = Out(0, 4 * offset)
        move = copy_launch(4, Temp(PHASES), place, dims, contiguous(dims), to)
        if found is None or move is None:
            return None
        launches += (*found.launches, move)
        sizes = [max(a, b) for a, b in zip(sizes, found.temps, strict=True)]
        scratch = max(scratch, found.scratch)
    if not whole:
        launches.insert(0, _zeros(call))
    return Binding(tuple(launches), tuple(sizes), scratch)


def _phases(call: Call) -> Iterator[tuple[int, int]]:
    rows, columns = integers(call, "strides")
    return ((y, x) for y in range(rows) for x in range(columns))


def _taps(call: Call, axis: int, phase: int) -> Taps:
    size, stride = integers(call, "kernel")[axis], integers(call, "strides")[axis]
    behind = phase + integers(call, "pads")[axis]
    first = behind % stride
    many = max(-(-(size - first) // stride), 0)
    return Taps(first, many, many - 1 - (behind - first) // stride)


def _convolved(
    call: Call, target: TensorType, taps: tuple[Taps, Taps], out: Word, *, phased: bool
) -> Binding | None:
    """The gradient convolved with some taps of the turned weights, to ``out``."""
    dy, groups = given(call, 0), integer(call, "groups")
    inputs, outputs = target.dims[3] // groups, dy.dims[3] // groups
    y, x = taps
    op = Conv(
        target.dims[3],
        (y.many, x.many),
        pads=(y.pad, x.pad, 0, 0),
        dilations=(1, 1) if phased else integers(call, "dilations"),
        groups=groups,
    )
    k = y.many * x.many * outputs
    panels = TensorType(dy.dtype, (groups * -(-inputs // LANES), k, LANES))
    made = find(Call(op, (dy, panels), (target,)))
    if made is None or made.temps:
        return None
    shape = (inputs, outputs)
    kernel_ = integers(call, "kernel")
    turn, size = _turn(Temp(TURNED), shape, kernel_, y, x, groups, _stride(call))
    moved = [
        launch._replace(words=tuple(_placed(word, out) for word in launch.words))
        for launch in made.launches
    ]
    more = (4 * math.prod(target.dims),) if phased else ()
    return Binding((turn, *moved), (size, *more), made.scratch)


def _placed(word: Word, out: Word) -> Word:
    """A word of the convolution, whose weights are turned and whose output is ``out``.

    Kinds are asked for one by one: as tuples, an input and an output are equal.
    """
    if isinstance(word, In) and word.slot == 1:
        return Temp(TURNED)
    return out if isinstance(word, Out) else word


def _stride(call: Call) -> Ints:
    return integers(call, "strides")


def _turn(
    out: Word,
    shape: tuple[int, int],
    kernel_: Ints,
    y: Taps,
    x: Taps,
    groups: int = 1,
    strides: Ints = (1, 1),
) -> tuple[Launch, int]:
    """Weights with inputs and outputs exchanged; and the bytes they take."""
    inputs, outputs = shape
    panels = groups * -(-inputs // LANES)
    words: tuple[Word, ...] = (
        *(In(1), out, inputs, outputs, *kernel_),
        *(y.first, strides[0], y.many),
        *(x.first, strides[1], x.many),
    )
    size = 64 * panels * y.many * x.many * outputs
    return Launch("turn_panels_f32", words, max(panels, 1)), max(size, 64)


def _zeros(call: Call) -> Launch:
    size = math.prod(call.outputs[0].dims)
    return Launch("fill_4", (Out(0), size, BLOCK, 0), blocks(size, BLOCK))
