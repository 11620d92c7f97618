"""The backend interface: what it is given wrong ends with an error of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgewise import onnx_backend as backend
from edgewise.errors import ConfigError, DTypeError

X = np.array([1.0, -2.0], "f4")
RELU = helper.make_node("Relu", ["x"], ["y"])


def model(op: str) -> onnx.ModelProto:
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    x = onnx.ValueInfoProto(name="x", type=kind)
    y = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize("inputs", [None, 5, "x"])
def test_inputs_are_arrays(inputs: Any) -> None:
    with pytest.raises(DTypeError, match=f"got {type(inputs).__name__}; want arrays"):
        backend.run_model(model("Relu"), inputs)
    with pytest.raises(DTypeError, match=f"got {type(inputs).__name__}; want arrays"):
        backend.run_node(RELU, inputs)


@pytest.mark.parametrize(
    "array", [np.array(["2020-01-01"], "M8[D]"), np.zeros(2, [("a", "f4")])]
)
def test_elements_without_a_type_in_onnx_are_refused(array: Any) -> None:
    with pytest.raises(DTypeError, match="which ONNX has no type for"):
        backend.run_node(RELU, [array])


@pytest.mark.parametrize("version", ["abc", None, 0, 1 << 40, 2.5])
def test_a_version_is_a_number(version: Any) -> None:
    with pytest.raises(ConfigError, match="want a whole number"):
        backend.run_node(RELU, [X], opset_version=version)


def test_a_node_is_a_node() -> None:
    with pytest.raises(ConfigError, match=r"want an onnx\.NodeProto"):
        backend.run_node("Relu", [X])


@pytest.mark.parametrize("device", [None, "CUDA", 5])
def test_a_device_is_the_processor(device: Any) -> None:
    with pytest.raises(ConfigError, match="want 'CPU'"):
        backend.prepare(model("Relu"), device)
    assert not backend.supports_device(device)


def test_what_can_be_prepared_is_compatible() -> None:
    assert backend.Backend.is_compatible(model("Relu"))
    assert not backend.Backend.is_compatible(model("Foo"))
    assert not backend.Backend.is_compatible(model("Relu"), "CUDA")
