"""Small models to make smaller."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew

SHAPES = {
    "w1": (24, 3, 3, 3),
    "b1": (24,),
    "w2": (24, 1, 3, 3),
    "w3": (24, 24, 1, 1),
    "gamma": (24,),
    "beta": (24,),
    "mean": (24,),
    "w4": (20, 48, 1, 1),
    "w5": (10, 20 * 12),
    "b5": (10,),
}


def network() -> onnx.ModelProto:
    """A residual block with a batch norm, a concat, and a classifier of places."""
    rng = np.random.default_rng(0)
    arrays = {k: rng.normal(0, 0.3, s).astype(np.float32) for k, s in SHAPES.items()}
    arrays["var"] = rng.uniform(0.5, 2, 24).astype(np.float32)
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    node = helper.make_node
    norm = ["e0", "gamma", "beta", "mean", "var"]
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4, strides=[2, 2]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], pads=[1] * 4, group=24),
        node("Relu", ["c"], ["d"]),
        node("Conv", ["d", "w3"], ["e0"]),
        node("BatchNormalization", norm, ["e"]),
        node("Add", ["e", "b"], ["f"]),
        node("Concat", ["f", "d"], ["g"], axis=1),
        node("Conv", ["g", "w4"], ["h"]),
        node("Relu", ["h"], ["i"]),
        node("MaxPool", ["i"], ["j"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["j"], ["k"]),
        node("Gemm", ["k", "w5", "b5"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 13, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def outputs(model: ew.Model, x: np.ndarray) -> np.ndarray:
    with ew.Session(model) as session:
        return np.asarray(session(x))


@pytest.fixture(scope="module")
def model() -> ew.Model:
    """The small network."""
    return ew.convert(network())


@pytest.fixture
def x() -> np.ndarray:
    """Some inputs."""
    rng = np.random.default_rng(3)
    return rng.standard_normal((3, 3, 13, 16)).astype(np.float32)
