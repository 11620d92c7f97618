"""A plan knows all sizes, says what Python must do, and where its words point."""

from __future__ import annotations

import pytest

from edgewise import ops
from edgewise.dims import Dim, symbol
from edgewise.errors import ShapeError
from edgewise.ir.graph import Graph, Value, input_value, variable_value
from edgewise.kernels.catalog.base import Binding, Call, In, Launch, Out, Scratch, Temp
from edgewise.plan.bind import bind
from edgewise.plan.flat import Flat
from edgewise.plan.plan import make_plan
from edgewise.plan.storage import ARENA, Base, Place
from edgewise.types import DType, TensorType

N = symbol("N")


def graph(*outputs: Value, inputs: tuple[Value, ...]) -> Flat:
    names = tuple(f"y{index}" for index in range(len(outputs)))
    return Flat(Graph(inputs, outputs, names))


def vector(name: str, size: Dim = 8) -> Value:
    return input_value(name, TensorType(DType.F32, (size,)))


def relu_only(call: Call) -> Binding | None:
    if call.op.name != "relu":
        return None
    words = (In(0, 4), 5, Out(0), Temp(0), Scratch(), In(7))
    return Binding((Launch("first", words, 1), Launch("second", (), 2)), (10,), 64)


def test_sizes_reach_every_type_and_every_attribute() -> None:
    x = vector("x", N)
    y = ops.Reshape((N, 1))(ops.Relu()(x))
    flat = graph(y, inputs=(x,))
    bound, types, sizes = bind(flat, {"N": 3})
    assert bound[1].values == ((3, 1),)
    assert types[flat.outputs[0]] == TensorType(DType.F32, (3, 1))
    assert sizes[flat.outputs[0]] == 12


def test_what_no_symbol_reaches_is_not_inferred_again() -> None:
    x, fixed = vector("x", N), vector("fixed")
    y = ops.Relu()(fixed)
    flat = graph(ops.Relu()(x), y, inputs=(x, fixed))
    _, types, _ = bind(flat, {"N": 3})
    assert types[flat.outputs[1]] is y.type


def test_a_size_that_stays_open_is_refused() -> None:
    x = vector("x", N)
    with pytest.raises(ShapeError, match="the size N"):
        make_plan(graph(ops.Relu()(x), inputs=(x,)))


def test_strings_lie_in_no_arena() -> None:
    x = input_value("x", TensorType(DType.STRING, (2,)))
    joined = ops.Concat(0)(ops.Reshape((1, 2))(x), ops.Reshape((1, 2))(x))
    plan = make_plan(graph(joined, inputs=(x,)))
    assert plan.layout.size == 0
    assert plan.locations[plan.flat.outputs[0]][0].place is Place.OBJECT
    assert [segment.native for segment in plan.segments] == [False]


def test_segments_part_where_a_reference_must_run_and_say_why() -> None:
    x = vector("x")
    a = ops.Relu()(ops.Relu()(x))
    b = ops.Reshape((2, 4))(ops.Neg()(a))
    y = ops.Relu()(b)
    plan = make_plan(graph(y, inputs=(x,)), find=relu_only)
    assert [segment.native for segment in plan.segments] == [True, False, True]
    assert [segment.nodes for segment in plan.segments] == [(0, 1), (2,), (4,)]
    assert "neg" in plan.segments[1].reason


def test_words_count_from_the_memory_that_holds_the_value() -> None:
    x = vector("x")
    plan = make_plan(graph(ops.Relu()(x), inputs=(x,)), workers=3, find=relu_only)
    steps = plan.steps
    assert [(row.symbol, row.tasks, row.node) for row in steps.rows] == [
        ("first", 1, 0),
        ("second", 2, 0),
    ]
    assert steps.addresses[Base(Place.INPUT, 0)] == [0]
    assert steps.addresses[Base(Place.OUTPUT, 0)] == [2]
    assert steps.addresses[ARENA] == [3, 4]
    assert steps.words[:3] == [4, 5, 0]
    assert steps.words[5] == 0  # an input that is absent
    assert {steps.words[3], steps.words[4]} == {0, 192}
    assert plan.layout.size == 3 * 64 + 64
    assert plan.layout.lower_bound == 3 * 64 + 10


def test_a_plan_without_work_has_no_segments() -> None:
    w = variable_value("w", TensorType(DType.F32, (4,)))
    plan = make_plan(graph(ops.Reshape((2, 2))(w), inputs=()))
    assert plan.segments == ()
    assert plan.output_copies == (0,)
