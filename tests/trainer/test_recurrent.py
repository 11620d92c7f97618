"""Recurrent layers learn; numbers are those of PyTorch 2.13."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.op import Array
from edgewise_trainer import Trainer, optimizers

STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 2, 3
Y = np.array([0, 1, 1])


def wave(*shape: int, factor: float = 1.0) -> Array:
    count = int(np.prod(shape))
    wave = factor * np.sin(np.arange(count) * 0.7 + count)
    return wave.reshape(shape).astype(np.float32)


X = wave(STEPS, BATCH, WIDTH)
# Losses of four steps of SGD at 0.5 with momentum 0.9 on
# cross_entropy((y[-1] + y.mean(0)) @ v.T), and ends of what they made of R and B.
EXPECTED = {
    "GRU": (
        [0.3293531, 0.2754634, 0.1972682, 0.1188102],
        [-0.122306, 0.215699, 0.542667],
        [-0.247056, -0.163701],
    ),
    "LSTM": (
        [0.8786097, 0.8211975, 0.7410851, 0.6626738],
        [0.286194, -0.076486, -0.393573],
        [0.217293, 0.120931],
    ),
}


def network(kind: str) -> onnx.ModelProto:
    gates = {"GRU": 3, "LSTM": 4}[kind]
    weights = {
        "w": wave(1, gates * HIDDEN, WIDTH),
        "r": wave(1, gates * HIDDEN, HIDDEN, factor=0.5),
        "b": wave(1, 2 * gates * HIDDEN, factor=0.3),
        "v": wave(2, HIDDEN),
    }
    whole = {"time": [0], "way": [0]}
    node, more = helper.make_node, {"linear_before_reset": 1} if kind == "GRU" else {}
    nodes = [
        node(kind, ["x", "w", "r", "b"], ["s", "h"], hidden_size=HIDDEN, **more),
        node("Squeeze", ["h", "way"], ["last"]),
        node("ReduceMean", ["s"], ["mean"], axes=[0, 1], keepdims=0),
        node("Add", ["last", "mean"], ["both"]),
        node("Gemm", ["both", "v"], ["y"], transB=1),
    ]
    stored = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    stored += [numpy_helper.from_array(np.asarray(v), n) for n, v in whole.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, "N", WIDTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])
    graph = helper.make_graph(nodes, kind, [x], [y], stored)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_recurrent_layer_learns_as_it_does_in_pytorch(kind: str) -> None:
    losses, row, bias = EXPECTED[kind]
    optimizer = optimizers.SGD(0.5, momentum=0.9)
    one = Trainer(ew.convert(network(kind)), optimizer=optimizer, threads=1)
    found = [one.step(X, Y) for _ in losses]
    assert found == pytest.approx(losses, rel=5e-6)
    values = one.parameters()
    np.testing.assert_allclose(values["r"][0, -1], row, 0, 5e-6)
    np.testing.assert_allclose(values["b"][0, -2:], bias, 0, 5e-6)


def test_two_threads_give_the_same_bits() -> None:
    pair = [Trainer(ew.convert(network("GRU")), threads=count) for count in (1, 2)]
    for one in pair:
        one.step(X, Y)
    first, second = (one.parameters() for one in pair)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
