"""Graphs run by references: feeds, variables, sizes, observers, errors."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.dims import symbol
from edgewise.errors import DTypeError, InternalError, KernelError, ShapeError
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Node, constant, input_value, variable_value
from edgewise.ir.op import Array
from edgewise.ir.sizes import solve
from edgewise.ops import Add, Div, Gather, Relu, Reshape, TopK
from edgewise.types import DType, TensorType

N, T = symbol("N"), symbol("T")
F32 = TensorType(DType.F32, (N, 3))


def test_outputs_and_updates_come_by_name() -> None:
    x, s = input_value("x", F32), variable_value("s", TensorType(DType.F32, (3,)))
    y = Relu()(Add()(x, s))
    graph = Graph((x,), (y, x), ("y", "same"), {"s": Add()(s, s)})
    feeds = {"x": np.asarray([[-1, 0, 1], [2, -5, 4]], "f4")}
    outputs, updates = evaluate(graph, feeds, {"s": np.ones(3, "f4")})
    np.testing.assert_array_equal(outputs["y"], [[0, 1, 2], [3, 0, 5]])
    np.testing.assert_array_equal(outputs["same"], feeds["x"])
    np.testing.assert_array_equal(updates["s"], [2, 2, 2])


def test_symbols_in_attributes_follow_the_feeds() -> None:
    x = input_value("x", F32)
    graph = Graph((x,), (Reshape((3 * N,))(x),), ("y",))
    for rows in (0, 1, 5):
        outputs, _ = evaluate(graph, {"x": np.zeros((rows, 3), "f4")}, {})
        assert outputs["y"].shape == (3 * rows,)


def test_an_observer_sees_every_node_with_all_its_outputs() -> None:
    x = input_value("x", TensorType(DType.F32, (5,)))
    values, _ = TopK(2, 0).node(x, label="top")
    seen: list[tuple[str, int]] = []

    def observer(node: Node, arrays: tuple[Array, ...]) -> None:
        assert all(type_.is_static for type_ in node.types)
        seen.append((node.op.name, len(arrays)))

    graph = Graph((x,), (Relu()(values),), ("y",))
    evaluate(graph, {"x": np.arange(5, dtype="f4")}, {}, observer)
    assert seen == [("input", 1), ("top_k", 2), ("relu", 1)]


@pytest.mark.parametrize(
    ("feeds", "error", "text"),
    [
        ({}, ShapeError, "'x' is missing"),
        ({"x": np.zeros((2, 4), "f4")}, ShapeError, "axis 1"),
        ({"x": np.zeros(3, "f4")}, ShapeError, "1 axes"),
        ({"x": np.zeros((2, 3), "f8")}, DTypeError, "float64"),
    ],
)
def test_feeds_that_do_not_fit(
    feeds: dict[str, Array], error: type[Exception], text: str
) -> None:
    x = input_value("x", F32)
    with pytest.raises(error, match=text):
        evaluate(Graph((x,), (Relu()(x),), ("y",)), feeds, {})


def test_variables_must_be_there_and_fit() -> None:
    w = variable_value("w", TensorType(DType.F32, (3,)))
    graph = Graph((), (w,), ("y",))
    with pytest.raises(InternalError, match="'w' has no array"):
        evaluate(graph, {}, {})
    with pytest.raises(InternalError, match="'w'"):
        evaluate(graph, {}, {"w": np.zeros(4, "f4")})


def test_a_value_an_op_is_not_defined_for_names_the_node() -> None:
    zero, table = constant(np.asarray(0)), constant(np.arange(3))
    by_zero = Div()(constant(np.asarray(1)), zero, label="ratio")
    with pytest.raises(KernelError, match=r"div \(node 'ratio'\).*division by zero"):
        evaluate(Graph((), (by_zero,), ("y",)), {}, {})
    for index in (3, -4):
        picked = Gather()(table, constant(np.asarray(index)), label="pick")
        with pytest.raises(KernelError, match=r"node 'pick'.*out of range"):
            evaluate(Graph((), (picked,), ("y",)), {}, {})


def sizes_of(shape: tuple[object, ...], given: tuple[int, ...]) -> dict[str, int]:
    x = input_value("x", TensorType(DType.F32, shape))  # type: ignore[arg-type]
    return solve(Graph((x,), (x,), ("y",)), {"x": given})


def test_sizes_are_solved_from_lines_and_from_each_other() -> None:
    assert sizes_of((N, T), (2, 0)) == {"N": 2, "T": 0}
    assert sizes_of((2 * N + 1,), (7,)) == {"N": 3}
    assert sizes_of((N + T, N), (7, 3)) == {"N": 3, "T": 4}
    assert sizes_of((N * T, N), (12, 3)) == {"N": 3, "T": 4}


@pytest.mark.parametrize(
    ("shape", "given"),
    [
        ((N, N), (2, 3)),
        ((2 * N,), (3,)),
        ((N + 1,), (0,)),
        ((N + T,), (7,)),
        ((N * N,), (9,)),
    ],
)
def test_shapes_that_no_sizes_give(
    shape: tuple[object, ...], given: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match="input 'x'"):
        sizes_of(shape, given)
