"""A small network and six images for it."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew

X = np.random.default_rng(2).standard_normal((6, 1, 8, 8)).astype(np.float32)
Y = np.arange(6) % 3


def small() -> ew.Model:
    """A convolution, a pool over all that it gives, and a linear layer."""
    rng = np.random.default_rng(1)
    shapes = {"w1": (4, 1, 3, 3), "b1": (4,), "w3": (3, 4), "b3": (3,)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "w3", "b3"], ["logits"], transB=1),
    ]
    sizes = ["N", 1, 8, 8]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    return ew.convert(proto)
