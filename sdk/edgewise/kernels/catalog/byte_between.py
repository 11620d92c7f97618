"""Which native functions serve what lies between products over bytes."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    blocks,
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    flat,
    given,
    integer,
    integers,
    real,
    spread,
    word,
)
from edgewise.kernels.catalog.pool import WORK, per_task, window_of, window_words

LEAST = {"u8": 0, "i8": -128}
SMALLEST, LARGEST = 2.0**-120, 2.0**120
MOST = 1 << 23  # taps of 255 whose sum fits 31 bits
WIDE = 64  # channels that are added up together: a line of the cache


@kernel("byte_table", "byte_table")
def byte_table(call: Call) -> Binding | None:
    """By the bits of a byte, so that signs do not matter."""
    return flat(call, "byte_table", In(1))


def _made(call: Call) -> tuple[int, int]:
    """The zero point of what is made, and the least byte."""
    return integer(call, "y_zero"), LEAST[word(call, "y_type")]


def _are_normal(*factors: float) -> bool:
    """Whether float32 holds numbers with all their bits."""
    return all(SMALLEST <= factor <= LARGEST for factor in factors)


def _pair(call: Call, name: str, by: float, plus: float) -> Binding | None:
    if not _are_normal(by, plus):
        return None
    kind = given(call, 0).dtype.value
    zeros = integer(call, "a_zero"), integer(call, "b_zero")
    words = (f32_word(by), f32_word(plus), *zeros, *_made(call))
    return spread(call, f"byte_{name}_{kind}", *words)


@kernel("byte_add", "byte_add_u8", "byte_add_i8")
def byte_add(call: Call) -> Binding | None:
    """Each image has a factor of its own."""
    unit = real(call, "y_scale")
    by, plus = real(call, "a_scale") / unit, real(call, "b_scale") / unit
    return _pair(call, "add", by, plus)


@kernel("byte_mul", "byte_mul_u8", "byte_mul_i8")
def byte_mul(call: Call) -> Binding | None:
    """Products have one factor."""
    scale = real(call, "a_scale") * real(call, "b_scale")
    return _pair(call, "mul", scale / real(call, "y_scale"), 1.0)


def _means(
    call: Call, taps: int, window: tuple[int, ...], border: int
) -> Binding | None:
    """Tasks are rows of the output; large windows are shared out by channels, too."""
    ratio = real(call, "x_scale") / real(call, "y_scale")
    if taps > MOST or not _are_normal(ratio):
        return None
    images, height, width, channels = call.outputs[0].dims
    rows, each = images * height, per_task(call, taps)
    wanted = min(blocks(channels, WIDE), max(width * channels * taps // WORK, 1))
    chunk = blocks(blocks(channels, wanted), WIDE) * WIDE
    pieces = blocks(channels, chunk)
    ending = (chunk, pieces, f32_word(ratio), integer(call, "x_zero"), *_made(call))
    words = (*window_words(call, each, window, border), *ending)
    symbol = f"byte_average_pool_{given(call, 0).dtype.value}"
    return Binding((Launch(symbol, words, blocks(rows, each) * pieces),))


AVERAGE = ("byte_average_pool_u8", "byte_average_pool_i8")


@kernel("byte_average_pool", *AVERAGE)
def byte_average_pool(call: Call) -> Binding | None:
    """Windows of a pool."""
    taps = math.prod(integers(call, "kernel"))
    return _means(call, taps, window_of(call), integer(call, "count_include_pad"))


@kernel("byte_mean", *AVERAGE)
def byte_mean(call: Call) -> Binding | None:
    """The window is the image."""
    _, height, width, _ = given(call, 0).dims
    return _means(call, height * width, (height, width, 1, 1, 0, 0, 1, 1), 0)
