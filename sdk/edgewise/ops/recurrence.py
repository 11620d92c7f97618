"""What recurrent layers share: directions, lengths, activations, the steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from edgewise.errors import INDEX_OUT_OF_RANGE
from edgewise.ir.op import Array, Cost, Op
from edgewise.ops.checks import (
    FLOATS,
    INDICES,
    same_dtype,
    stopped,
    want,
    want_shape,
    wide,
)
from edgewise.ops.gates import GATES
from edgewise.ops.pack import PANEL, matrices, panels
from edgewise.types import TensorType

DIRECTIONS = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}
# The activations of one direction.
Gates = tuple[Callable[[Array], Array], ...]


class Recurrent(Op):
    """Steps over ``x[T, N, I]``, by panels of weights, in one direction or both.

    ``activations`` names those of every direction in turn (none: the usual ones);
    ``alphas`` and ``betas`` hold a parameter for each.  What goes into an activation is
    cut off at ``clip`` (0: not at all).  ``lengths[N]`` are the steps of each sequence:
    beyond them y is zero, and the states stay as they are.

    Class Attributes:
        gates: How many gates share one set of panels.
        states: How many states go from step to step.
        usual: The usual activations of one direction.
    """

    gates = 1
    states = 1
    usual: ClassVar[tuple[str, ...]] = ()
    hidden: int
    direction: str = "forward"
    activations: tuple[str, ...] = ()
    alphas: tuple[float, ...] = ()
    betas: tuple[float, ...] = ()
    clip: float = 0.0

    def want_inputs(
        self,
        x: TensorType,
        w: TensorType,
        r: TensorType,
        bias: TensorType | None,
        *states: TensorType | None,
        lengths: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        """Types of y and of the last states, once all inputs fit."""
        same_dtype(self, x, w, r, bias, *states)
        want(self, (x,), FLOATS)
        want(self, (lengths,), INDICES)
        if x.rank != 3 or self.direction not in DIRECTIONS:
            raise self.refuse((x,), f"x[T, N, I] and one of {list(DIRECTIONS)}")
        self._want_gates(x)
        ways, width = len(DIRECTIONS[self.direction]), self.gates * self.hidden
        want_shape(self, "w", w, ways * panels(width), x.shape[2], PANEL)
        want_shape(self, "r", r, ways * panels(width), self.hidden, PANEL)
        want_shape(self, "bias", bias, ways, 2 * width)
        want_shape(self, "lengths", lengths, x.shape[1])
        last = (ways, x.shape[1], self.hidden)
        for state in states:
            want_shape(self, "state", state, *last)
        y = x.with_shape((x.shape[0], *last))
        return (y, *[x.with_shape(last)] * self.states)

    def _want_gates(self, x: TensorType) -> None:
        names, count = self.gate_names, len(DIRECTIONS[self.direction])
        if len(names) != count * len(self.usual) or not set(names) <= GATES.keys():
            raise self.refuse((x,), f"{len(self.usual)} of {list(GATES)} a direction")
        parameters = self.alphas, self.betas
        if self.activations and any(len(each) != len(names) for each in parameters):
            raise self.refuse((x,), "an alpha and a beta for every activation")
        if not self.clip >= 0:
            raise self.refuse((x,), f"a bound of 0 or more, not {self.clip}")

    @property
    def gate_names(self) -> tuple[str, ...]:
        """Names of the activations of all directions."""
        return self.activations or self.usual * len(DIRECTIONS[self.direction])

    def functions(self, way: int) -> Gates:
        """The activations of a direction, what goes into them cut off."""

        def function(place: int) -> Callable[[Array], Array]:
            gate = GATES[self.gate_names[place]]
            alpha = self.alphas[place] if self.alphas else gate.alpha or 0.0
            beta = self.betas[place] if self.betas else gate.beta or 0.0
            bound = self.clip or np.inf
            return lambda x: gate.apply(np.clip(x, -bound, bound), alpha, beta)

        first = way * len(self.usual)
        return tuple(map(function, range(first, first + len(self.usual))))

    def run(
        self,
        x: Array,
        w: Array,
        r: Array,
        bias: Array | None,
        *states: Array | None,
        peephole: Array | None = None,
        lengths: Array | None = None,
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
        active = self.within(len(x), x.shape[1], lengths)
        with np.errstate(all="ignore"):
            for d, sign in enumerate(signs):
                now, gates = [state[d] for state in start], self.functions(d)
                for t in range(len(x))[::sign]:
                    given = wide(x[t]) @ weights[d] + bias[d, :width]
                    parts = given, loops[d], bias[d, width:], wide(hole[d])
                    fresh = self.step(gates, *parts, *now)
                    pairs = zip(fresh, now, strict=True)
                    now = [np.where(active[t], new, old) for new, old in pairs]
                    y[t, d] = np.where(active[t], now[0], 0.0)
                for state, value in zip(last, now, strict=True):
                    state[d] = value
            return (y.astype(x.dtype), *(state.astype(x.dtype) for state in last))

    def within(self, steps: int, batch: int, lengths: Array | None) -> Array:
        """Whether each step of each sequence lies within its length."""
        if lengths is None:
            return np.ones((steps, batch, 1), bool)
        if np.any((lengths < 0) | (lengths > steps)):
            raise stopped(self, INDEX_OUT_OF_RANGE)
        return np.asarray(np.arange(steps)[:, None, None] < lengths[:, None])

    def step(
        self,
        gates: Gates,
        given: Array,
        loop: Array,
        bias: Array,
        peephole: Array,
        *states: Array,
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
