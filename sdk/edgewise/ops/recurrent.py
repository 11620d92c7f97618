"""Recurrent layers, with ONNX's equations and gate orders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Sample
from edgewise.ops import cases
from edgewise.ops.checks import same_dtype, want_shape
from edgewise.ops.gates import GATES
from edgewise.ops.pack import PackPanels
from edgewise.ops.recurrence import DIRECTIONS, Gates, Recurrent
from edgewise.types import TensorType

PACKED = PackPanels((0, 2, 1), batch=1)


def _split(x: Array, parts: int) -> list[Array]:
    return np.split(x, parts, axis=-1)


class Gru(Recurrent, name="gru"):
    """Gated recurrent unit; gates update, reset, hidden."""

    gates = 3
    usual = ("sigmoid", "tanh")
    linear_before_reset: bool = False

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None = None,
        h0: TensorType | None = None,
        lengths: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        return self.want_inputs(x, w, r, bias, h0, lengths=lengths)

    def reference(
        self,
        x: Array,
        w: Array,
        r: Array,
        bias: Array | None = None,
        h0: Array | None = None,
        lengths: Array | None = None,
    ) -> tuple[Array, ...]:
        return self.run(x, w, r, bias, h0, lengths=lengths)

    def step(
        self,
        gates: Gates,
        given: Array,
        loop: Array,
        bias: Array,
        peephole: Array,
        *states: Array,
    ) -> list[Array]:
        (h,), (f, g) = states, gates
        xz, xr, xh = _split(given, 3)
        rz, rr, rh = _split(loop, 3)
        bz, br, bh = _split(bias, 3)
        z = f(xz + h @ rz + bz)
        reset = f(xr + h @ rr + br)
        if self.linear_before_reset:
            fresh = g(xh + reset * (h @ rh + bh))
        else:
            fresh = g(xh + (reset * h) @ rh + bh)
        return [(1 - z) * fresh + z * h]

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sizes, direction in _SHAPES:
            for linear in (False, True):
                op = Gru(sizes[3], direction, linear_before_reset=linear)
                yield from _recurrent_samples(op, sizes)
        yield from _unusual_samples(Gru(5))


class Lstm(Recurrent, name="lstm"):
    """Long short-term memory; gates input, output, forget, cell."""

    gates = 4
    states = 2
    usual = ("sigmoid", "tanh", "tanh")
    input_forget: bool = False

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None = None,
        h0: TensorType | None = None,
        c0: TensorType | None = None,
        peephole: TensorType | None = None,
        lengths: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        result = self.want_inputs(x, w, r, bias, h0, c0, lengths=lengths)
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
        lengths: Array | None = None,
    ) -> tuple[Array, ...]:
        states = h0, c0
        return self.run(x, w, r, bias, *states, peephole=peephole, lengths=lengths)

    def step(
        self,
        gates: Gates,
        given: Array,
        loop: Array,
        bias: Array,
        peephole: Array,
        *states: Array,
    ) -> list[Array]:
        (h, c), (f, g, last) = states, gates
        si, so, sf, sc = _split(given + h @ loop + bias, 4)
        pi, po, pf = _split(peephole, 3)
        take = f(si + pi * c)
        keep = 1 - take if self.input_forget else f(sf + pf * c)
        c = keep * c + take * g(sc)
        return [f(so + po * c) * last(c), c]

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sizes, direction in _SHAPES:
            yield from _recurrent_samples(Lstm(sizes[3], direction), sizes)
        op = Lstm(5, "bidirectional")
        *_, sample = _recurrent_samples(op, (4, 2, 3, 5))
        yield Sample(op, (*sample.inputs, cases.floats(2, 15, seed=9)))
        yield Sample(op.replace(input_forget=True), sample.inputs)
        yield from _unusual_samples(Lstm(5))


class Rnn(Recurrent, name="rnn"):
    """One gate with an activation, ``activation`` where ``activations`` names none."""

    usual = ("tanh",)
    activation: str = "tanh"

    @property
    def gate_names(self) -> tuple[str, ...]:
        return self.activations or (self.activation,) * len(DIRECTIONS[self.direction])

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None = None,
        h0: TensorType | None = None,
        lengths: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        return self.want_inputs(x, w, r, bias, h0, lengths=lengths)

    def reference(
        self,
        x: Array,
        w: Array,
        r: Array,
        bias: Array | None = None,
        h0: Array | None = None,
        lengths: Array | None = None,
    ) -> tuple[Array, ...]:
        return self.run(x, w, r, bias, h0, lengths=lengths)

    def step(
        self,
        gates: Gates,
        given: Array,
        loop: Array,
        bias: Array,
        peephole: Array,
        *states: Array,
    ) -> list[Array]:
        (h,), (f,) = states, gates
        return [f(given + h @ loop + bias)]

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sizes, direction in _SHAPES:
            for activation in ("tanh", "relu", "sigmoid"):
                op = Rnn(sizes[3], direction, activation=activation)
                yield from _recurrent_samples(op, sizes)
        yield from _unusual_samples(Rnn(5))


# T, N, I, H and the direction.
_SHAPES = (
    ((1, 1, 1, 1), "forward"),
    ((5, 1, 3, 7), "forward"),
    ((4, 3, 5, 17), "reverse"),
    ((3, 2, 4, 5), "bidirectional"),
    ((3, 9, 4, 18), "bidirectional"),
    ((3, 0, 2, 3), "forward"),
    ((0, 2, 2, 3), "forward"),
)


def _recurrent_samples(
    op: Recurrent, sizes: tuple[int, int, int, int]
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


def _unusual_samples(op: Recurrent) -> Iterator[Sample]:
    """Other activations, bounds, sequences of different lengths."""
    both = op.replace(hidden=5, direction="bidirectional")
    *_, sample = _recurrent_samples(both, (4, 3, 3, 5))
    lengths = cases.whole(3, dtype="int32", low=0, high=5)
    hole = [None] * (op.states - 1)
    for way in DIRECTIONS:
        one = op.replace(hidden=5, direction=way)
        *_, plain = _recurrent_samples(one, (4, 3, 3, 5))
        yield Sample(one, (*plain.inputs, *hole, lengths))
    yield Sample(both.replace(clip=0.5), sample.inputs)
    count = 2 * len(op.usual)
    for start in range(0, len(GATES), count):
        names = (*GATES, *GATES)[start : start + count]
        gates = [GATES[name] for name in names]
        other = both.replace(
            activations=names,
            alphas=tuple(gate.alpha or 0.0 for gate in gates),
            betas=tuple(gate.beta or 0.0 for gate in gates),
        )
        yield Sample(other, sample.inputs)
