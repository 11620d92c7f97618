"""ONNX recurrent layers."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ir.op import Op
from edgewise.ops.pack import PackPanels
from edgewise.ops.recurrent import Gru, Lstm, Rnn
from edgewise.ops.shape import Transpose

_DIRECTIONS = ("forward", "reverse", "bidirectional")
_RNN_ACTIVATIONS = ("Tanh", "Relu", "Sigmoid")


@onnx_op("GRU")
def _gru(ctx: OpContext) -> tuple[Value, ...]:
    hidden, direction = _form(ctx, ("Sigmoid", "Tanh"))
    # Before operator set 3 the reset gate was always applied first.
    before = bool(ctx.attribute("linear_before_reset", 0))
    return _layer(ctx, Gru(hidden, direction, before), states=1)


@onnx_op("LSTM")
def _lstm(ctx: OpContext) -> tuple[Value, ...]:
    hidden, direction = _form(ctx, ("Sigmoid", "Tanh", "Tanh"))
    if ctx.attribute("input_forget", 0):
        raise ctx.unsupported("couples its gates (input_forget)", "export it uncoupled")
    return _layer(ctx, Lstm(hidden, direction), states=2)


@onnx_op("RNN")
def _rnn(ctx: OpContext) -> tuple[Value, ...]:
    ctx.ignore("activation_alpha", "activation_beta")
    given = ctx.attribute("activations", ("Tanh",))
    if len(set(given)) != 1 or given[0] not in _RNN_ACTIVATIONS:
        raise ctx.unsupported(
            f"has the activations {', '.join(given)}",
            f"use one of {', '.join(_RNN_ACTIVATIONS)}",
        )
    hidden, direction = _form(ctx, (given[0],))
    return _layer(ctx, Rnn(hidden, direction, given[0].lower()), states=1)


def _form(ctx: OpContext, wanted: tuple[str, ...]) -> tuple[int, str]:
    """Hidden size and direction; everything unusual refused."""
    direction = ctx.attribute("direction", "forward").lower()
    if direction not in _DIRECTIONS:
        raise ctx.malformed(f"direction={direction!r}")
    count = 2 if direction == "bidirectional" else 1
    given = tuple(ctx.attribute("activations", wanted * count))
    if tuple(name.lower() for name in given) != tuple(
        name.lower() for name in wanted * count
    ):
        raise ctx.unsupported(
            f"has the activations {', '.join(given)}", f"use {', '.join(wanted)}"
        )
    if ctx.attribute("clip") is not None:
        raise ctx.unsupported("clips its gates", "export it without clip")
    ctx.ignore("activation_alpha", "activation_beta", "output_sequence")
    hidden = ctx.whole(ctx[2].type.shape[-1]) if ctx[2].type.rank == 3 else 0
    if int(ctx.attribute("hidden_size", hidden)) != hidden or not hidden:
        raise ctx.malformed(f"hidden_size does not fit its weight {ctx[2].type}")
    return hidden, direction


def _layer(ctx: OpContext, op: Op, states: int) -> tuple[Value, ...]:
    """The layer over ``X, W, R, B?, sequence_lens?, initial states…, peephole?``."""
    if ctx.optional(4) is not None:
        _want_whole_sequences(ctx)
    x, starts = ctx[0], [ctx.optional(5 + i) for i in range(states)]
    batch_first = bool(ctx.attribute("layout", 0))
    if batch_first:
        x = ctx.emit(Transpose((1, 0, 2)), x)
        starts = [s and ctx.emit(Transpose((1, 0, 2)), s) for s in starts]
    panels = PackPanels((0, 2, 1), 1, 1)
    weights = [ctx.emit(panels, ctx[index]) for index in (1, 2)]
    rest = [ctx.optional(3), *starts]
    if states == 2:
        rest.append(ctx.optional(7))
    y, *ends = ctx.emit_all(op, x, *weights, *rest)
    if not batch_first:
        return (y, *ends)
    return (
        ctx.emit(Transpose((2, 0, 1, 3)), y),
        *(ctx.emit(Transpose((1, 0, 2)), end) for end in ends),
    )


def _want_whole_sequences(ctx: OpContext) -> None:
    length = ctx[0].type.shape[1 if ctx.attribute("layout", 0) else 0]
    if any(size != length for size in ctx.sizes(4) or ()):
        raise ctx.unsupported(
            "has sequences of different lengths", "leave sequence_lens out"
        )
