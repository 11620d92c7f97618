"""Recurrent layers, with ONNX's equations and gate orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases, formulas
from edgewise.ops.checks import FLOATS, same_dtype, want, want_shape, wide
from edgewise.ops.pack import PANEL, PackPanels, matrices, panels
from edgewise.types import TensorType

DIRECTIONS = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": formulas.relu,
    "sigmoid": formulas.sigmoid,
}
PACKED = PackPanels((0, 2, 1), batch=1)


class _Recurrent(Op):
    """Steps over ``x[T, N, I]``, by panels of weights, in one direction or both.

    Class Attributes:
        gates: How many gates share one set of panels.
        states: How many states go from step to step.
    """

    gates = 1
    states = 1
    hidden: int
    direction: str = "forward"

    def want_inputs(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None,
        *states: TensorType | None,
    ) -> tuple[TensorType, ...]:
        """Types of y and of the last states, once all inputs fit."""
        same_dtype(self, x, w, r, bias, *states)
        want(self, (x,), FLOATS)
        if x.rank != 3 or self.direction not in DIRECTIONS:
            raise self.refuse((x,), f"x[T, N, I] and one of {list(DIRECTIONS)}")
        ways, width = len(DIRECTIONS[self.direction]), self.gates * self.hidden
        want_shape(self, "w", w, ways * panels(width), x.shape[2], PANEL)
        want_shape(self, "r", r, ways * panels(width), self.hidden, PANEL)
        want_shape(self, "bias", bias, ways, 2 * width)
        last = (ways, x.shape[1], self.hidden)
        for state in states:
            want_shape(self, "state", state, *last)
        y = x.with_shape((x.shape[0], *last))
        return (y, *[x.with_shape(last)] * self.states)

    def run(
        self,
        x: Array,
        w: Array,
        r: Array,
        bias: Array | None,
        *states: Array | None,
        peephole: Array | None = None,
    ) -> tuple[Array, ...]:
        """All directions over all steps; y and the last states."""
        signs, width = DIRECTIONS[self.direction], self.gates * self.hidden
        weights, loops = matrices(wide(w), width), matrices(wide(r), width)
        zeros = np.zeros((len(signs), x.shape[1], self.hidden))
        start = [zeros if state is None else wide(state) for state in states]
        bias = np.zeros((len(signs), 2 * width)) if bias is None else wide(bias)
        hole = np.zeros((len(signs), 3 * self.hidden)) if peephole is None else peephole
        y = np.zeros((len(x), *zeros.shape))
        last = [np.zeros_like(zeros) for _ in states]
        with np.errstate(all="ignore"):
            for d, sign in enumerate(signs):
                now = [state[d] for state in start]
                steps = range(len(x))[::sign]
                for t in steps:
                    given = wide(x[t]) @ weights[d] + bias[d, :width]
                    now = self.step(given, loops[d], bias[d, width:], hole[d], *now)
                    y[t, d] = now[0]
                for state, value in zip(last, now, strict=True):
                    state[d] = value
            return (y.astype(x.dtype), *(state.astype(x.dtype) for state in last))

    def step(
        self, given: Array, loop: Array, bias: Array, peephole: Array, *states: Array
    ) -> list[Array]:
        """The next states: from the input's part, recurrent weights and biases."""
        raise NotImplementedError

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        width = inputs[0].dims[2] if inputs[0] else 0
        per_output = self.gates * (width + self.hidden)
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * per_output, moved)


def _split(x: Array, parts: int) -> list[Array]:
    return np.split(x, parts, axis=-1)


class Gru(_Recurrent, name="gru"):
    """Gated recurrent unit; gates update, reset, hidden."""

    gates = 3
    linear_before_reset: bool = False

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None = None,
        h0: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        return self.want_inputs(x, w, r, bias, h0)

    def reference(
        self,
        x: Array,
        w: Array,
        r: Array,
        bias: Array | None = None,
        h0: Array | None = None,
    ) -> tuple[Array, ...]:
        return self.run(x, w, r, bias, h0)

    def step(
        self, given: Array, loop: Array, bias: Array, peephole: Array, *states: Array
    ) -> list[Array]:
        (h,) = states
        xz, xr, xh = _split(given, 3)
        rz, rr, rh = _split(loop, 3)
        bz, br, bh = _split(bias, 3)
        z = formulas.sigmoid(xz + h @ rz + bz)
        reset = formulas.sigmoid(xr + h @ rr + br)
        if self.linear_before_reset:
            fresh = np.tanh(xh + reset * (h @ rh + bh))
        else:
            fresh = np.tanh(xh + (reset * h) @ rh + bh)
        return [(1 - z) * fresh + z * h]

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sizes, direction in _SHAPES:
            for linear in (False, True):
                op = Gru(sizes[3], direction, linear)
                yield from _recurrent_samples(op, sizes)


