"""Small models to quantise."""

from __future__ import annotations

from collections.abc import Sequence

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
    "w4": (10, 24),
    "b4": (10,),
}


def network() -> onnx.ModelProto:
    """A stem, a depthwise and a pointwise convolution with a residual, a classifier."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in SHAPES.items()
    ]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], "stem", pads=[1] * 4, strides=[2, 2]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], "depthwise", pads=[1] * 4, group=24),
        node("Relu", ["c"], ["d"]),
        node("Conv", ["d", "w3"], ["e"], "pointwise"),
        node("Add", ["e", "b"], ["f"]),
        node("MaxPool", ["f"], ["g"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["g"], ["h"]),
        node("Flatten", ["h"], ["i"]),
        node("Gemm", ["i", "w4", "b4"], ["y"], "head", transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 17, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def batches(count: int = 4, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [
        {"x": rng.standard_normal((5, 3, 17, 16)).astype(np.float32)}
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def model() -> ew.Model:
    return ew.convert(network())


@pytest.fixture
def calibration() -> Sequence[dict[str, np.ndarray]]:
    return batches()
