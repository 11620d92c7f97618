"""Which native functions serve recurrent layers.

The input's part of all gates is one product for the whole sequence and each direction;
then a launch of its own takes every row of the batch through the steps.
"""

from __future__ import annotations

from edgewise.ir.op import OPS
from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Scratch,
    Temp,
    Word,
    find,
    kernel,
)
from edgewise.kernels.catalog.calls import given, has, integer, only_f32, optional, word
from edgewise.types import TensorType

BATCH = 4  # rows of the batch that share a reading of the recurrent weights
# Activations of a plain cell, by code.
TANH, RELU, SIGMOID = range(3)
ACTIVATIONS = {"tanh": TANH, "relu": RELU, "sigmoid": SIGMOID}


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def _moved(item: Word, way: int, inputs: tuple[int, int], y: int) -> Word:
    """A word of the product, with its operands in the memory of the layer's call."""
    weight, bias = inputs
    match item:
        case In(1, offset):
            return In(1, offset + way * weight)
        case In(3, offset):
            return In(3, offset + way * bias)
        case Out(0, offset):
            return Temp(0, offset + way * y)
        case Temp(slot, offset):
            return Temp(slot + 1, offset)
    return item


def _given(call: Call, width: int, ways: int) -> Binding | None:
    """Launches that fill ``Temp(0)`` with ``x @ w + bias`` of every direction."""
    x, w = given(call, 0), given(call, 1)
    panels, depth, lanes = w.dims
    weight = TensorType(w.dtype, (panels // ways, depth, lanes))
    bias = TensorType(x.dtype, (width,)) if has(call, 3) else None
    result = TensorType(x.dtype, (*x.dims[:-1], width))
    linear = OPS["linear"](width)
    product = find(Call(linear, (x, weight, None, bias, None), (result,)))
    if product is None:
        return None
    steps = (weight.bytes, 8 * width)
    launches = tuple(
        launch._replace(
            words=tuple(_moved(item, way, steps, result.bytes) for item in launch.words)
        )
        for way in range(ways)
        for launch in product.launches
    )
    temps = (max(_aligned(ways * result.bytes), 64), *product.temps)
    return Binding(launches, temps, product.scratch)


def _is_usual(call: Call) -> bool:
    """Whether the cell has the activations of the kernel, unbounded."""
    return not any(getattr(call.op, name) for name in ("activations", "clip"))


def _recurrent(
    symbol: str, gates: int, call: Call, option: int, more: tuple[Word, ...] = ()
) -> Binding | None:
    if not _is_usual(call):
        return None
    steps, batch, _ = given(call, 0).dims
    hidden, direction = integer(call, "hidden"), word(call, "direction")
    ways = 2 if direction == "bidirectional" else 1
    product = _given(call, gates * hidden, ways)
    if product is None:
        return None
    line = _aligned(4 * hidden)
    # Sums of all gates, two rows of gates kept apart, the first state.
    scratch = BATCH * (_aligned(4 * gates * hidden) + 3 * line)
    scratch = max(scratch, _aligned(product.scratch))
    pointers = (Temp(0), In(2), optional(call, 3), optional(call, 4), Out(0), Out(1))
    shape = (steps, batch, hidden, ways, int(direction == "reverse"))
    words: tuple[Word, ...] = (*pointers, *shape, Scratch(), scratch, option, *more)
    tasks = max(1, ways * -(-batch // BATCH))
    launches = (*product.launches, Launch(symbol, words, tasks))
    return Binding(launches, product.temps, scratch)


@kernel("gru", "gru_f32")
@only_f32
def bind_gru(call: Call) -> Binding | None:
    """Three gates; the reset before or after the product."""
    return _recurrent("gru_f32", 3, call, integer(call, "linear_before_reset"))


@kernel("lstm", "lstm_f32")
@only_f32
def bind_lstm(call: Call) -> Binding | None:
    """Four gates and a cell, with peepholes or without."""
    if integer(call, "input_forget"):
        return None
    more = (optional(call, 5), Out(2), optional(call, 6))
    return _recurrent("lstm_f32", 4, call, 0, more)


@kernel("rnn", "rnn_f32")
@only_f32
def bind_rnn(call: Call) -> Binding | None:
    """One gate."""
    activation = ACTIVATIONS.get(word(call, "activation"))
    return None if activation is None else _recurrent("rnn_f32", 1, call, activation)
