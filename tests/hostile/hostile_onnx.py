"""ONNX models that are small, and what is expected of those that do harm."""

from __future__ import annotations

import time
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from edgewise.convert import convert
from edgewise.errors import ModelFormatError

SLOWEST = 20.0  # seconds, on a busy machine
FLOAT = TensorProto.FLOAT
Nodes = list[onnx.NodeProto]


def model_of(
    nodes: Nodes, *weights: TensorProto, x: Any = (FLOAT, [2]), y: Any = None
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "hostile",
        [helper.make_tensor_value_info("x", *x)],
        [y or onnx.ValueInfoProto(name="y")],
        list(weights),
    )
    imports = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def relu() -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"], name="only")])


def added(weight: TensorProto) -> onnx.ModelProto:
    weight.name = "w"
    return model_of([helper.make_node("Add", ["x", "w"], ["y"])], weight)


def refuse(source: Any, reason: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ModelFormatError, match=reason) as caught:
        convert(source)
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - start < SLOWEST
