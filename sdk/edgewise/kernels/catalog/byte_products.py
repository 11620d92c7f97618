"""Which native functions serve products over bytes."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Preparation,
    Prepared,
    Scratch,
    Temp,
    Word,
    blocks,
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    F32,
    given,
    has,
    integer,
    integers,
    real,
    word,
)
from edgewise.kernels.catalog.conv import is_product, splits_of, vectors, window_words
from edgewise.kernels.catalog.depthwise import PIXELS, table_columns
from edgewise.kernels.catalog.depthwise import cut as cut_rows
from edgewise.kernels.catalog.epilogue import (
    LANES,
    cut,
    epilogue_words,
    scratch_bytes,
)
from edgewise.kernels.catalog.matmul import ONE_MATRIX, product
from edgewise.types import DType

QUAD = 4
MADE_OF = {"f32": 0, "u8": 1, "i8": 2}


class _Weights:
    """What a call makes of its weights: once where they are fixed, else in each run."""

    def __init__(self, call: Call) -> None:
        self._fixed = 1 in call.fixed
        self._made: list[tuple[int, Launch]] = []

    def add(self, size: int, symbol: str, words: tuple[Word, ...], tasks: int) -> Word:
        """The address of memory that ``symbol`` makes of the weights."""
        number = len(self._made)
        place: Word = Out(0) if self._fixed else Temp(number)
        self._made.append((size, Launch(symbol, (In(1), place, *words), tasks)))
        return Prepared(number) if self._fixed else Temp(number)

    def binding(self, launch: Launch, scratch: int) -> Binding:
        """The whole."""
        if self._fixed:
            prepared = tuple(Preparation(1, size, made) for size, made in self._made)
            return Binding((launch,), (), scratch, prepared)
        launches = (*(made for _, made in self._made), launch)
        return Binding(launches, tuple(size for size, _ in self._made), scratch)


def _type(call: Call) -> str:
    """How names of kernels begin and end: by the type of x and of the weights."""
    if given(call, 0).dtype is DType.I8:
        return "i8"
    return "u8_narrow" if integer(call, "weight_bits") == 7 else "u8"


def _epilogue(call: Call, columns: int, centre: Word) -> tuple[Word, ...] | None:
    """Words of the epilogue; ``None`` where it can not be done, or not in float32."""
    words = epilogue_words(call, columns)
    if words is None or given(call, 2).dtype is not F32:
        return None
    if has(call, 4) and given(call, 4).dims[-1] != call.outputs[0].dims[-1]:
        return None
    inverse = f32_word(1.0 / real(call, "y_scale"))
    made, zero = MADE_OF[word(call, "y_type")], integer(call, "y_zero")
    residual = f32_word(real(call, "residual_scale")), integer(call, "residual_zero")
    return (*words[:10], inverse, zero, made, *residual, centre)


def _quads_centre(call: Call, weights: _Weights) -> Word:
    """What each column has to be moved by."""
    zero, (count, quads, *_) = integer(call, "x_zero"), given(call, 1).dims
    if not zero or not count * quads:
        return 0
    return weights.add(64 * count, "centre_quads", (quads, zero), count)


@kernel("byte_linear", "product_u8", "product_i8", "product_u8_narrow", "centre_quads")
def byte_linear(call: Call) -> Binding | None:
    """All axes of x but the last are rows."""
    x, columns, weights = given(call, 0).dims, call.outputs[0].dims[-1], _Weights(call)
    epilogue = _epilogue(call, columns, _quads_centre(call, weights))
    if epilogue is None:
        return None
    return _product(
        call, (math.prod(x[:-1]), x[-1] // QUAD, columns), weights, epilogue
    )


def _product(
    call: Call,
    shape: tuple[int, int, int],
    weights: _Weights,
    epilogue: tuple[Word, ...],
) -> Binding:
    tail = (*epilogue, *ONE_MATRIX)
    made = product(shape, shape[1], 1, In(1), tail, f"product_{_type(call)}")
    if not made.launches:
        return made
    return weights.binding(made.launches[0], made.scratch)


@kernel("byte_conv", "conv_u8", "conv_i8", "conv_u8_narrow", "centre_quads")
def byte_conv(call: Call) -> Binding | None:
    """Rows of the product are output pixels, its reduction taps and channels."""
    groups, outputs = integer(call, "groups"), call.outputs[0].dims[-1]
    weights = _Weights(call)
    each = outputs // groups
    if groups > 1 and each % LANES and integer(call, "x_zero"):
        return None  # what columns are moved by lies in panels, not in columns
    epilogue = _epilogue(call, each, _quads_centre(call, weights))
    if epilogue is None:
        return None
    x, pixels = given(call, 0).dims, math.prod(call.outputs[0].dims[:-1])
    if is_product(call):
        return _product(call, (pixels, x[3] // QUAD, outputs), weights, epilogue)
    if not pixels * outputs:
        return Binding(())
    inputs, taps = x[3] // QUAD // groups, math.prod(integers(call, "kernel"))
    panels = -(-each // LANES)
    block, chunk = cut(pixels * groups, panels, taps * inputs)
    beyond = (integer(call, "x_zero") % 256) * 0x01010101
    image = _in_quads(window_words(call))
    splits = splits_of(call, inputs)
    outside = vectors(splits * inputs)
    scratch = scratch_bytes(block, taps, outside)
    work = (pixels, block, chunk, Scratch(), scratch, scratch - outside, beyond)
    words = (*epilogue, *image, groups, In(1), splits, *work)
    tasks = blocks(pixels, block) * groups * blocks(panels, chunk)
    return weights.binding(Launch(f"conv_{_type(call)}", words, tasks), scratch)


def _in_quads(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Words of a window, with channels in words of four bytes."""
    image, height, width, channels, *rest = words
    if not isinstance(channels, int):
        raise TypeError(channels)
    return (image, height, width, channels // QUAD, *rest)


@kernel(
    "byte_depthwise_conv", "depthwise_u8", "depthwise_i8", "centre_taps", "real_taps"
)
def byte_depthwise_conv(call: Call) -> Binding | None:
    """Rows of the output, sixteen channels of a strip at a time."""
    images, height, width, channels = call.outputs[0].dims
    taps, rows, weights = given(call, 1).dims[0], images * height, _Weights(call)
    if taps > 512:
        return None
    centre: Word = 0
    if channels and (zero := integer(call, "x_zero")):
        size = -(-channels // LANES) * 64
        centre = weights.add(size, "centre_taps", (taps, zero, channels), 1)
    epilogue = _epilogue(call, channels, centre)
    if epilogue is None:
        return None
    if not rows * width * channels:
        return Binding(())
    count = taps * channels
    size = -(-4 * count // 64) * 64
    reals = weights.add(size, "real_taps", (count,), 1)
    block, chunk = cut_rows(rows, width * taps, channels, taps)
    columns, height_ = table_columns(call, width), integers(call, "kernel")[0]
    around = 128 + 13 * chunk + 64
    scratch = 64 * PIXELS + around + 8 * height_ * columns
    scratch = -(-scratch // 64) * 64
    beyond = (integer(call, "x_zero") % 256) * 0x01010101
    work = (rows, block, chunk, columns, Scratch(), scratch, beyond)
    words = (*epilogue, *window_words(call), channels, reals, *work)
    tasks = blocks(rows, block) * blocks(channels, chunk)
    symbol = f"depthwise_{_type(call).removesuffix('_narrow')}"
    return weights.binding(Launch(symbol, words, tasks), scratch)
