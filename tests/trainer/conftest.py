"""Finite differences: what every gradient is held against, in double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    input_value,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.ir.reference import outputs
from edgewise.types import DType, TensorType
from edgewise_trainer.autodiff import backward
from edgewise_trainer.form import PRODUCTS, trainable_form

STEP = 1e-5
# Central differences err by STEP ** 2 and by rounding over STEP.
RTOL, ATOL = 2e-5, 1e-7
# Where the two sides differ by more there is a corner, and no derivative to compare.
CORNER = 1e-3
LARGEST = 300  # elements of real inputs: differences take three runs for each
# Inputs that say how, not what: a rule refuses to train them.
OPTIONS = {"resize": (1, 2)}
HUGE = 1e6  # what such values add to is too coarse for differences
DIRECTIONS = 4  # beyond that, differences along so many random directions


@pytest.fixture
def check_gradient() -> Callable[..., int]:
    """Compares all gradients of an op; gives the number of elements compared."""
    return check


def doubled(array: Array | None) -> Array | None:
    """Floats in double precision; whole numbers as they are."""
    if array is None or array.dtype.kind != "f":
        return array
    return np.asarray(array, np.float64)


def check(op: Op, arrays: tuple[Array | None, ...], seed: int = 0) -> int:
    """Compare all gradients of an op; the number of elements compared.

    Raises:
        AssertionError: A gradient differs.
    """
    arrays = tuple(map(doubled, arrays))
    forward, whole, keys = _graphs(op, arrays, seed)
    feeds = {f"x{i}": a for i, a in enumerate(arrays) if a is not None}
    found, _ = evaluate(whole, feeds, {})
    few = sum(feeds[key].size for key in keys) <= LARGEST
    compared = 0
    for key in keys:
        grad = found.get(f"d{key}", np.zeros_like(feeds[key]))
        if few:
            got, (want, smooth) = grad, _difference(forward, feeds, key)
        else:
            ways = _directions(feeds[key], seed)
            got = np.asarray([(grad * way).sum() for way in ways])
            want, smooth = _along(forward, feeds, key, ways)
        scale = np.abs([*want[smooth], *feeds[key].ravel()]).max(initial=1.0)
        np.testing.assert_allclose(
            got[smooth], want[smooth], RTOL, ATOL * scale, err_msg=f"{op} d{key}"
        )
        compared += int(smooth.sum())
    return compared


def _graphs(
    op: Op, arrays: tuple[Array | None, ...], seed: int
) -> tuple[Graph, Graph, list[str]]:
    """A weighted sum of the op's outputs; its gradients; the names of real inputs."""
    inputs = [
        None if a is None else input_value(f"x{i}", type_of(a))
        for i, a in enumerate(arrays)
    ]
    given = tuple(value for value in inputs if value is not None)
    rng = np.random.default_rng(seed)
    made, apart = op.node(*inputs), _apart(op, inputs)
    weights = {
        index: constant(np.asarray(rng.standard_normal(y.type.dims)))
        for index, y in enumerate(made)
        if y.type.dtype.is_float
    }
    pairs = [v for index, weight in weights.items() for v in (made[index], weight)]
    names = tuple(f"{letter}{i}" for i in range(len(weights)) for letter in "yw")
    options = [inputs[i] for i in OPTIONS.get(op.name, ()) if i < len(inputs)]
    real = [v for v in given if v.type.dtype.is_float and v not in options]
    seeds = {apart[index]: weight for index, weight in weights.items()}
    grads = backward(seeds, real)
    keys = {value: f"d{value.node.label}" for value in grads}
    return (
        Graph(given, tuple(pairs), names),
        Graph(given, tuple(grads.values()), tuple(keys.values())),
        [value.node.label for value in real],
    )


def _apart(op: Op, inputs: Sequence[Value | None]) -> tuple[Value, ...]:
    """The outputs of an op; of a product in the form in which it is trained."""
    if not isinstance(op, PRODUCTS):
        return op.node(*inputs)
    given = {value.node.label: value for value in inputs if value is not None}
    read = [v if v is None else variable_value(v.node.label, v.type) for v in inputs]
    graph = Graph((), op.node(*read), ("y",))
    infos = {k: VariableInfo(k, v.type, Role.PARAMETER) for k, v in given.items()}
    form = trainable_form(Module({"infer": graph}, infos), given.keys())

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Variable):
            return (given[node.op.key],)
        return with_inputs(node, inputs)

    return form.graph.rebuild(visit).outputs


def type_of(array: Array) -> TensorType:
    """The type of an array."""
    return TensorType(DType.of(array.dtype), array.shape)


def _total(forward: Graph, feeds: dict[str, Array], key: str, array: Array) -> float:
    """The weighted sum of all outputs with one input replaced."""
    outputs, _ = evaluate(forward, {**feeds, key: array}, {})
    values = list(outputs.values())
    return float(
        sum((y * w).sum() for y, w in zip(values[::2], values[1::2], strict=True))
    )


def _slope(
    forward: Graph, feeds: dict[str, Array], key: str, step: Array
) -> tuple[float, bool]:
    """The derivative of the sum along ``step``, and whether there is one."""
    x = feeds[key]
    low, here, high = (
        _total(forward, feeds, key, x + side * STEP * step) for side in (-1, 0, 1)
    )
    left, right = (here - low) / STEP, (high - here) / STEP
    smooth = abs(right - left) <= CORNER * max(abs(left), abs(right), 1.0)
    return (high - low) / (2 * STEP), smooth


def _along(
    forward: Graph, feeds: dict[str, Array], key: str, ways: Array
) -> tuple[Array, Array]:
    found = [_slope(forward, feeds, key, way) for way in ways]
    return np.asarray([s for s, _ in found]), np.asarray([ok for _, ok in found])


def _directions(like: Array, seed: int) -> Array:
    """Random directions of unit length, one after the other."""
    ways = np.random.default_rng(seed).standard_normal((DIRECTIONS, *like.shape))
    return np.asarray([way / np.sqrt((way * way).sum()) for way in ways])


def _difference(
    forward: Graph, feeds: dict[str, Array], key: str
) -> tuple[Array, Array]:
    """The derivative at every element of an input, and where there is one."""
    want, smooth = np.zeros(feeds[key].shape), np.zeros(feeds[key].shape, bool)
    for place in np.ndindex(want.shape):
        step = np.zeros(want.shape)
        step[place] = 1.0
        want[place], smooth[place] = _slope(forward, feeds, key, step)
    return want, smooth


def fits(op: Op, arrays: tuple[Array | None, ...]) -> bool:
    """Whether differences can be taken: real, finite, never rounded."""
    real = [x for x in arrays if x is not None and x.dtype.kind == "f"]
    finite = all(x.dtype.itemsize >= 4 and np.isfinite(x).all() for x in real)
    if not real or not finite or any(np.abs(x).max(initial=0.0) > HUGE for x in real):
        return False
    doubles = tuple(map(doubled, arrays))
    made = op.infer_all(tuple(None if x is None else type_of(x) for x in doubles))
    if any(y.dtype in {DType.F32, DType.F16} for y in made):
        return False
    return all(np.isfinite(y).all() for y in outputs(op, doubles, made))


@pytest.fixture
def differentiable() -> Callable[..., bool]:
    """Whether differences of an op can be taken at these inputs."""
    return fits
