"""What lies between layers runs over bytes, too."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.graph import constant
from edgewise.quant.ranges import shared

CLOSE = 0.05


def network(*, other: bool = False) -> onnx.ModelProto:
    """Two branches, added, made larger, put beside one of them, read again."""
    rng = np.random.default_rng(0)
    shapes = {
        "w1": (11, 3, 3, 3),
        "w2": (11, 11, 3, 3),
        "w3": (7, 22, 1, 1),
        "w4": (5, 7, 3, 3),
    }
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    scales = np.array([1, 1, 2, 2], np.float32)
    weights.append(numpy_helper.from_array(scales, "scales"))
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], pads=[1] * 4),
        node("Relu", ["c"], ["d"]),
        node("Add", ["d", "b"], ["e"]),
        node("Resize", ["e", "", "scales"], ["f"], mode="nearest"),
        node("Resize", ["d", "", "scales"], ["g"], mode="nearest"),
        node("Concat", ["f", "g"], ["h"], axis=1),
        node("Conv", ["h", "w3"], ["i"]),
        node("Relu", ["i"], ["j"]),
        node("Add", ["j", "j" if other else "k"], ["l"]),
        node("Conv", ["l", "w4"], ["y"]),
    ]
    if not other:
        nodes.insert(-2, node("Sigmoid", ["j"], ["k"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 9, 7])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "between", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def images(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((3, 3, 9, 7)).astype(np.float32)


@pytest.mark.parametrize("other", [False, True])
def test_sums_and_larger_images_stay_bytes(other: bool) -> None:
    model = ew.convert(network(other=other))
    small = ew.quantize(model, [{"x": images(seed)} for seed in range(3)])
    x = images(9)
    with ew.Session(model) as real, ew.Session(small) as session:
        want, got = real(x), session(x)
        rows = session.profile({"x": x}, runs=1).rows
    assert np.linalg.norm(got - want) <= CLOSE * np.linalg.norm(want)
    counts = Counter(row.op for row in rows)
    assert counts["byte_add"] == 2
    assert counts["byte_table"] == (not other)  # the sigmoid
    assert not counts["add"] + counts["sigmoid"] + counts["dequantize"]
    assert counts["gather"] == sum(
        row.precision == "uint8" for row in rows if row.op == "gather"
    )


def test_sums_go_back_to_onnx() -> None:
    model = ew.convert(network())
    small = ew.quantize(model, [{"x": images(seed)} for seed in range(3)])
    x = images(9)
    with ew.Session(small) as session, ew.Session(ew.convert(small.to_onnx())) as again:
        want, got = np.asarray(session(x)), np.asarray(again(x))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-2 * np.abs(want).max())


def test_a_table_of_weights_is_no_image() -> None:
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((50, 8)).astype(np.float32), "t"),
        numpy_helper.from_array(rng.standard_normal((8, 6)).astype(np.float32), "w"),
    ]
    nodes = [
        helper.make_node("Gather", ["t", "x"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["N"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 6])
    graph = helper.make_graph(nodes, "table", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    ids = np.arange(20)
    small = ew.quantize(ew.convert(proto), [{"x": ids}] * 2)
    assert small.parameters()["t"].dtype == np.float32
    with ew.Session(small) as session:
        rows = session.profile({"x": ids}, runs=1).rows
    assert [row.op for row in rows] == ["gather", "quantize", "byte_linear"]


def test_values_that_are_put_together_share_a_range_unless_they_are_narrow() -> None:
    made, wide, narrow = (constant(np.zeros(1, np.float32)) for _ in range(3))
    ranges = {made: (0.0, 4.0), wide: (-1.0, 2.0), narrow: (0.0, 0.5)}
    found = shared(ranges, made, [wide, narrow])
    assert found == {made: (-1.0, 4.0), wide: (-1.0, 4.0)}
    assert shared(ranges, made, [narrow]) == {made: (0.0, 4.0), narrow: (0.0, 4.0)}
