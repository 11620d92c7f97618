"""What lies between products of quantised files runs over bytes, too."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import edgewise as ew
from edgewise.ops.quantize import Dequantize, Quantize

LEAVES = ("input", "variable", "constant")
KINDS = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
CONTRIB = helper.make_opsetid("com.microsoft", 1)


def ops(model: ew.Model) -> Counter[str]:
    nodes = model.module.functions["infer"].nodes()
    return Counter(n.op.name for n in nodes if n.op.name not in LEAVES)


def reference(proto: onnx.ModelProto, *feeds: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    names = [item.name for item in session.get_inputs()]
    (found,) = session.run(None, dict(zip(names, feeds, strict=True)))
    return np.asarray(found)


def ours(model: ew.Model, proto: onnx.ModelProto, *feeds: np.ndarray) -> np.ndarray:
    names = [item.name for item in proto.graph.input]
    with ew.Session(model) as session:
        (found,) = session.run(dict(zip(names, feeds, strict=True))).values()
    return np.asarray(found)


class Steps:
    """A model over inputs of bytes."""

    def __init__(self, kind: str) -> None:
        self.kind, self.nodes, self.tensors = kind, [], []
        self.inputs: list[onnx.ValueInfoProto] = []

    def tensor(self, array: Any) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def pair(self, scale: float, zero: int) -> list[str]:
        zero_ = np.array(zero, dtype=self.kind)
        return [self.tensor(np.float32(scale)), self.tensor(zero_)]

    def input(self, *shape: int | str) -> str:
        name = f"x{len(self.inputs)}"
        info = helper.make_tensor_value_info(name, KINDS[self.kind], shape)
        self.inputs.append(info)
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def real(self, x: str, pair: list[str]) -> str:
        return self.add("DequantizeLinear", x, *pair)

    def model(self, y: str) -> onnx.ModelProto:
        out = helper.make_tensor_value_info(y, KINDS[self.kind], None)
        graph = helper.make_graph(self.nodes, "s", self.inputs, [out], self.tensors)
        sets = [helper.make_opsetid("", 17), CONTRIB]
        return helper.make_model(graph, opset_imports=sets, ir_version=8)


def some(kind: str, *shape: int, seed: int = 0) -> np.ndarray:
    info = np.iinfo(kind)
    rng = np.random.default_rng(seed)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(kind)


def agree(
    proto: onnx.ModelProto, wanted: dict[str, int], *feeds: np.ndarray
) -> np.ndarray:
    """Runs over bytes, and off by at most one, rarely."""
    model = ew.convert(proto)
    assert ops(model) == wanted
    got, want = ours(model, proto, *feeds), reference(proto, *feeds)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    gap = np.abs(got.astype(int) - want.astype(int))
    assert gap.max() <= 1
    assert gap.sum() <= max(1.0, 0.002 * gap.size)
    return got


FUNCTIONS: dict[str, Any] = {
    "Sigmoid": {}, "Tanh": {}, "Relu": {}, "HardSwish": {}, "HardSigmoid": {},
    "LeakyRelu": {"alpha": 0.2}, "Elu": {}, "Exp": {}, "Softsign": {},
    "Softplus": {}, "Neg": {}, "Abs": {}, "Erf": {}, "Reciprocal": {},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_one_number_is_a_table(name: str, kind: str) -> None:
    b = Steps(kind)
    zero = 100 if kind == "uint8" else -20
    real = b.add(name, b.real(b.input("N"), b.pair(0.05, zero)), **FUNCTIONS[name])
    proto = b.model(b.add("QuantizeLinear", real, *b.pair(0.031, zero)))
    info = np.iinfo(kind)
    every = np.arange(info.min, info.max + 1).astype(kind)
    got = agree(proto, {"byte_table": 1}, every)
    node = ew.convert(proto, ew.ConvertConfig(fuse=False))
    np.testing.assert_array_equal(got, ours(node, proto, every))


def test_a_chain_of_functions_is_one_table() -> None:
    b = Steps("uint8")
    x = b.real(b.input(1, 3, "H"), b.pair(0.05, 100))
    gate = b.add("Sigmoid", b.add("Mul", x, b.tensor(np.float32(1.7))))
    y = b.add("Add", b.add("Mul", x, gate), b.tensor(np.float32(0.3)))
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(0.06, 9)))
    agree(proto, {"byte_table": 1}, some("uint8", 1, 3, 50))


def test_ties_go_to_the_even_byte() -> None:
    b = Steps("int8")
    x = b.real(b.input("N"), b.pair(0.5, 0))
    y = b.add("Mul", x, b.tensor(np.float32(0.5)))
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(0.5, 0)))
    x8 = np.arange(-128, 128).astype("int8")
    got = agree(proto, {"byte_table": 1}, x8)
    np.testing.assert_array_equal(got, np.rint(x8 / 2).astype("int8"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize("other", [(2, 5, 7, 33), (2, 5, 1, 1), (1,)])
def test_two_images_become_bytes_of_one(
    op: str, kind: str, other: tuple[int, ...]
) -> None:
    b = Steps(kind)
    zero = 100 if kind == "uint8" else -20
    left = b.real(b.input(2, 5, 7, 33), b.pair(0.0513, zero))
    right = b.real(b.input(*other), b.pair(0.0187, zero + 9))
    y = b.add(op, left, right)
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(0.0371, zero - 5)))
    x = some(kind, 2, 5, 7, 33), some(kind, *other, seed=1)
    agree(proto, {f"byte_{op.lower()}": 1}, *x)


def test_a_bound_that_bytes_hold_anyway_goes() -> None:
    b = Steps("uint8")
    pair = b.pair(0.05, 100)
    left, right = (b.real(b.input(2, 9), pair) for _ in range(2))
    y = b.add("Relu", b.add("Add", left, right))
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(0.047, 0)))
    x = some("uint8", 2, 9), some("uint8", 2, 9, seed=1)
    agree(proto, {"byte_add": 1}, *x)
    b.nodes[-1].input[2] = b.pair(0.047, 30)[1]
    held = ew.convert(b.model("v4"))
    assert ops(held)["byte_add"] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counted", [0, 1])
def test_pools_take_means_of_bytes(kind: str, counted: int) -> None:
    b = Steps(kind)
    zero = 100 if kind == "uint8" else -20
    x = b.real(b.input(2, 17, 9, 11), b.pair(0.05, zero))
    y = b.add(
        "AveragePool",
        x,
        kernel_shape=[3, 2],
        strides=[2, 1],
        pads=[1, 0, 1, 1],
        count_include_pad=counted,
    )
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(0.0313, zero + 3)))
    found = {"byte_average_pool": 1, "transpose": 2}
    agree(proto, found, some(kind, 2, 17, 9, 11))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(1, 70, 7, 7), (2, 3, 1, 1), (1, 5, 300, 300)])
def test_the_mean_of_an_image_is_one_of_bytes(kind: str, size: tuple[int, ...]) -> None:
    b = Steps(kind)
    zero = 100 if kind == "uint8" else -20
    x = b.real(b.input(*size), b.pair(0.05, zero))
    y = b.add("GlobalAveragePool", x)
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(0.0021, zero)))
    found = {"transpose": 1, "byte_mean": 1, "reshape": 1}
    agree(proto, found, some(kind, *size))


def test_images_of_other_scales_are_put_together_by_tables() -> None:
    b = Steps("int8")
    pairs = b.pair(0.05, 3), b.pair(0.021, -9), b.pair(0.05, 3)
    parts = [b.real(b.input(2, 5, 4), pair) for pair in pairs]
    y = b.add("Concat", *parts, axis=1)
    proto = b.model(b.add("QuantizeLinear", y, *pairs[0]))
    x = [some("int8", 2, 5, 4, seed=seed) for seed in range(3)]
    agree(proto, {"byte_table": 1, "concat": 1}, *x)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.3])
def test_what_is_added_around_is_a_byte_where_one_stands_for_it(value: float) -> None:
    b = Steps("uint8")
    pair = b.pair(0.5, 100)
    x = b.real(b.input(2, 5), pair)
    pads = b.tensor(np.array([0, 1, 1, 0]))
    y = b.add("Pad", x, pads, b.tensor(np.float32(value)))
    proto = b.model(b.add("QuantizeLinear", y, *pair))
    model = ew.convert(proto)
    assert ops(model)["quantize"] == (value == 0.3)
    x8 = some("uint8", 2, 5)
    np.testing.assert_array_equal(ours(model, proto, x8), reference(proto, x8))


def test_a_softmax_between_bytes_is_computed_in_float32() -> None:
    b = Steps("uint8")
    x = b.real(b.input(3, 70), b.pair(0.1, 128))
    y = b.add("Softmax", x, axis=-1)
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(1 / 256, 0)))
    agree(proto, {"dequantize": 1, "softmax": 1, "quantize": 1}, some("uint8", 3, 70))


def contrib(kind: str, op: str, count: int = 1, **attributes: Any) -> onnx.ModelProto:
    b = Steps(kind)
    zero = 100 if kind == "uint8" else -20
    given = []
    for index in range(count):
        given += [b.input(1, 17, 9, 11), *b.pair(0.05 - 0.01 * index, zero + index)]
    y = b.add(op, *given, *b.pair(0.0413, zero), domain="com.microsoft", **attributes)
    return b.model(y)


CONTRIBUTED: dict[str, tuple[int, dict[str, Any], dict[str, int]]] = {
    "QLinearAdd": (2, {}, {"byte_add": 1}),
    "QLinearMul": (2, {}, {"byte_mul": 1}),
    "QLinearSigmoid": (1, {}, {"byte_table": 1}),
    "QLinearLeakyRelu": (1, {"alpha": 0.3}, {"byte_table": 1}),
    "QLinearAveragePool": (
        1,
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"byte_average_pool": 1, "transpose": 2},
    ),
    "QLinearGlobalAveragePool": (
        1,
        {},
        {"transpose": 1, "byte_mean": 1, "reshape": 1},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", CONTRIBUTED)
def test_operators_of_onnxruntime_take_the_same_kernels(op: str, kind: str) -> None:
    count, attributes, wanted = CONTRIBUTED[op]
    proto = contrib(kind, op, count, **attributes)
    x = [some(kind, 1, 17, 9, 11, seed=seed) for seed in range(count)]
    agree(proto, wanted, *x)


@pytest.mark.parametrize("op", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
def test_images_with_channels_last_need_no_transposes(op: str) -> None:
    attributes = {} if "Global" in op else {"kernel_shape": [2, 2]}
    proto = contrib("uint8", op, channels_last=1, **attributes)
    name = "byte_mean" if "Global" in op else "byte_average_pool"
    agree(proto, {name: 1}, some("uint8", 1, 17, 9, 11))


def test_onnxruntime_puts_images_of_any_scale_together() -> None:
    b = Steps("uint8")
    given = []
    for index in range(2):
        given += [b.input(2, 5, 4), *b.pair(0.05 - 0.02 * index, 100 + index)]
    y = b.add(
        "QLinearConcat", *b.pair(0.05, 100), *given, domain="com.microsoft", axis=1
    )
    x = [some("uint8", 2, 5, 4, seed=seed) for seed in range(2)]
    agree(b.model(y), {"byte_table": 1, "concat": 1}, *x)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("turned", [0, 1])
def test_a_gemm_of_onnxruntime_is_a_product_over_bytes(turned: int, bias: bool) -> None:
    b = Steps("uint8")
    rng = np.random.default_rng(3)
    shape = (7, 24) if turned else (24, 7)
    w = b.tensor(rng.integers(-60, 60, shape).astype("int8"))
    scale = b.tensor(rng.uniform(0.01, 0.02, 7).astype("f4"))
    zero = b.tensor(np.zeros(7, "int8"))
    whole = b.tensor(rng.integers(-999, 999, 7).astype("i4")) if bias else ""
    given = [b.input(5, 24), *b.pair(0.05, 120), w, scale, zero, whole]
    y = b.add("QGemm", *given, *b.pair(0.2, 110), domain="com.microsoft", transB=turned)
    agree(b.model(y), {"byte_linear": 1}, some("uint8", 5, 24))


def test_a_table_says_what_its_pairs_say() -> None:
    x = np.arange(256).astype(np.uint8)
    real = Dequantize().reference(x, np.float32(0.1), np.uint8(7))
    want = Quantize().reference(np.tanh(real), np.float32(0.01), np.uint8(100))
    b = Steps("uint8")
    y = b.add("Tanh", b.real(b.input("N"), b.pair(0.1, 7)))
    proto = b.model(b.add("QuantizeLinear", y, *b.pair(0.01, 100)))
    np.testing.assert_array_equal(ours(ew.convert(proto), proto, x), want)


def test_a_gemm_of_onnxruntime_may_give_real_numbers() -> None:
    b = Steps("uint8")
    w = b.tensor(np.random.default_rng(3).integers(-60, 60, (24, 7)).astype("int8"))
    given = [b.input(5, 24), *b.pair(0.05, 120), w, b.tensor(np.float32(0.01))]
    y = b.add("QGemm", *given, b.tensor(np.int8(0)), domain="com.microsoft", alpha=0.5)
    proto = b.model(y)
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    x = some("uint8", 5, 24)
    model = ew.convert(proto)
    assert ops(model)["byte_linear"] == 1
    want = reference(proto, x)
    np.testing.assert_allclose(ours(model, proto, x), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("QLinearSoftmax", {"axis": 1, "opset": 13}),
        ("QLinearSoftmax", {"axis": 1, "opset": 11}),
    ],
)
def test_rarer_operators_of_onnxruntime_are_between_pairs(
    op: str, attributes: dict[str, Any]
) -> None:
    b = Steps("uint8")
    given = [b.input(2, 6, 5), *b.pair(0.05, 100), *b.pair(0.01, 20)]
    proto = b.model(b.add(op, *given, domain="com.microsoft", **attributes))
    x = some("uint8", 2, 6, 5)
    got, want = ours(ew.convert(proto), proto, x), reference(proto, x)
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1


@pytest.mark.parametrize("left", [0, 2, 3, 6])
def test_a_node_without_its_scales_is_refused(left: int) -> None:
    b = Steps("uint8")
    given = [b.input(2, 6), *b.pair(0.05, 100)] * 2
    y = b.add("QLinearAdd", *given[:left], domain="com.microsoft")
    with pytest.raises(ew.EdgewiseError, match=r"missing|takes|inputs"):
        ew.convert(b.model(y))


@pytest.mark.parametrize("kind", [TensorProto.INT16, TensorProto.UINT16])
def test_pairs_of_16_bits_run_by_kernels(kind: int) -> None:
    dtype = "int16" if kind == TensorProto.INT16 else "uint16"
    node = helper.make_node
    tensors = [
        onnx.numpy_helper.from_array(np.float32(1e-3), "s"),
        onnx.numpy_helper.from_array(np.array(300, dtype), "z"),
    ]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [7, 33])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [7, 33])
    graph = helper.make_graph(nodes, "q", [x], [y], tensors)
    opset = helper.make_opsetid("", 21)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    given = 40 * np.random.default_rng(0).standard_normal((7, 33)).astype("f4")
    model = ew.convert(proto)
    np.testing.assert_array_equal(ours(model, proto, given), reference(proto, given))
    with ew.Session(model) as session:
        rows = session.profile({"x": given}, runs=1).rows
    assert all(row.kernel for row in rows)
