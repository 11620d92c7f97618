"""Graphs: order, rebuilding, binding, constants."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.dims import symbol
from edgewise.errors import InternalError, ShapeError
from edgewise.ir.graph import (
    Constant,
    Graph,
    Inputs,
    Node,
    Value,
    constant,
    constant_array,
    input_value,
    variable_value,
    with_inputs,
)
from edgewise.ops import Add, MatMul, Neg, Relu, Reshape
from edgewise.types import DType, TensorType

N = symbol("N")
F32 = TensorType(DType.F32, (N, 3))


def chain() -> Graph:
    x, w = input_value("x", F32), variable_value("w", TensorType(DType.F32, (3, 3)))
    y = Relu()(MatMul()(x, w))
    return Graph((x,), (Add()(y, y),), ("y",), {"w": w})


def test_a_variable_is_assigned_after_whatever_reads_its_old_value() -> None:
    kind = TensorType(DType.F32, (3, 3))
    a, b = variable_value("a", kind), variable_value("b", kind)
    new_a = Add()(a, b)
    new_b = Add()(b, Neg()(a))
    graph = Graph((), (), (), {"a": new_a, "b": new_b})
    order = graph.nodes()
    readers = [node for node in order if a in node.inputs or b in node.inputs]
    assert [node.op.name for node in readers] == ["neg", "add", "add"]


def test_nodes_come_after_their_inputs_and_unused_inputs_stay() -> None:
    spare = input_value("spare", F32)
    graph = chain()
    graph = Graph((spare, *graph.inputs), graph.outputs, graph.output_names)
    nodes = graph.nodes()
    seen: set[Node] = set()
    for node in nodes:
        assert all(value is None or value.node in seen for value in node.inputs)
        seen.add(node)
    assert nodes[0] is spare.node
    assert len(nodes) == len(seen) == 6


def test_readers_count_every_reading() -> None:
    graph = chain()
    relu = graph.outputs[0].node.inputs[0]
    assert relu is not None
    assert graph.readers()[relu] == 2
    assert graph.readers()[graph.outputs[0]] == 1
    assert graph.readers()[graph.updates["w"]] == 2


def test_a_deep_chain_is_walked_without_recursion() -> None:
    x = value = input_value("x", F32)
    for _ in range(20_000):
        value = Neg()(value)
    assert len(Graph((x,), (value,), ("y",)).nodes()) == 20_001


def test_rebuilding_with_nothing_new_keeps_every_node() -> None:
    graph = chain()
    same = graph.rebuild(with_inputs)
    assert same.outputs == graph.outputs
    assert same.updates == graph.updates


def test_rebuilding_replaces_what_the_visit_replaces() -> None:
    def without_relu(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Relu):
            assert inputs[0] is not None
            return (inputs[0],)
        return with_inputs(node, inputs)

    names = [node.op.name for node in chain().rebuild(without_relu).nodes()]
    assert names == ["input", "variable", "matmul", "add"]


def test_a_visit_must_replace_every_output() -> None:
    with pytest.raises(InternalError, match="gave 0 values"):
        chain().rebuild(lambda node, inputs: ())


def test_binding_infers_all_types_anew() -> None:
    x = input_value("x", F32)
    graph = Graph((x,), (Reshape((3 * N,))(Relu()(x)),), ("y",))
    bound = graph.bind({"N": 5})
    assert bound.outputs[0].type.dims == (15,)
    assert bound.outputs[0].node.op == Reshape((15,))
    assert graph.outputs[0].type.shape == (3 * N,)


def test_binding_refuses_sizes_that_do_not_fit() -> None:
    x = input_value("x", F32)
    graph = Graph((x,), (Reshape((6,))(x),), ("y",))
    assert graph.bind({"N": 2}).outputs[0].type.dims == (6,)
    with pytest.raises(ShapeError, match="reshape"):
        graph.bind({"N": 3})


def test_every_output_has_a_name() -> None:
    with pytest.raises(InternalError, match="one name"):
        Graph((), (constant(np.zeros(1)),), ())


def test_constants_are_equal_by_their_bytes_and_never_change() -> None:
    source = np.asarray([0.0, 1.0], "f4")
    a, b = Constant(source), Constant(source.copy())
    source[0] = 9.0
    assert a == b
    assert hash(a) == hash(b)
    assert a != Constant(np.asarray([-0.0, 1.0], "f4"))
    assert a != Constant(np.asarray([[0.0, 1.0]], "f4"))
    assert Constant(np.asarray([np.nan])) == Constant(np.asarray([np.nan]))
    with pytest.raises(ValueError, match="read-only"):
        a.array[0] = 1.0


def test_only_a_constant_has_an_array() -> None:
    assert constant_array(None) is None
    assert constant_array(input_value("x", F32)) is None
    np.testing.assert_array_equal(constant_array(constant(np.arange(3))), [0, 1, 2])