class Lstm(_Recurrent, name="lstm"):
    """Long short-term memory; gates input, output, forget, cell."""

    gates = 4
    states = 2

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None = None,
        h0: TensorType | None = None,
        c0: TensorType | None = None,
        peephole: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        result = self.want_inputs(x, w, r, bias, h0, c0)
        same_dtype(self, x, peephole)
        ways = len(DIRECTIONS[self.direction])
        want_shape(self, "peephole", peephole, ways, 3 * self.hidden)
        return result

    def reference(
        self,
        x: Array,
        w: Array,
        r: Array,
        bias: Array | None = None,
        h0: Array | None = None,
        c0: Array | None = None,
        peephole: Array | None = None,
    ) -> tuple[Array, ...]:
        return self.run(x, w, r, bias, h0, c0, peephole=peephole)

    def step(
        self, given: Array, loop: Array, bias: Array, peephole: Array, *states: Array
    ) -> list[Array]:
        h, c = states
        si, so, sf, sc = _split(given + h @ loop + bias, 4)
        pi, po, pf = _split(peephole, 3)
        keep = formulas.sigmoid(sf + pf * c)
        c = keep * c + formulas.sigmoid(si + pi * c) * np.tanh(sc)
        return [formulas.sigmoid(so + po * c) * np.tanh(c), c]

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sizes, direction in _SHAPES:
            yield from _recurrent_samples(Lstm(sizes[3], direction), sizes)
        op = Lstm(5, "bidirectional")
        *_, sample = _recurrent_samples(op, (4, 2, 3, 5))
        yield Sample(op, (*sample.inputs, cases.floats(2, 15, seed=9)))


class Rnn(_Recurrent, name="rnn"):
    """One gate with an activation of tanh, relu or sigmoid."""

    activation: str = "tanh"

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None = None,
        h0: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        if self.activation not in ACTIVATIONS:
            raise self.refuse((x,), f"one of {list(ACTIVATIONS)}")
        return self.want_inputs(x, w, r, bias, h0)

    def reference(
        self,
        x: Array,
        w: Array,
        r: Array,
        bias: Array | None = None,
        h0: Array | None = None,
    ) -> tuple[Array, ...]:
        return self.run(x, w, r, bias, h0)

    def step(
        self, given: Array, loop: Array, bias: Array, peephole: Array, *states: Array
    ) -> list[Array]:
        (h,) = states
        return [ACTIVATIONS[self.activation](given + h @ loop + bias)]

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sizes, direction in _SHAPES:
            for activation in ACTIVATIONS:
                op = Rnn(sizes[3], direction, activation)
                yield from _recurrent_samples(op, sizes)


# T, N, I, H and the direction.
_SHAPES = (
    ((1, 1, 1, 1), "forward"),
    ((5, 1, 3, 7), "forward"),
    ((4, 3, 5, 17), "reverse"),
    ((3, 2, 4, 5), "bidirectional"),
    ((3, 0, 2, 3), "forward"),
    ((0, 2, 2, 3), "forward"),
)


def _recurrent_samples(
    op: _Recurrent, sizes: tuple[int, int, int, int]
) -> Iterator[Sample]:
    steps, batch, inputs, hidden = sizes
    ways, width = len(DIRECTIONS[op.direction]), op.gates * hidden
    x = cases.floats(steps, batch, inputs)
    w = PACKED.reference(cases.floats(ways, width, inputs, seed=1))
    r = PACKED.reference(cases.floats(ways, width, hidden, seed=2) * np.float32(0.5))
    bias = cases.floats(ways, 2 * width, seed=3)
    states = [cases.floats(ways, batch, hidden, seed=4 + j) for j in range(op.states)]
    nothing = [None] * op.states
    yield Sample(op, (x, w, r, None, *nothing))
    yield Sample(op, (x, w, r, bias, *states))
