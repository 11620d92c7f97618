"""The trained network as an ONNX model."""

from __future__ import annotations

import numpy as np
import onnx
from network import CLASSES, EPS, WIDTHS, Parameters
from onnx import TensorProto, helper, numpy_helper


def block(index: int, x: str) -> list[onnx.NodeProto]:
    """Nodes of one block that reads ``x``; the last output is named as its node."""
    conv, norm, relu, pool = (f"{n}{index}" for n in ("conv", "norm", "relu", "pool"))
    statistics = [f"{norm}.{part}" for part in ("gamma", "beta", "mean", "var")]
    nodes = [
        helper.make_node("Conv", [x, f"{conv}.weight"], [conv], conv, pads=[1] * 4),
        helper.make_node(
            "BatchNormalization", [conv, *statistics], [norm], norm, epsilon=float(EPS)
        ),
        helper.make_node("Relu", [norm], [relu], relu),
    ]
    if index:
        window = {"kernel_shape": [2, 2], "strides": [2, 2]}
        nodes.append(helper.make_node("MaxPool", [relu], [pool], pool, **window))
    return nodes


def exported(p: Parameters, statistics: Parameters) -> onnx.ModelProto:
    """The network as ONNX: images ``[N, 1, 8, 8]`` to logits ``[N, 10]``."""
    tensors: Parameters = {**p, **statistics}
    nodes: list[onnx.NodeProto] = []
    for index in range(len(WIDTHS)):
        key = f"conv{index}.weight"
        tensors[key] = np.ascontiguousarray(p[key].transpose(3, 2, 0, 1))
        nodes += block(index, nodes[-1].output[0] if nodes else "image")
    head = ["features", "head.weight", "head.bias"]
    nodes += [
        helper.make_node(
            "GlobalAveragePool", [nodes[-1].output[0]], ["average"], "average"
        ),
        helper.make_node("Flatten", ["average"], ["features"], "features"),
        helper.make_node("Gemm", head, ["logits"], "head"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
        [numpy_helper.from_array(array, key) for key, array in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model
