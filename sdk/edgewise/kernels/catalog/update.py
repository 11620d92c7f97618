"""Which native functions serve steps of optimizers."""

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
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    given,
    has,
    integer,
    only_f32,
    optional,
    real,
)
from edgewise.kernels.catalog.strides import BLOCK


def _launch(call: Call, symbol: str, places: tuple[Word, ...], *more: Word) -> Binding:
    size = math.prod(given(call, 0).dims)
    words = (*places, size, BLOCK, *more)
    return Binding((Launch(symbol, words, blocks(size, BLOCK)),))


def _bits(call: Call, *names: str) -> tuple[Word, ...]:
    return tuple(f32_word(real(call, name)) for name in names)


@kernel("sgd_update", "sgd_update_f32")
@only_f32
def sgd_update(call: Call) -> Binding:
    """With momentum, or without."""
    velocity = Out(1) if has(call, 3) else 0
    places = (In(0), In(1), In(2), optional(call, 3), Out(0), velocity)
    numbers = _bits(call, "momentum", "decay")
    return _launch(call, "sgd_update_f32", places, *numbers, integer(call, "nesterov"))


@kernel("adam_update", "adam_update_f32")
@only_f32
def adam_update(call: Call) -> Binding:
    """Both means and the parameter at once."""
    reads = (*map(In, range(4)), optional(call, 4), In(5), In(6))
    left = (f32_word(1 - real(call, "first")), f32_word(1 - real(call, "second")))
    numbers = (*_bits(call, "first", "second"), *left, *_bits(call, "eps", "decay"))
    return _launch(call, "adam_update_f32", (*reads, *map(Out, range(3))), *numbers)
