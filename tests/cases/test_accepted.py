"""Models that others refused or got wrong, and that are fine by the text of ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew

FLOAT = TensorProto.FLOAT


def test_external_data_may_lie_in_any_order_and_overlap(tmp_path: Path) -> None:
    """onnx/onnx#8482, onnx/onnx#6226, microsoft/onnxruntime#21195."""
    numbers = np.arange(16, dtype="f4")
    (tmp_path / "w.bin").write_bytes(b"\xff" + numbers.tobytes())
    places = {"a": (33, 4), "b": (1, 4), "c": (17, 8), "none": (65, 0)}
    weights = []
    for name, (offset, count) in places.items():
        tensor = TensorProto(name=name, data_type=FLOAT, dims=[count])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "w.bin"), ("offset", offset)):
            tensor.external_data.add(key=key, value=str(value))
        tensor.external_data.add(key="length", value=str(4 * count))
        weights.append(tensor)
    node = helper.make_node("Concat", [*places, "x"], ["y"], axis=0)
    x = helper.make_tensor_value_info("x", FLOAT, [1])
    y = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph([node], "case", [x], [y], weights)
    path = tmp_path / "m.onnx"
    onnx.save_model(helper.make_model(graph, ir_version=8), str(path))
    with ew.Session(ew.convert(path)) as session:
        got = session.run({"x": np.array([99], "f4")})["y"]
    np.testing.assert_array_equal(
        got, [*numbers[8:12], *numbers[:4], *numbers[4:12], 99]
    )


def test_a_name_within_a_loop_that_hides_one_around_it() -> None:
    """onnx/onnx#2303, onnx/onnx#6955, ROCm/AMDMIGraphX#5078: the inner one counts."""
    body = helper.make_graph(
        [
            helper.make_node("Constant", [], ["k"], value_float=4.0),
            helper.make_node("Add", ["v", "k"], ["next"]),
            helper.make_node("Identity", ["c"], ["again"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, []),
        ],
    )
    nodes = [
        helper.make_node("Constant", [], ["k"], value_float=1.0),
        helper.make_node("Loop", ["count", "", "k"], ["y"], body=body),
    ]
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", FLOAT, [])],
        [helper.make_tensor_value_info("y", FLOAT, [])],
        [numpy_helper.from_array(np.array(2), "count")],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    with ew.Session(ew.convert(model)) as session:
        assert session.run({"x": np.array(0, "f4")})["y"] == 1 + 4 * 2
