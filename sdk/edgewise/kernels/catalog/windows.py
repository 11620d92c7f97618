"""How convolutions walk: windows over an image, cut into tasks."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Scratch,
    Word,
    blocks,
)
from edgewise.kernels.catalog.calls import given, integer, integers
from edgewise.kernels.catalog.epilogue import (
    LANES,
    cut,
    epilogue_words,
    scratch_bytes,
)

# A row of taps is one line up to here: longer ones would push a panel out of the cache.
LONGEST_LINE = 256


def by_windows(call: Call, symbol: str, more: int = 0) -> Binding | None:
    """Any convolution; the last ``more`` bytes of scratch are for the function."""
    groups, outputs = integer(call, "groups"), call.outputs[0].dims[-1]
    epilogue = epilogue_words(call, outputs // groups)
    if epilogue is None or any(call.reads):
        return None
    x, kernel_ = given(call, 0).dims, integers(call, "kernel")
    pixels = math.prod(call.outputs[0].dims[:-1])
    if not pixels * outputs:
        return Binding(())
    inputs, taps = x[3] // groups, math.prod(kernel_)
    splits = splits_of(call, inputs)
    panels = -(-(outputs // groups) // LANES)
    block, chunk = cut(pixels * groups, panels, taps * inputs)
    own = vectors(splits * inputs) + more
    scratch = scratch_bytes(block, taps, own)
    work = (pixels, block, chunk, Scratch(), scratch, scratch - own, 0)
    words = (*epilogue, *window_words(call), groups, In(1), splits, *work)
    tasks = blocks(pixels, block) * groups * blocks(panels, chunk)
    return Binding((Launch(symbol, words, tasks),), (), scratch)


def splits_of(call: Call, inputs: int) -> int:
    """Pieces, of ``inputs`` words, of a row of taps that is one inside the image."""
    row, across = integers(call, "kernel")[1] * inputs, integers(call, "dilations")[1]
    joined = integer(call, "groups") == 1 and across == 1
    return integers(call, "kernel")[1] if joined and row <= LONGEST_LINE else 1


def is_product(call: Call) -> bool:
    """Whether every output pixel reads the one input pixel below it."""
    single = integers(call, "kernel") == integers(call, "strides") == (1, 1)
    return single and integer(call, "groups") == 1 and not any(integers(call, "pads"))


def window_words(call: Call) -> tuple[Word, ...]:
    """The image, and how windows lie over it."""
    (_, height, width, channels), target = given(call, 0).dims, call.outputs[0].dims
    return (
        In(0),
        height,
        width,
        channels,
        *target[1:3],
        *integers(call, "kernel"),
        *integers(call, "strides"),
        *integers(call, "pads")[:2],
        *integers(call, "dilations"),
    )


def vectors(count: int) -> int:
    """Bytes of whole vectors that hold ``count`` numbers."""
    return max(-(-count // LANES), 1) * 64
