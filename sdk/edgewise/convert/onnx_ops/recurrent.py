"""ONNX recurrent layers."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.create import Fill
from edgewise.ops.gates import GATES
from edgewise.ops.pack import PackPanels
from edgewise.ops.quantize import Dequantize
from edgewise.ops.recurrence import DIRECTIONS, Recurrent
from edgewise.ops.recurrent import Gru, Lstm, Rnn
from edgewise.ops.shape import Reshape, Transpose

_PLAIN = ("tanh", "relu", "sigmoid")


@onnx_op("GRU")
def _gru(ctx: OpContext) -> tuple[Value, ...]:
    # Before operator set 3 the reset gate was always applied first.
    before = bool(ctx.attribute("linear_before_reset", 0))
    op = Gru(*_form(ctx), linear_before_reset=before)
    return _layer(ctx, _with_gates(ctx, op), _weights(ctx))


@onnx_op("LSTM")
def _lstm(ctx: OpContext) -> tuple[Value, ...]:
    return _layer(ctx, _lstm_op(ctx), _weights(ctx))


def _lstm_op(ctx: OpContext) -> Recurrent:
    coupled = bool(ctx.attribute("input_forget", 0))
    return _with_gates(ctx, Lstm(*_form(ctx), input_forget=coupled))


@onnx_op("DynamicQuantizeLSTM", domain="com.microsoft")
def _quantized_lstm(ctx: OpContext) -> tuple[Value, ...]:
    """Weights ``[D, I, 4H]`` in bytes; what they multiply stays as it is.

    The operator lets a runtime round that too, for speed alone: not to is as right.
    """
    panels, weights = PackPanels((0, 1, 2), 1, 1), []
    for index, scale in ((1, 8), (2, 10)):
        real = _real_weight(
            ctx, ctx.ranked(index, 3), ctx[scale], ctx.optional(scale + 1)
        )
        weights.append(ctx.emit(panels, real))
    return _layer(ctx, _lstm_op(ctx), weights)


def _real_weight(ctx: OpContext, w: Value, scale: Value, zero: Value | None) -> Value:
    """The weight by a scale for each direction, or for each of its columns."""
    ways, inputs, columns = w.type.shape
    op, shape = Dequantize(0), scale.type.shape
    if scale.type.rank == 2:
        op, shape = Dequantize(1, ctx.whole(inputs)), (ways, 1, columns)
    if zero is None:
        zero = ctx.emit(Fill(shape), ctx.constant(np.zeros((), w.type.dtype.numpy)))
    pair = (ctx.emit(Reshape(shape), value) for value in (scale, zero))
    return ctx.emit(op, w, *pair)


@onnx_op("RNN")
def _rnn(ctx: OpContext) -> tuple[Value, ...]:
    op = _with_gates(ctx, Rnn(*_form(ctx)))
    if len(set(op.activations)) == 1 and op.activations[0] in _PLAIN:
        op = op.replace(
            activation=op.activations[0], activations=(), alphas=(), betas=()
        )
    return _layer(ctx, op, _weights(ctx))


def _form(ctx: OpContext) -> tuple[int, str]:
    """Hidden size and direction."""
    direction = ctx.attribute("direction", "forward").lower()
    if direction not in DIRECTIONS:
        raise ctx.malformed(f"direction={direction!r}; want one of {list(DIRECTIONS)}")
    ctx.ignore("output_sequence")
    # R is [D, gates * hidden, hidden], or the last two the other way round.
    sides = [ctx.whole(size) for size in ctx[2].type.shape[1:]]
    hidden = min(sides) if len(sides) == 2 else 0
    if int(ctx.attribute("hidden_size", hidden)) != hidden or not hidden:
        raise ctx.malformed(f"hidden_size does not fit its weight {ctx[2].type}")
    return hidden, direction


def _with_gates(ctx: OpContext, op: Recurrent) -> Recurrent:
    """The layer with the node's activations, their parameters, and its bound."""
    alphas = list(ctx.attribute("activation_alpha", ()))
    betas = list(ctx.attribute("activation_beta", ()))
    clip = float(ctx.attribute("clip", 0.0))
    if not clip >= 0:
        raise ctx.malformed(f"clip={clip}; want 0 or more")
    op = op.replace(clip=clip)
    known = {name.replace("_", ""): name for name in GATES}
    given = [text.lower() for text in ctx.attribute("activations", ())]
    if unknown := [text for text in given if text not in known]:
        raise ctx.unsupported(
            f"has the activations {', '.join(unknown)}",
            f"use one of {', '.join(known)}",
        )
    names = tuple(known[text] for text in given)
    if not names or names == op.gate_names:
        return op
    if len(names) != len(op.gate_names):
        raise ctx.malformed(f"activations={given}; want {len(op.gate_names)} of them")
    # Those that have a parameter take the next that is given.
    pairs = [(GATES[name].alpha, GATES[name].beta) for name in names]
    return op.replace(
        activations=names,
        alphas=tuple(_next(alphas, alpha) for alpha, _ in pairs),
        betas=tuple(_next(betas, beta) for _, beta in pairs),
    )


def _next(given: list[float], default: float | None) -> float:
    if default is None:
        return 0.0
    return float(given.pop(0)) if given else default


def _weights(ctx: OpContext) -> list[Value]:
    panels = PackPanels((0, 2, 1), 1, 1)
    return [ctx.emit(panels, ctx[index]) for index in (1, 2)]


def _layer(ctx: OpContext, op: Recurrent, weights: list[Value]) -> tuple[Value, ...]:
    """The layer over ``X, W, R, B?, sequence_lens?, initial states…, peephole?``."""
    states = op.states
    x, starts = ctx[0], [ctx.optional(5 + i) for i in range(states)]
    batch_first = bool(ctx.attribute("layout", 0))
    if batch_first:
        x = ctx.emit(Transpose((1, 0, 2)), x)
        starts = [s and ctx.emit(Transpose((1, 0, 2)), s) for s in starts]
    rest = [ctx.optional(3), *starts]
    if states == 2:
        rest.append(ctx.optional(7))
    lengths = _lengths(ctx, x)
    if lengths is not None:
        rest.append(lengths)
    y, *ends = ctx.emit_all(op, x, *weights, *rest)
    if not batch_first:
        return (y, *ends)
    return (
        ctx.emit(Transpose((2, 0, 1, 3)), y),
        *(ctx.emit(Transpose((1, 0, 2)), end) for end in ends),
    )


def _lengths(ctx: OpContext, x: Value) -> Value | None:
    """The lengths of the sequences, unless all of them are known to be whole."""
    lengths = ctx.optional(4)
    if lengths is None:
        return None
    known = ctx.known(4)
    whole = known is not None and all(size == x.type.shape[0] for size in known)
    return None if whole else lengths
