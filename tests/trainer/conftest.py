"""Finite differences: what every gradient is held against, in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, constant, input_value
from edgewise.ir.op import Array, Op
from edgewise.ir.reference import outputs
from edgewise.types import DType, TensorType
from edgewise_trainer.autodiff import backward

STEP = 1e-5
# Central differences err by STEP ** 2 and by rounding over STEP.
RTOL, ATOL = 2e-5, 1e-7
# Where the two sides differ by more there is a corner, and no derivative to compare.
CORNER = 1e-3
LARGEST = 300  # elements of real inputs: differences take three runs for each


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
    compared = 0
    for key in keys:
        got = found.get(f"d{key}", np.zeros_like(feeds[key]))
        want, smooth = _difference(forward, feeds, key)
        scale = max(np.abs(want[smooth]).max(initial=0.0), 1.0)
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
    seeds = {
        y: constant(np.asarray(rng.standard_normal(y.type.dims)))
        for y in op.node(*inputs)
        if y.type.dtype.is_float
    }
    pairs = [value for pair in seeds.items() for value in pair]
    names = tuple(f"{letter}{i}" for i in range(len(seeds)) for letter in "yw")
    real = [value for value in given if value.type.dtype.is_float]
    grads = backward(seeds, real)
    keys = {value: f"d{value.node.label}" for value in grads}
    return (
        Graph(given, tuple(pairs), names),
        Graph(given, tuple(grads.values()), tuple(keys.values())),
        [value.node.label for value in real],
    )


def type_of(array: Array) -> TensorType:
    """The type of an array."""
    return TensorType(DType.of(array.dtype), array.shape)


def _difference(
    forward: Graph, feeds: dict[str, Array], key: str
) -> tuple[Array, Array]:
    """The derivative at every element of an input, and where there is one."""

    def total(place: tuple[int, ...], step: float) -> float:
        array = feeds[key].copy()
        array[place] += step
        outputs, _ = evaluate(forward, {**feeds, key: array}, {})
        values = list(outputs.values())
        pairs = zip(values[::2], values[1::2], strict=True)
        return float(sum((y * w).sum() for y, w in pairs))

    want, smooth = np.zeros(feeds[key].shape), np.zeros(feeds[key].shape, bool)
    for place in np.ndindex(want.shape):
        low, here, high = (total(place, step) for step in (-STEP, 0.0, STEP))
        left, right = (here - low) / STEP, (high - here) / STEP
        want[place] = (high - low) / (2 * STEP)
        smooth[place] = abs(right - left) <= CORNER * max(abs(left), abs(right), 1.0)
    return want, smooth


def fits(op: Op, arrays: tuple[Array | None, ...]) -> bool:
    """Whether differences can be taken: real, finite, never rounded, not too many."""
    real = [x for x in arrays if x is not None and x.dtype.kind == "f"]
    finite = all(x.dtype.itemsize >= 4 and np.isfinite(x).all() for x in real)
    if not real or not finite or sum(x.size for x in real) > LARGEST:
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
