"""Which native functions serve products over bytes."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    OUT,
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
    read_steps,
    real,
    word,
)
from edgewise.kernels.catalog.depthwise import PIXELS, table_columns
from edgewise.kernels.catalog.depthwise import cut as cut_rows
from edgewise.kernels.catalog.epilogue import (
    LANES,
    ROWS,
    cut,
    epilogue_words,
    scratch_bytes,
)
from edgewise.kernels.catalog.matmul import ONE_MATRIX, ROWS_APART, product
from edgewise.kernels.catalog.strides import pitch
from edgewise.kernels.catalog.windows import (
    is_product,
    splits_of,
    vectors,
    window_words,
)
from edgewise.types import DType

QUAD = 4
PAIRED, NARROW = 6, 7  # bits of weights
SHORT_LINE = 8  # quads of a row of taps: shorter lines take their time to begin
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


def _type(call: Call, piece: int) -> str:
    """How names of kernels end: by the type of x, of the weights, quads of a piece."""
    if given(call, 0).dtype is DType.I8:
        return "i8"
    bits = integer(call, "weight_bits")
    if bits == PAIRED and piece % 2 == 0:
        return "u8_paired"
    return "u8_narrow" if bits <= NARROW else "u8"


def _rows(kind: str) -> int:
    """Of the largest tile."""
    return 5 if kind == "u8_paired" else ROWS


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


def _quads_centre(call: Call, weights: _Weights, columns: int) -> Word:
    """What each column has to be moved by; ``columns`` are those of a group.

    Some processors need it for unsigned bytes whatever their zero point is.
    """
    zero, (count, quads, *_) = integer(call, "x_zero"), given(call, 1).dims
    unsigned = given(call, 0).dtype is DType.U8
    if not (zero or unsigned) or not count * quads:
        return 0
    words = (quads, zero, unsigned, columns, -(-columns // LANES))
    return weights.add(64 * count, "centre_quads", words, count)


PRODUCTS = ("product_u8", "product_i8", "product_u8_narrow", "product_u8_paired")
CONVS = ("conv_u8", "conv_i8", "conv_u8_narrow", "conv_u8_paired")


@kernel("byte_linear", *PRODUCTS, "centre_quads", strided=ROWS_APART)
def byte_linear(call: Call) -> Binding | None:
    """All axes of x but the last are rows."""
    x, columns, weights = given(call, 0).dims, call.outputs[0].dims[-1], _Weights(call)
    epilogue = _epilogue(call, columns, _quads_centre(call, weights, columns))
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
) -> Binding | None:
    step = pitch(given(call, 0).dims, read_steps(call, 0))
    if step is None or step % QUAD:
        return None
    tail, kind = (*epilogue, *ONE_MATRIX), _type(call, 0)
    symbol, tile = f"product_{kind}", _rows(kind)
    made = product(shape, step // QUAD, 1, In(1), tail, symbol, tile)
    if not made.launches:
        return made
    return weights.binding(made.launches[0], made.scratch)


@kernel("byte_conv", "stem_u8_paired", "centre_quads", strided=range(OUT, 0))
def byte_stem(call: Call) -> Binding | None:
    """One quad of channels, or two: windows are gathered into rows."""
    x, kernel_ = given(call, 0).dims, integers(call, "kernel")
    line, outputs = kernel_[1] * (x[3] // QUAD), call.outputs[0].dims[-1]
    pixels, panels = math.prod(call.outputs[0].dims[:-1]), -(-outputs // LANES)
    k = kernel_[0] * line
    plain = integer(call, "groups") == integers(call, "dilations")[1] == 1
    if not plain or line > SHORT_LINE or k == line or panels < 2:
        return None
    # The rows are in one piece.
    if _type(call, 0) != "u8_paired" or not pixels * outputs * k:
        return None
    weights = _Weights(call)
    epilogue = _epilogue(call, outputs, _quads_centre(call, weights, outputs))
    if epilogue is None:
        return None
    tile = _rows("u8_paired")
    block, chunk = cut(pixels, panels, k, tile)
    # What is written beyond a row is written again with the next, but for the last.
    before = scratch_bytes(block, 1, tile=tile)
    scratch = scratch_bytes(block, 1, 4 * (block * k + LANES), tile)
    work = (pixels, block, chunk, Scratch(), scratch, before, _outside(call))
    words = (*epilogue, *_in_quads(window_words(call)), 1, In(1), k, *work)
    tasks = blocks(pixels, block) * blocks(panels, chunk)
    return weights.binding(Launch("stem_u8_paired", words, tasks), scratch)


def _outside(call: Call) -> int:
    """What stands for zero, four times."""
    return (integer(call, "x_zero") % 256) * 0x01010101


@kernel("byte_conv", *CONVS, *PRODUCTS, "centre_quads", strided=ROWS_APART)
def byte_conv(call: Call) -> Binding | None:
    """Rows of the product are output pixels, its reduction taps and channels."""
    groups, outputs = integer(call, "groups"), call.outputs[0].dims[-1]
    weights = _Weights(call)
    each = outputs // groups
    epilogue = _epilogue(call, each, _quads_centre(call, weights, each))
    if epilogue is None:
        return None
    x, pixels = given(call, 0).dims, math.prod(call.outputs[0].dims[:-1])
    if is_product(call):
        return _product(call, (pixels, x[3] // QUAD, outputs), weights, epilogue)
    if any(call.reads):
        return None
    if not pixels * outputs:
        return Binding(())
    inputs, taps = x[3] // QUAD // groups, math.prod(integers(call, "kernel"))
    panels = -(-each // LANES)
    kind = _type(call, inputs)
    tile = _rows(kind)
    block, chunk = cut(pixels * groups, panels, taps * inputs, tile)
    image = _in_quads(window_words(call))
    splits = splits_of(call, inputs)
    outside = vectors(splits * inputs)
    scratch = scratch_bytes(block, taps, outside, tile)
    work = (pixels, block, chunk, Scratch(), scratch, scratch - outside, _outside(call))
    words = (*epilogue, *image, groups, In(1), splits, *work)
    tasks = blocks(pixels, block) * groups * blocks(panels, chunk)
    return weights.binding(Launch(f"conv_{kind}", words, tasks), scratch)


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
    work = (rows, block, chunk, columns, Scratch(), scratch, _outside(call))
    words = (*epilogue, *window_words(call), channels, reals, *work)
    tasks = blocks(rows, block) * blocks(channels, chunk)
    symbol = "depthwise_i8" if given(call, 0).dtype is DType.I8 else "depthwise_u8"
    return weights.binding(Launch(symbol, words, tasks), scratch)
