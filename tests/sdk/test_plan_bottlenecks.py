"""Inverted bottlenecks with large images run as one step, and as right as before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import edgewise as ew
from edgewise import ops
from edgewise.ir.graph import Graph, Value, constant, input_value
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.plan import bottlenecks
from edgewise.plan.flat import Flat
from edgewise.plan.plan import Plan, make_plan
from edgewise.types import DType, TensorType

X = TensorType(DType.F32, (2, 9, 11, 5))
WHOLE = ["conv", "depthwise_conv", "conv"]


def f32(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    return found


def pointwise(x: Value, channels: int, residual: Value | None = None) -> Value:
    inputs = x.type.dims[3]
    weight = f32(channels, inputs, 1, 1, seed=channels)
    panels = ops.PackPanels((2, 3, 1, 0)).reference(weight)
    op = ops.Conv(channels, (1, 1), activation="none" if residual else "relu")
    return op(x, constant(panels), None, constant(f32(channels)), residual)


def filtered(x: Value, residual: Value | None = None, **window: Any) -> Value:
    op = ops.DepthwiseConv((3, 3), pads=(1, 1, 1, 1), activation="relu", **window)
    taps = ops.PackTaps().reference(f32(x.type.dims[3], 1, 3, 3))
    return op(x, constant(taps), constant(f32(x.type.dims[3])), None, residual)


def graph(*outputs: Value, inputs: tuple[Value, ...]) -> Graph:
    return Graph(inputs, outputs, tuple(f"y{n}" for n in range(len(outputs))))


def work(plan: Plan) -> list[str]:
    """The ops that have something to do."""
    return [plan.ops[step.node].name for step in plan.steps.rows]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images count as large."""
    monkeypatch.setattr(bottlenecks, "LARGE", 0)


def run(model: Graph, feed: Mapping[str, Array], threads: int) -> list[Array]:
    module = Module({"infer": model}, {}, {})
    with ew.Session(ew.Model(module), ew.SessionConfig(threads=threads)) as session:
        return list(session.run(feed).values())


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("expanded", [0, 20])
def test_one_step_gives_the_bits_of_three(
    monkeypatch: pytest.MonkeyPatch, stride: int, expanded: int
) -> None:
    x = input_value("x", X)
    wide = pointwise(x, expanded) if expanded else x
    middle = filtered(wide, strides=(stride, stride))
    whole = stride == 1 and expanded
    y = pointwise(middle, 5, x) if whole else pointwise(middle, 3)
    model, feed = graph(y, inputs=(x,)), {"x": f32(*X.dims)}
    want = run(model, feed, 1)
    monkeypatch.setattr(bottlenecks, "LARGE", 0)
    assert work(make_plan(Flat(model))) == ["bottleneck"]
    for threads in (1, 2):
        np.testing.assert_array_equal(run(model, feed, threads), want)


@pytest.mark.usefixtures("small")
def test_what_lies_between_takes_no_memory() -> None:
    x = input_value("x", X)
    y = ops.Neg()(pointwise(filtered(pointwise(x, 64)), 4))
    plan = make_plan(Flat(graph(y, inputs=(x,))))
    assert work(plan) == ["bottleneck", "neg"]
    assert [b.size for b in plan.storage.buffers if b.base.place == 0].count(0) == 2


def test_images_that_fit_a_cache_are_whole() -> None:
    x = input_value("x", X)
    y = pointwise(filtered(pointwise(x, 20)), 4)
    assert work(make_plan(Flat(graph(y, inputs=(x,))))) == WHOLE
    large = input_value("x", X.with_shape((1, 60, 60, 8)))
    y = pointwise(filtered(pointwise(large, 96)), 4)
    assert work(make_plan(Flat(graph(y, inputs=(large,))))) == ["bottleneck"]


@pytest.mark.usefixtures("small")
def test_what_others_read_stays_whole() -> None:
    x = input_value("x", X)
    wide = pointwise(x, 20)
    middle = filtered(wide)
    y = pointwise(middle, 30)  # wider than it was: reading twice costs less
    assert work(make_plan(Flat(graph(y, middle, inputs=(x,))))) == WHOLE
    assert work(make_plan(Flat(graph(y, wide, inputs=(x,))))) == WHOLE
    y = pointwise(middle, 4)
    two = make_plan(Flat(graph(y, wide, inputs=(x,))))
    assert work(two) == ["conv", "bottleneck"]


@pytest.mark.usefixtures("small")
def test_residuals_in_between_stay() -> None:
    x = input_value("x", X)
    wide = pointwise(x, 20)
    other = input_value("r", wide.type)
    y = pointwise(filtered(wide, other), 4)
    assert work(make_plan(Flat(graph(y, inputs=(x, other))))) == WHOLE


@pytest.mark.usefixtures("small")
def test_a_profile_names_it_once() -> None:
    x = input_value("x", X)
    model = graph(pointwise(filtered(pointwise(x, 20)), 4), inputs=(x,))
    module = Module({"infer": model}, {}, {})
    with ew.Session(ew.Model(module), ew.SessionConfig(threads=1)) as session:
        rows = session.profile({"x": f32(*X.dims)}, 1).rows
    assert [(row.op, row.kernel) for row in rows] == [("bottleneck", "bottleneck_f32")]
