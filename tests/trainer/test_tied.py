"""Parameters that are read in several places, packed and as they are."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.op import Array
from edgewise_trainer import Trainer, optimizers

VOCABULARY, WIDTH = 5, 3
E = np.cos(np.arange(VOCABULARY * WIDTH)).reshape(VOCABULARY, WIDTH).astype(np.float32)
TOKENS, TARGET = np.array([0, 3, 3, 1]), np.array([1, 2, 4, 0])
RATE = 0.5


def network() -> onnx.ModelProto:
    """An embedding whose table is the head as well: read by rows, and as panels."""
    nodes = [
        helper.make_node("Gather", ["e", "x"], ["rows"]),
        helper.make_node("Tanh", ["rows"], ["h"]),
        helper.make_node("Gemm", ["h", "e"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["N"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", VOCABULARY])
    stored = [numpy_helper.from_array(E, "e")]
    graph = helper.make_graph(nodes, "tied", [x], [y], stored)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def by_hand(table: Array) -> tuple[float, Array]:
    """The mean cross entropy, and the gradient of the table by both of its uses."""
    table = table.astype(np.float64)
    h = np.tanh(table[TOKENS])
    logits = h @ table.T
    terms = np.exp(logits - logits.max(1, keepdims=True))
    share = terms / terms.sum(1, keepdims=True)
    rows = np.arange(len(TARGET))
    loss = -np.log(share[rows, TARGET]).mean()
    share[rows, TARGET] -= 1
    share /= len(TARGET)
    grad = share.T @ h
    np.add.at(grad, TOKENS, share @ table * (1 - h * h))
    return float(loss), grad


def test_a_table_that_is_the_head_as_well_learns_by_both() -> None:
    one = Trainer(ew.convert(network()), optimizer=optimizers.SGD(RATE), threads=1)
    table = E
    for _ in range(3):
        loss, grad = by_hand(table)
        assert one.step(TOKENS, TARGET) == pytest.approx(loss, rel=1e-5)
        table = table - RATE * grad
        np.testing.assert_allclose(one.parameters()["e"], table, 0, 2e-6)


def test_what_is_tied_is_one_parameter_in_onnx_again() -> None:
    one = Trainer(ew.convert(network()), optimizer=optimizers.SGD(RATE), threads=1)
    one.step(TOKENS, TARGET)
    (stored,) = one.export().to_onnx().graph.initializer
    assert stored.name == "e"
    np.testing.assert_array_equal(numpy_helper.to_array(stored), one.parameters()["e"])


def test_an_output_that_the_loss_does_not_use_costs_nothing() -> None:
    proto = network()
    proto.graph.node.append(helper.make_node("Round", ["h"], ["z"]))
    proto.graph.output.append(onnx.ValueInfoProto(name="z"))
    one = Trainer(ew.convert(proto), optimizer=optimizers.SGD(RATE), threads=1)
    assert one.step(TOKENS, TARGET) == pytest.approx(by_hand(E)[0], rel=1e-5)
