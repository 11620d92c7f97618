"""What the ways back through recurrent layers share: slopes, states, directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from edgewise.ir.op import Array
from edgewise.named import NamedTuple
from edgewise.ops.checks import FLOATS, INDICES, same_dtype, want, want_shape, wide
from edgewise.ops.derivatives import derivative
from edgewise.ops.gates import GATES
from edgewise.ops.pack import PANEL, matrices, panels
from edgewise.ops.recurrence import DIRECTIONS, Recurrent
from edgewise.types import TensorType

Slope = Callable[[Array], Array]
_OWN: dict[str, Callable[[Array, float, float], Array]] = {
    "affine": lambda x, a, _b: np.full_like(x, a),
    "thresholded_relu": lambda x, a, _b: np.where(x > a, 1.0, 0.0),
    "scaled_tanh": lambda x, a, b: a * b * (1 - np.tanh(b * x) ** 2),
    "softsign": lambda x, _a, _b: 1 / np.square(1 + np.abs(x)),
}


def slopes(op: Recurrent, way: int) -> tuple[Slope, ...]:
    """Derivatives of the activations of a direction; zero where the bound cuts off."""

    def slope(place: int) -> Slope:
        name = op.gate_names[place]
        alpha = op.alphas[place] if op.alphas else GATES[name].alpha or 0.0
        beta = op.betas[place] if op.betas else GATES[name].beta or 0.0
        bound = op.clip or np.inf

        def found(x: Array) -> Array:
            own = _OWN.get(name)
            if own is None:
                plain = derivative(name, x, alpha, beta)
            else:
                plain = own(x, alpha, beta)
            return np.asarray(np.where(np.abs(x) <= bound, plain, 0.0))

        return found

    first = way * len(op.usual)
    return tuple(map(slope, range(first, first + len(op.usual))))


class Way(NamedTuple):
    """One direction on the way back, in double precision.

    Attributes:
        order: Its steps, the last first.
        sums: What the input adds to its gates, ``[T, N, …]``.
        loop: Recurrent weights ``[H, G * H]``.
        bias: Of the state's part.
        before: The state that each step began with.
        active: Whether each step of each sequence lies within its length.
        dy: Gradients of what the steps gave.
    """

    order: list[int]
    sums: Array
    loop: Array
    bias: Array
    before: Array
    active: Array
    dy: Array


def want_way_back(
    op: Recurrent,
    given: TensorType,
    r: TensorType,
    bias: TensorType | None,
    y: TensorType,
    *states: TensorType | None,
    lengths: TensorType | None,
) -> None:
    """Raise unless all inputs fit; ``states`` are those and their gradients."""
    same_dtype(op, given, r, bias, y, *states)
    want(op, (given,), FLOATS)
    want(op, (lengths,), INDICES)
    ways, width = len(DIRECTIONS[op.direction]), op.gates * op.hidden
    if given.rank != 4:
        raise op.refuse((given,), "gates [T, D, N, G * H]")
    steps, _, batch, _ = given.shape
    want_shape(op, "given", given, steps, ways, batch, width)
    want_shape(op, "r", r, ways * panels(width), op.hidden, PANEL)
    want_shape(op, "bias", bias, ways, 2 * width)
    want_shape(op, "y", y, steps, ways, batch, op.hidden)
    want_shape(op, "lengths", lengths, batch)
    for state in states:
        want_shape(op, "state", state, ways, batch, op.hidden)


def ways_back(
    op: Recurrent,
    given: Array,
    r: Array,
    bias: Array | None,
    h0: Array | None,
    y: Array,
    dy: Array,
    lengths: Array | None,
) -> Iterator[Way]:
    """Each direction with the states that its steps began with."""
    steps, ways, batch, width = given.shape
    loops = matrices(wide(r), width)
    start = np.zeros((ways, batch, op.hidden)) if h0 is None else wide(h0)
    offset = np.zeros((ways, 2 * width)) if bias is None else wide(bias)
    active = op.within(steps, batch, lengths)
    for d, sign in enumerate(DIRECTIONS[op.direction]):
        rows = wide(y[:, d])[::sign]
        was = active[::sign][:-1]
        earlier = np.where(was, rows[:-1], start[d])
        before = np.concatenate([start[d][None][: min(steps, 1)], earlier])[::sign]
        order = list(range(steps)[::sign])[::-1]
        parts = loops[d], offset[d, width:], before, active, wide(dy[:, d])
        yield Way(order, wide(given[:, d]), *parts)
