"""Quantised operators: what onnxruntime gives, and exact integers where it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from edgewise.convert import convert_module
from edgewise.errors import ModelFormatError

Check = Callable[..., Any]


@pytest.fixture
def f32(rng: np.random.Generator) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("f4")

    return make


@pytest.fixture(name="whole")
def whole_fixture(rng: np.random.Generator) -> Callable[..., Any]:
    def make(dtype: str, *shape: int) -> Any:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)

    return make


@pytest.fixture(name="on_node")
def on_node_fixture(build: Check, module_outputs: Check) -> Callable[..., Any]:
    """The output of one node, by the converted model."""

    def run(op: str, *inputs: Any, **more: Any) -> Any:
        names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
        node = helper.make_node(op, names, ["y"], name="node", **more)
        feeds = {n: a for n, a in zip(names, inputs, strict=True) if a is not None}
        model = build([node], feeds, ["y"], opset=25)
        return module_outputs(convert_module(model).module, feeds)["y"]

    return run


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantisation_there_and_back(
    dtype: Any, axis: int | None, agree_on_node: Check, f32: Check
) -> None:
    size = () if axis is None else ((3, 5)[axis],)
    scale = np.abs(f32(*size)) * 0.1 + 0.01
    zero = np.full(size, 3, dtype)
    more = {} if axis is None else {"axis": axis}
    agree_on_node("QuantizeLinear", f32(3, 5), scale, zero, fixed=(1, 2), **more)
    q = np.arange(15).reshape(3, 5).astype(dtype)
    agree_on_node("DequantizeLinear", q, scale, zero, fixed=(1, 2), **more)


def test_quantisation_without_a_zero_point(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("QuantizeLinear", np.abs(f32(3, 5)), np.array(0.02, "f4"))
    agree_on_node("DynamicQuantizeLinear", f32(3, 5), outputs=3)


@pytest.mark.parametrize("block", [2, 3, 5])
def test_scales_shared_by_blocks(block: int, f32: Check, on_node: Check) -> None:
    x, count = f32(3, 5), -(-5 // block)
    scale, zero = np.abs(f32(3, count)) + 0.1, np.full((3, count), 2, np.int8)
    q = on_node("QuantizeLinear", x, scale, zero, block_size=block)
    spread = [np.repeat(a, block, 1)[:, :5] for a in (scale, zero)]
    wanted = np.clip(np.rint(x / spread[0]) + spread[1], -128, 127)
    np.testing.assert_array_equal(q, wanted)
    back = on_node("DequantizeLinear", q, scale, zero, block_size=block)
    np.testing.assert_array_equal(back, (q - np.float32(1) * spread[1]) * spread[0])


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_integers_of_few_bits_saturate(name: str, on_node: Check) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    info = ml_dtypes.iinfo(dtype)
    x = np.array([-99, -0.5, 0.5, 1.5, 99], "f4")
    one, zero = np.array(1, "f4"), np.array(0, dtype)
    q = on_node("QuantizeLinear", x, one, zero)
    wanted = np.clip([-99, 0, 0, 2, 99], info.min, info.max)
    assert q.dtype == dtype
    np.testing.assert_array_equal(q.astype(int), wanted)
    back = on_node("DequantizeLinear", q, one, zero)
    np.testing.assert_array_equal(back, wanted)


def test_small_floats_saturate_unless_told(on_node: Check) -> None:
    x, one = np.array([1.06, 500, -1e9], "f4"), np.array(1, "f4")
    zero = np.array(0, ml_dtypes.float8_e4m3fn)
    q = on_node("QuantizeLinear", x, one, zero)
    assert q.astype(float).tolist() == [1.0, 448, -448]
    q = on_node("QuantizeLinear", x, one, zero, saturate=0)
    assert np.isnan(q.astype(float)).tolist() == [False, True, True]


def test_the_type_of_the_output_is_that_of_the_product(on_node: Check) -> None:
    q, scale = np.array([1, 3], np.int8), np.array(0.1, np.float16)
    more = {"output_dtype": TensorProto.FLOAT}
    y = on_node("DequantizeLinear", q, scale, **more)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, q * scale.astype(np.float32))


@pytest.mark.parametrize(
    "shapes", [((3, 5), (5, 2)), ((5,), (5, 2)), ((2, 3, 5), (5,))]
)
def test_a_product_of_integers(shapes: Any, whole: Check, on_node: Check) -> None:
    a, b = whole("uint8", *shapes[0]), whole("int8", *shapes[1])
    got = on_node("MatMulInteger", a, b)
    np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32))
    assert got.dtype == np.int32


def test_sums_of_the_largest_products_do_not_saturate(on_node: Check) -> None:
    a, b = np.full((1, 999), 255, np.uint8), np.full((999, 1), -128, np.int8)
    got = on_node("MatMulInteger", a, b)
    assert got.tolist() == [[-255 * 128 * 999]]


def test_zero_points_of_rows_and_columns(whole: Check, on_node: Check) -> None:
    a, b = whole("uint8", 3, 5), whole("int8", 5, 2)
    rows, columns = whole("uint8", 3), whole("int8", 2)
    got = on_node("MatMulInteger", a, b, rows, columns)
    wanted = (a.astype(int) - rows.astype(int)[:, None]) @ (b.astype(int) - columns)
    np.testing.assert_array_equal(got, wanted)


WINDOWS = [
    ((1, 4, 6, 5), (6, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 4, 6, 5), (6, 2, 3, 2), {"group": 2, "strides": [2, 1]}),
    ((1, 4, 7, 7), (4, 1, 3, 3), {"group": 4, "dilations": [2, 1]}),
    ((1, 4, 7), (3, 4, 3), {"auto_pad": "SAME_LOWER"}),
    ((1, 2, 3, 4, 5), (3, 2, 2, 2, 2), {}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), WINDOWS)
def test_a_convolution_of_integers_is_that_of_doubles(
    x: Any, w: Any, attributes: Any, whole: Check, on_node: Check
) -> None:
    image, weight = whole("uint8", *x), whole("int8", *w)
    zeros = np.array(120, np.uint8), np.array(-3, np.int8)
    got = on_node("ConvInteger", image, weight, *zeros, **attributes)
    centred = [a.astype(float) - z for a, z in zip((image, weight), zeros, strict=True)]
    wanted = on_node("Conv", *centred, **attributes)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("x", "w", "attributes"), WINDOWS)
def test_a_quantised_convolution_rounds_the_exact_sum(
    x: Any, w: Any, attributes: Any, whole: Check, on_node: Check
) -> None:
    image, weight = whole("uint8", *x), whole("int8", *w)
    scales = np.exp2(whole("int8", w[0]) % 4 - 5.0).astype("f4")
    one, bias = np.array(0.25, "f4"), whole("int16", w[0]).astype(np.int32)
    zero, zeros, y_zero = np.array(9, "u1"), np.zeros(w[0], "i1"), np.array(-5, "i1")
    pair, quotient = (image, one, zero, weight, scales, zeros), np.array(8, "f4")
    got = on_node(
        "QLinearConv",
        *pair,
        quotient,
        y_zero,
        bias,
        **attributes,
    )
    sums = on_node("ConvInteger", image, weight, zero, None, **attributes)
    along = (-1, *(1,) * (len(x) - 2))
    sums = sums.astype(float) + bias.reshape(along)
    wanted = np.rint(sums * (scales.astype(float) / 32).reshape(along)) - 5
    np.testing.assert_array_equal(got, np.clip(wanted, -128, 127))
    assert got.dtype == np.int8


def test_a_quantised_product(whole: Check, on_node: Check) -> None:
    a, b = whole("int8", 3, 8), whole("int8", 8, 4)
    one, zero = np.array(0.5, "f4"), np.array(1, "i1")
    columns = np.array([1, 2, 0.5, 0.25], "f4"), np.array([0, 1, -3, 5], "i1")
    y = np.array(64, "f4"), np.array(-7, "i1")
    got = on_node("QLinearMatMul", a, one, zero, b, *columns, *y)
    sums = (a.astype(int) - 1) @ (b.astype(int) - columns[1].astype(int))
    wanted = np.rint(sums * columns[0].astype(float) / 128) - 7
    np.testing.assert_array_equal(got, np.clip(wanted, -128, 127))


def test_scales_that_fit_nothing_are_refused(build: Check, f32: Check) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], name="q")
    feeds = {"x": f32(3, 5), "s": f32(3, 5)}
    with pytest.raises(ModelFormatError, match=r"q.*scales"):
        convert_module(build([node], feeds, ["y"]))
