"""Graphs that other tools quantised run over bytes, and give the same numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew

node = helper.make_node
KINDS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


class Built:
    """A model that grows by pairs of scale and zero point, and by weights."""

    def __init__(self, kind: str = "uint8", seed: int = 0) -> None:
        self.kind, self.rng = kind, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._count = 0

    def tensor(self, array: Any) -> str:
        self._count += 1
        name = f"t{self._count}"
        self.tensors.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def pair(self, scale: float, zero: int) -> list[str]:
        return [
            self.tensor(np.float32(scale)),
            self.tensor(np.array(zero, dtype=self.kind)),
        ]

    def add(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        self._count += 1
        name = f"v{self._count}"
        self.nodes.append(node(op, list(inputs), [name], name, **attributes))
        return name

    def through(self, x: str, pair: Sequence[str]) -> str:
        """``x`` as bytes, and back."""
        q = self.add("QuantizeLinear", [x, *pair])
        return self.add("DequantizeLinear", [q, *pair])

    def weight(self, *shape: int, axis: int = 0, kind: str = "int8") -> str:
        info, count = np.iinfo(kind), shape[axis]
        whole = self.rng.integers(info.min, info.max, shape, endpoint=True)
        scale = self.rng.uniform(0.01, 0.02, count).astype("f4")
        zero = np.full(count, 0 if kind == "int8" else 128)
        names = [whole.astype(kind), scale, zero.astype(kind)]
        given = [self.tensor(array) for array in names]
        return self.add("DequantizeLinear", given, axis=axis)

    def bias(self, count: int) -> str:
        whole = self.rng.integers(-9999, 9999, count).astype("i4")
        given = [whole, np.full(count, 1e-3, "f4"), np.zeros(count, "i4")]
        return self.add("DequantizeLinear", [self.tensor(a) for a in given], axis=0)

    def model(self, y: str, *shape: int | str, bytes_: bool = False) -> onnx.ModelProto:
        kind = KINDS[self.kind] if bytes_ else TensorProto.FLOAT
        x = helper.make_tensor_value_info("x", kind, shape)
        out = helper.make_tensor_value_info(y, kind, None)
        graph = helper.make_graph(self.nodes, "q", [x], [out], self.tensors)
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def ops(model: ew.Model) -> Counter[str]:
    leaves = ("input", "variable", "constant")
    nodes = model.module.functions["infer"].nodes()
    return Counter(n.op.name for n in nodes if n.op.name not in leaves)


def agree(proto: onnx.ModelProto, shape: Sequence[int], step: float) -> ew.Model:
    """The model, whose numbers are those of onnxruntime's plain kernels.

    They add in another order: a sum on the edge between two steps may fall to either.
    """
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    x = 2 * np.random.default_rng(5).standard_normal(shape).astype("f4")
    (expected,) = session.run(None, {"x": x})
    model = ew.convert(proto)
    with ew.Session(model) as ours:
        (got,) = ours.run({"x": x}).values()
    gap = np.abs(got.astype("f8") - expected)
    assert gap.max() <= step * 1.001
    assert (gap > step / 2).mean() < 0.002
    return model


def network(kind: str, zero: int) -> onnx.ModelProto:
    """A stem, a pool, a depthwise and a pointwise convolution, a head."""
    b = Built(kind)
    x = b.through("x", b.pair(0.04, zero))
    stem = b.add("Conv", [x, b.weight(16, 3, 3, 3), b.bias(16)], pads=[1] * 4)
    one = b.pair(0.05, 0)
    y = b.through(b.add("Relu", [stem]), one)
    y = b.through(b.add("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2]), one)
    y = b.add("Conv", [y, b.weight(16, 1, 3, 3), b.bias(16)], pads=[1] * 4, group=16)
    y = b.through(b.add("Clip", [y, b.tensor(np.float32(0))]), b.pair(0.2, 0))
    last = b.pair(1.5, zero)
    y = b.through(b.add("Conv", [y, b.weight(24, 16, 1, 1)]), last)
    y = b.through(b.add("Flatten", [y]), last)
    y = b.add("MatMul", [y, b.weight(24 * 20, 10, axis=1)])
    y = b.through(b.add("Add", [y, b.bias(10)]), b.pair(20.0, zero))
    return b.model(y, 2, 3, 8, 10)


@pytest.mark.parametrize(("kind", "zero"), [("uint8", 117), ("int8", -11)])
def test_a_convolutional_network_runs_over_bytes_alone(kind: str, zero: int) -> None:
    model = agree(network(kind, zero), (2, 3, 8, 10), 20.0)
    found = ops(model)
    assert found["byte_conv"] == 2
    assert found["byte_depthwise_conv"] == found["byte_linear"] == 1
    assert found["quantize"] == found["dequantize"] == 1
    assert not {"conv", "depthwise_conv", "linear", "matmul", "add"} & found.keys()


def test_a_residual_joins_the_product_that_it_is_added_to() -> None:
    b = Built("uint8")
    x = b.through("x", b.pair(0.04, 128))
    x = b.through(b.add("Conv", [x, b.weight(8, 3, 1, 1)]), b.pair(0.1, 128))
    y = b.add("Conv", [x, b.weight(8, 8, 3, 3), b.bias(8)], pads=[1] * 4)
    y = b.add("Relu", [b.add("Add", [y, x])])
    y = b.through(y, b.pair(0.3, 0))
    model = agree(b.model(y, 1, 3, 6, 5), (1, 3, 6, 5), 0.3)
    found = ops(model)
    assert found["byte_conv"] == 2
    assert found["quantize"] == found["dequantize"] == 1
    assert not {"add", "relu"} & found.keys()


def test_what_is_read_as_real_numbers_stays_real() -> None:
    b = Built("uint8")
    x = b.through("x", b.pair(0.04, 128))
    y = b.add("Gemm", [x, b.weight(7, 12), b.bias(7)], transB=1)
    small = b.through(y, b.pair(0.3, 100))
    total = b.add("Add", [y, small])
    model = agree(b.model(total, 3, 12), (3, 12), 0.3)
    assert ops(model) == {
        "quantize": 2,
        "byte_linear": 1,
        "dequantize": 1,
        "add": 1,
    }


def test_weights_of_unsigned_bytes_around_128_are_signed_ones() -> None:
    b = Built("uint8")
    x = b.through("x", b.pair(0.04, 128))
    y = b.add("MatMul", [x, b.weight(12, 9, axis=1, kind="uint8")])
    model = agree(b.model(y, 5, 12), (5, 12), 1e-4)
    assert ops(model)["byte_linear"] == 1


def test_weights_that_the_model_rounds_itself_are_rounded_once() -> None:
    """Exporters of models trained for bytes leave their fractions in the file."""
    b = Built("uint8")
    pairs = b.tensor(np.float32([0.01] * 9)), b.tensor(np.zeros(9, "i1"))
    x = b.through("x", b.pair(0.04, 128))
    w = b.tensor(b.rng.standard_normal((12, 9)).astype("f4"))
    q = b.add("QuantizeLinear", [w, *pairs], axis=1)
    y = b.add("MatMul", [x, b.add("DequantizeLinear", [q, *pairs], axis=1)])
    model = agree(b.model(y, 5, 12), (5, 12), 1e-4)
    assert ops(model) == {"quantize": 1, "byte_linear": 1}
    assert "prepare" not in model.module.functions
    assert f"{w}/quantized" in model.parameters()


def test_a_weight_off_centre_is_not_of_bytes() -> None:
    b = Built("uint8")
    x = b.through("x", b.pair(0.04, 128))
    given = [np.array([[0, 255]] * 12, "u1"), np.float32(0.1), np.uint8(100)]
    w = b.add("DequantizeLinear", [b.tensor(a) for a in given])
    model = agree(b.model(b.add("MatMul", [x, w]), 5, 12), (5, 12), 1e-3)
    assert ops(model)["linear"] == 1


def test_weights_keep_their_names_and_their_bytes() -> None:
    b = Built("uint8")
    x = b.through("x", b.pair(0.04, 128))
    y = b.add("Conv", [x, b.weight(5, 3, 2, 2)])
    proto = b.model(y, 1, 3, 4, 4)
    name = proto.graph.node[2].input[0]
    stored = next(t for t in proto.graph.initializer if t.name == name)
    parameters = ew.convert(proto).parameters()
    np.testing.assert_array_equal(parameters[name], numpy_helper.to_array(stored))


@pytest.mark.parametrize("most", [63, 127])
def test_exact_sums_at_the_extremes(most: int) -> None:
    """Where pairs of products saturate 16 bits, sums do not."""
    b = Built("uint8")
    w = b.tensor(np.full((17, 64, 3, 3), most, "i1"))
    given = ["x", *b.pair(0.02, 0), w, *_weights_pair(b, 17), *b.pair(60.0, 9)]
    y = b.add("QLinearConv", given, pads=[1] * 4)
    model = ew.convert(b.model(y, 1, 64, 5, 6, bytes_=True))
    assert ops(model)["byte_conv"] == 1
    x = np.full((1, 64, 5, 6), 255, "u1")
    with ew.Session(model) as session:
        got = session(x)
    counts = np.outer([2, 3, 3, 3, 2], [2, 3, 3, 3, 3, 2])
    exact = counts * 64.0 * 255 * most * (0.02 * 0.01 / 60.0) + 9
    expected = np.clip(np.rint(exact), 0, 255)
    assert np.abs(got.astype(int) - expected).max() <= 1


def _weights_pair(b: Built, count: int) -> list[str]:
    scales = b.tensor(np.full(count, 0.01, "f4"))
    return [scales, b.tensor(np.zeros(count, "i1"))]


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("group", [1, 2, 10])
def test_qlinear_convolutions_run_over_bytes(kind: str, group: int) -> None:
    b = Built(kind)
    w = b.rng.integers(-128, 128, (20 if group < 10 else 10, 10 // group, 3, 3))
    count = len(w)
    bias = b.tensor(b.rng.integers(-9999, 9999, count).astype("i4"))
    given = ["x", *b.pair(0.02, 3), b.tensor(w.astype("i1")), *_weights_pair(b, count)]
    y = b.add("QLinearConv", [*given, *b.pair(1.1, 5), bias], group=group)
    proto = b.model(y, 1, 10, 6, 7, bytes_=True)
    model = ew.convert(proto)
    info = np.iinfo(kind)
    x = b.rng.integers(info.min, info.max, (1, 10, 6, 7), endpoint=True).astype(kind)
    whole = ew.convert(proto, ew.ConvertConfig(fuse=False))
    with ew.Session(model) as ours, ew.Session(whole) as plain:
        gap = np.abs(ours(x).astype(int) - plain(x))
    assert gap.max() <= 1
    assert (gap > 0).mean() < 0.002
    found = ops(model)
    expected = {1: "byte_conv", 2: "conv_integer", 10: "byte_depthwise_conv"}
    assert found[expected[group]] == 1


def test_qlinear_products_run_over_bytes() -> None:
    b = Built("int8")
    w = b.tensor(b.rng.integers(-128, 128, (13, 7)).astype("i1"))
    scales = b.tensor(b.rng.uniform(0.01, 0.02, 7).astype("f4"))
    zeros = b.tensor(np.zeros(7, "i1"))
    given = ["x", *b.pair(0.02, 3), w, scales, zeros, *b.pair(0.9, 5)]
    proto = b.model(b.add("QLinearMatMul", given), 4, 13, bytes_=True)
    model = ew.convert(proto)
    assert ops(model) == {"pad": 1, "byte_linear": 1}
    x = b.rng.integers(-128, 128, (4, 13)).astype("i1")
    whole = ew.convert(proto, ew.ConvertConfig(fuse=False))
    with ew.Session(model) as ours, ew.Session(whole) as plain:
        np.testing.assert_array_equal(ours(x), plain(x))


def test_sizes_that_only_a_run_knows_are_no_hindrance() -> None:
    b = Built("uint8")
    w = b.tensor(b.rng.integers(-128, 128, (5, 3, 2, 2)).astype("i1"))
    given = ["x", *b.pair(0.02, 3), w, *_weights_pair(b, 5), *b.pair(0.9, 5)]
    proto = b.model(b.add("QLinearConv", given), "N", 3, "H", "W", bytes_=True)
    assert ops(ew.convert(proto))["byte_conv"] == 1


def _dynamic(b: Built, op: str, w: Any, **attributes: Any) -> str:
    """What tools write that quantise activations in the run.

    Weights are such that onnxruntime's sums of pairs do not saturate.
    """
    q, scale, zero = "q", "scale", "zero"
    b.nodes.append(node("DynamicQuantizeLinear", ["x"], [q, scale, zero]))
    total = b.add(op, [q, b.tensor(w), zero], **attributes)
    real = b.add("Cast", [total], to=TensorProto.FLOAT)
    factor = b.add("Mul", [scale, b.tensor(np.float32([0.013]))])
    return b.add("Mul", [real, factor])


def test_products_of_what_the_run_quantises_run_over_bytes() -> None:
    b = Built("uint8")
    y = _dynamic(b, "MatMulInteger", b.rng.integers(-64, 64, (10, 7)).astype("i1"))
    bias = b.tensor(b.rng.standard_normal(7).astype("f4"))
    y = b.add("Relu", [b.add("Add", [bias, y])])
    model = agree(b.model(y, 2, 5, 10), (2, 5, 10), 1e-4)
    assert ops(model)["byte_linear"] == 1
    assert ops(model)["relu"] == 1  # of the range, not of the product


@pytest.mark.parametrize("zero", [0, 90, 255])
def test_unsigned_weights_around_any_number_are_sums_of_signed_ones(zero: int) -> None:
    b = Built("uint8")
    w = b.rng.integers(0, 256, (10, 7)).astype("u1")
    b.nodes.append(node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]))
    given = ["q", b.tensor(w), "zero", b.tensor(np.array(zero, "u1"))]
    real = b.add("Cast", [b.add("MatMulInteger", given)], to=TensorProto.FLOAT)
    proto = b.model(b.add("Mul", [real, "scale"]), 3, 10)
    model = ew.convert(proto)
    assert ops(model)["byte_linear"] == 1
    x = b.rng.standard_normal((3, 10)).astype("f4")
    whole = ew.convert(proto, ew.ConvertConfig(fuse=False))
    with ew.Session(model) as ours, ew.Session(whole) as plain:
        np.testing.assert_allclose(ours(x), plain(x), rtol=0, atol=2e-3)


@pytest.mark.parametrize("pad", [0, 1])
def test_convolutions_of_what_the_run_quantises_run_over_bytes(pad: int) -> None:
    """Not where pads hold the zero point: only a run knows it."""
    b = Built("uint8")
    w = b.rng.integers(-64, 64, (6, 8, 3, 3)).astype("i1")
    y = _dynamic(b, "ConvInteger", w, pads=[pad] * 4)
    model = agree(b.model(y, 1, 8, 5, 6), (1, 8, 5, 6), 1e-3)
    assert ops(model)["conv_integer" if pad else "byte_conv"] == 1


@pytest.mark.parametrize(("kind", "zero"), [("uint8", 117), ("int8", -11)])
def test_products_over_bytes_go_back_to_onnx(kind: str, zero: int) -> None:
    model = ew.convert(network(kind, zero))
    written = model.to_onnx()
    again = agree(written, (2, 3, 8, 10), 20.0)
    found, before = ops(again), ops(model)
    for name in ("byte_conv", "byte_depthwise_conv", "byte_linear", "quantize"):
        assert found[name] == before[name]
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 10)).astype("f4")
    with ew.Session(model) as one, ew.Session(again) as other:
        np.testing.assert_array_equal(one(x), other(x))
