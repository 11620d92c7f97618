"""Gradients of recurrent layers.

An op goes back through the steps; products with weights, which need no order, are those
of linear layers over whole sequences.
"""

from __future__ import annotations

from functools import reduce

from edgewise.dims import product
from edgewise.ir.graph import Value
from edgewise.ops import (
    Add,
    Concat,
    Gru,
    GruGrad,
    Linear,
    LinearInputGrad,
    LinearWeightGrad,
    Lstm,
    LstmGrad,
    MatMul,
    PackPanels,
    ReduceSum,
    Reshape,
    Rnn,
    RnnGrad,
    Slice,
    Transpose,
)
from edgewise.ops.recurrence import DIRECTIONS
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import zeros


@gradient(Gru)
def gru(at: Adjoint) -> Gradients:
    """The state's part of the hidden gate lies before or behind the reset gate."""
    op, layer = at.op, _Layer(at)
    back = GruGrad(*op.values)
    dgiven, dloop, before, fed, dh0 = back.node(*layer.inputs(at.inputs[3:5]))
    cut = 2 * op.hidden
    if op.linear_before_reset:
        loops = layer.weights(before, dloop)
    else:
        loops = [
            PackPanels((0, 1))(_side_by_side(layer, d, before, fed, dloop, cut))
            for d in range(layer.ways)
        ]
    return layer.gradients(dgiven, dloop, loops, (dh0,))


@gradient(Lstm)
def lstm(at: Adjoint) -> Gradients:
    """The gates take both parts alike."""
    layer, held = _Layer(at), [*at.inputs[3:7], *[None] * 4][:4]
    back = LstmGrad(*at.op.values).node(*layer.inputs(tuple(held)))
    gates, before, *more = back
    return layer.gradients(gates, gates, layer.weights(before, gates), tuple(more))


@gradient(Rnn)
def rnn(at: Adjoint) -> Gradients:
    """The one gate takes both parts alike."""
    layer = _Layer(at)
    gates, before, dh0 = RnnGrad(*at.op.values).node(*layer.inputs(at.inputs[3:5]))
    return layer.gradients(gates, gates, layer.weights(before, gates), (dh0,))


class _Layer:
    """A layer on the way back, direction by direction."""

    def __init__(self, at: Adjoint) -> None:
        self.at, op = at, at.op
        self.x, self.w, self.r = (at.input(index) for index in range(3))
        self.ways = len(DIRECTIONS[op.direction])
        self.width = op.gates * op.hidden
        self.bias = at.inputs[3] if len(at.inputs) > 3 else None

    def inputs(self, held: tuple[Value | None, ...]) -> list[Value | None]:
        """What the op that goes back takes."""
        at, states = self.at, self.at.op.states
        held = (*held, *[None] * 2)[: max(len(held), 2)]
        grads = [
            zeros(y) if dy is None else dy
            for y, dy in zip(at.outputs, at.grads, strict=True)
        ]
        place = 4 + states + (states == 2)
        lengths = list(at.inputs[place : place + 1])
        return [self._given(), self.r, *held, at.y, *grads, *lengths]

    def _given(self) -> Value:
        """The input's part of all gates, ``[T, D, N, G * H]``."""
        steps, batch, _ = self.x.type.shape
        parts = []
        for d in range(self.ways):
            bias = None
            if self.bias is not None:
                row = Slice((d, 0), (1, self.width), (1, 1))(self.bias)
                bias = Reshape((self.width,))(row)
            rows = Linear(self.width)(self.x, self._panels(d), None, bias, None)
            parts.append(Reshape((steps, 1, batch, self.width))(rows))
        return _joined(parts, 1)

    def _panels(self, d: int) -> Value:
        if self.ways == 1:
            return self.w
        each, *rest = self.w.type.dims
        each //= self.ways
        return Slice((d * each, 0, 0), (each, *rest), (1, 1, 1))(self.w)

    def way(self, value: Value, d: int) -> Value:
        """One direction of ``[T, D, N, …]``."""
        steps, ways, batch, width = value.type.shape
        if ways != 1:
            sizes = (steps, 1, batch, width)
            value = Slice((0, d, 0, 0), sizes, (1, 1, 1, 1))(value)
        return Reshape((steps, batch, width))(value)

    def weights(self, rows: Value, grads: Value) -> list[Value]:
        """Gradients of recurrent weights, as panels."""
        return [
            LinearWeightGrad()(self.way(rows, d), self.way(grads, d))
            for d in range(self.ways)
        ]

    def gradients(
        self,
        dgiven: Value,
        dloop: Value,
        loops: list[Value],
        states: tuple[Value, ...],
    ) -> Gradients:
        """Gradients of all inputs."""
        inputs, directions = self.x.type.shape[2], range(self.ways)
        given = [self.way(dgiven, d) for d in directions]
        rows = [
            LinearInputGrad(inputs)(grad, self._panels(d))
            for d, grad in enumerate(given)
        ]
        panels = [LinearWeightGrad()(self.x, grad) for grad in given]
        biases = [
            Reshape((1, 2 * self.width))(Concat(0)(_total(grad), _total(loop)))
            for grad, loop in zip(
                given, [self.way(dloop, d) for d in directions], strict=True
            )
        ]
        found = (
            reduce(_sum, rows),
            _joined(panels, 0),
            _joined(loops, 0),
            _joined(biases, 0),
            *states,
            None,  # of lengths
        )
        return found[: len(self.at.inputs)]


def _sum(a: Value, b: Value) -> Value:
    return Add()(a, b)


def _joined(parts: list[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else Concat(axis)(*parts)


def _total(grad: Value) -> Value:
    """Over all steps and sequences."""
    return ReduceSum((0, 1), keepdims=False)(grad)


def _side_by_side(
    layer: _Layer, d: int, before: Value, fed: Value, dloop: Value, cut: int
) -> Value:
    """Gradients ``[H, 3H]`` of weights whose last third reads other rows."""
    grads = layer.way(dloop, d)
    steps, batch, width = grads.type.shape
    count = product((steps, batch))
    flat = Reshape((count, width))(grads)
    parts = []
    for rows, start, end in ((before, 0, cut), (fed, cut, width)):
        own = layer.way(rows, d)
        turned = Transpose((1, 0))(Reshape((count, own.type.shape[2]))(own))
        sizes = (count, end - start)
        parts.append(MatMul()(turned, Slice((0, start), sizes, (1, 1))(flat)))
    return Concat(1)(*parts)
