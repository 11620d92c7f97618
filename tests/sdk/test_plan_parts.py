"""Concats and slices that cost nothing: values that lie in others."""

from __future__ import annotations

import numpy as np

from edgewise import ops
from edgewise.ir.graph import Graph, Value, constant, input_value
from edgewise.kernels.catalog.base import find
from edgewise.plan.flat import Flat
from edgewise.plan.plan import Plan, make_plan
from edgewise.plan.seats import regrouped
from edgewise.types import DType, TensorType

X = TensorType(DType.F32, (2, 5, 24))


def planned(*outputs: Value, inputs: tuple[Value, ...]) -> Plan:
    names = tuple(f"out{index}" for index in range(len(outputs)))
    return make_plan(Flat(Graph(inputs, outputs, names)))


def product(x: Value, columns: int) -> Value:
    panels = np.ones((-(-columns // 16), x.type.dims[-1], 16), np.float32)
    return ops.Linear(columns)(x, constant(panels), None, None, None)


def columns(x: Value, first: int, count: int) -> Value:
    sizes = (*x.type.dims[:-1], count)
    return ops.Slice((0, 0, first), sizes, (1, 1, 1))(x)


def work(plan: Plan) -> list[str]:
    """The ops that have something to do."""
    return [plan.ops[step.node].name for step in plan.steps.rows]


def test_a_concat_of_products_is_no_work() -> None:
    x = input_value("x", X)
    joined = ops.Concat(2)(product(x, 10), product(x, 7))
    assert work(planned(joined, inputs=(x,))) == ["linear", "linear"]


def test_a_slice_that_a_product_reads_is_no_work() -> None:
    x = input_value("x", X)
    plan = planned(product(columns(x, 3, 8), 5), inputs=(x,))
    assert work(plan) == ["linear"]


def test_a_kernel_that_takes_no_strides_gets_a_copy() -> None:
    x = input_value("x", X)
    assert work(planned(ops.Exp()(columns(x, 3, 8)), inputs=(x,))) == ["slice", "exp"]


def test_rows_that_lie_together_are_read_by_any_kernel() -> None:
    x = input_value("x", TensorType(DType.F32, (4, 24)))
    rows = ops.Slice((1, 0), (2, 24), (1, 1))(x)
    plan = planned(ops.Exp()(rows), inputs=(x,))
    assert work(plan) == ["exp"]
    assert plan.locations[plan.flat.reads[1][0]][1] == 24 * 4


def test_what_a_caller_gets_lies_in_nothing_else() -> None:
    x = input_value("x", X)
    part, y = columns(x, 3, 8), product(x, 10)
    joined = ops.Concat(2)(y, product(x, 7))
    plan = planned(joined, y, part, inputs=(x,))
    assert work(plan) == ["linear", "linear", "concat", "slice"]


def test_a_value_joined_twice_is_copied_once() -> None:
    x = input_value("x", X)
    y = product(x, 10)
    plan = planned(ops.Concat(2)(y, y), inputs=(x,))
    assert work(plan) == ["linear", "concat"]


def test_parts_hold_parts() -> None:
    x = input_value("x", X)
    inner = ops.Concat(2)(product(x, 10), product(x, 7))
    outer = ops.Concat(2)(product(inner, 3), inner)
    assert work(planned(outer, inputs=(x,))) == ["linear"] * 3


def test_nothing_is_shared_that_makes_the_fullest_moment_fuller() -> None:
    x = input_value("x", X)
    early, wide = product(x, 3), product(x, 4000)
    late = product(wide, 2000)
    plan = planned(product(ops.Concat(2)(early, late), 1), inputs=(x,))
    assert work(plan)[-2:] == ["concat", "linear"]
    apart = make_plan(plan.flat, find=lambda c: None if any(c.writes) else find(c))
    assert plan.layout.lower_bound == apart.layout.lower_bound


def test_strides_under_other_sizes() -> None:
    assert regrouped((2, 3, 4), (100, 8, 1), (2, 12)) is None
    assert regrouped((2, 3, 4), (24, 8, 1), (6, 2, 2)) == (8, 2, 1)
    assert regrouped((6, 4), (8, 1), (2, 1, 3, 4)) == (24, 24, 8, 1)
    assert regrouped((1, 1), (5, 1), (1,)) == (1,)
    assert regrouped((0, 4), (8, 1), (4, 0)) == (0, 1)
