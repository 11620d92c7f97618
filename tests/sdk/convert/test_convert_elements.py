"""Element-wise ONNX operators give what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

from edgewise.convert import ConvertConfig, convert_module
from edgewise.errors import DTypeError, UnsupportedOpError

Check = Callable[..., Any]
SPECIAL = np.array([-np.inf, -3.5, -1, -0.0, 0, 0.5, 1, 2.5, np.inf, np.nan], "f4")
INSIDE = np.array([-0.9, -0.5, 0.0, 0.25, 0.9], "f4")
POSITIVE = np.array([0.1, 0.5, 1.0, 2.0, 30.0], "f4")
BOOLS = np.array([True, False, True, False])
WHOLE = np.array([-7, -3, 0, 2, 9], np.int64)

UNARY = [
    ("Abs", SPECIAL),
    ("Acos", INSIDE),
    ("Acosh", POSITIVE + 1),
    ("Asin", INSIDE),
    ("Asinh", INSIDE),
    ("Atan", INSIDE),
    ("Atanh", INSIDE),
    ("Ceil", SPECIAL),
    ("Cos", INSIDE),
    ("Cosh", INSIDE),
    ("Erf", INSIDE),
    ("Exp", INSIDE),
    ("Floor", SPECIAL),
    ("HardSwish", INSIDE * 5),
    ("Identity", SPECIAL),
    ("IsNaN", SPECIAL),
    ("Log", POSITIVE),
    ("Neg", SPECIAL),
    ("Neg", WHOLE),
    ("Not", BOOLS),
    ("Reciprocal", POSITIVE),
    ("Relu", INSIDE),
    ("Round", SPECIAL),
    ("Sigmoid", INSIDE * 50),
    ("Sign", SPECIAL[:-1]),
    ("Sin", INSIDE),
    ("Sinh", INSIDE),
    ("Softplus", INSIDE),
    ("Softsign", INSIDE),
    ("Sqrt", POSITIVE),
    ("Tan", INSIDE),
    ("Tanh", INSIDE),
]


@pytest.mark.parametrize(
    ("op", "x"), UNARY, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_unary_operator(op: str, x: Any, agree_on_node: Check) -> None:
    agree_on_node(op, x)


ATTRIBUTES: list[tuple[str, int, dict[str, float | str]]] = [
    ("Celu", 17, {"alpha": 0.7}),
    ("Elu", 17, {"alpha": 0.7}),
    ("Elu", 7, {}),
    ("Gelu", 20, {}),
    ("Gelu", 20, {"approximate": "tanh"}),
    ("HardSigmoid", 17, {}),
    ("HardSigmoid", 17, {"alpha": 0.3, "beta": 0.4}),
    ("IsInf", 17, {"detect_negative": 0}),
    ("IsInf", 17, {"detect_positive": 0}),
    ("LeakyRelu", 17, {}),
    ("LeakyRelu", 7, {"alpha": 0.3}),
    ("Mish", 18, {}),
    ("Selu", 17, {}),
    ("Selu", 17, {"alpha": 1.5, "gamma": 1.2}),
    ("Shrink", 17, {"bias": 0.2, "lambd": 0.4}),
    ("ThresholdedRelu", 17, {"alpha": 0.3}),
    ("Clip", 7, {"min": -0.3, "max": 0.2}),
    ("Clip", 10, {"max": 0.2}),
]


@pytest.mark.parametrize(("op", "opset", "attributes"), ATTRIBUTES)
def test_an_activation_with_attributes(
    op: str, opset: int, attributes: dict[str, Any], agree_on_node: Check
) -> None:
    agree_on_node(op, INSIDE, opset=opset, **attributes)


@pytest.mark.parametrize(
    "op", ["Add", "Div", "Mul", "Pow", "Sub", "Max", "Min", "PRelu"]
)
@pytest.mark.parametrize(
    "shapes", [((3, 4), (4,)), ((2, 3, 1), (1, 1, 5)), ((0, 2), (2,))]
)
def test_a_binary_operator_broadcasts(
    op: str, shapes: tuple[Any, Any], agree_on_node: Check, rng: np.random.Generator
) -> None:
    if op == "PRelu" and shapes == ((2, 3, 1), (1, 1, 5)):
        shapes = ((2, 3, 5), (3, 1))  # its slope may not make the result larger
    a, b = (rng.uniform(0.5, 2.0, shape).astype("f4") for shape in shapes)
    agree_on_node(op, a, b)


@pytest.mark.parametrize(
    "op", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]
)
@pytest.mark.parametrize("x", [SPECIAL, WHOLE])
def test_a_comparison(op: str, x: Any, agree_on_node: Check) -> None:
    agree_on_node(op, x, x[::-1].copy())


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_a_logical_operator(op: str, agree_on_node: Check) -> None:
    agree_on_node(op, BOOLS, BOOLS[::-1].copy())


@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_a_bitwise_operator(op: str, agree_on_node: Check) -> None:
    agree_on_node(op, WHOLE, WHOLE[::-1].copy(), opset=18)


def test_bits_are_shifted_both_ways(agree_on_node: Check) -> None:
    a, b = np.array([1, 5, 200], np.uint8), np.array([1, 2, 3], np.uint8)
    for direction in ("LEFT", "RIGHT"):
        agree_on_node("BitShift", a, b, direction=direction)


def test_whole_division_goes_towards_zero(agree_on_node: Check) -> None:
    agree_on_node("Div", WHOLE, np.array([2, 2, 3, -3, -2], np.int64))


@pytest.mark.parametrize("fmod", [0, 1])
def test_a_remainder_takes_the_right_sign(fmod: int, agree_on_node: Check) -> None:
    agree_on_node("Mod", WHOLE, np.array([2, -2, 3, -3, -2], np.int64), fmod=fmod)


def test_a_remainder_of_floats(agree_on_node: Check) -> None:
    agree_on_node("Mod", INSIDE, POSITIVE, fmod=1)


@pytest.mark.parametrize(
    ("base", "exponent"),
    [("f4", "i8"), ("f4", "i4"), ("i8", "i4"), ("i4", "f4"), ("f4", "f8")],
)
def test_a_power_takes_the_type_of_its_base(
    base: str, exponent: str, agree_on_node: Check
) -> None:
    agree_on_node("Pow", np.array([1, 2, 3]).astype(base), np.array(2).astype(exponent))


@pytest.mark.parametrize("op", ["Max", "Mean", "Min", "Sum"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_operands(
    op: str, count: int, agree_on_node: Check, rng: np.random.Generator
) -> None:
    arrays = [rng.standard_normal((2, 3)).astype("f4") for _ in range(count)]
    agree_on_node(op, *arrays)


def test_a_choice_broadcasts(agree_on_node: Check) -> None:
    agree_on_node("Where", BOOLS, np.ones((3, 4), "f4"), np.zeros((1,), "f4"))


@pytest.mark.parametrize("to", ["float16", "float64", "int32", "int8", "bool", "uint8"])
def test_a_cast(to: str, agree_on_node: Check) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    agree_on_node("Cast", np.array([0.0, 0.4, 1.6, 100.0], "f4"), to=code)


def test_a_cast_like_another_tensor(agree_on_node: Check) -> None:
    agree_on_node("CastLike", POSITIVE, WHOLE)


def test_a_cast_to_8_bits_saturates(build: Check, module_outputs: Check) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT8E4M3FN)
    x = np.array([1e6, -1e6, 1.0, np.nan], "f4")
    module = convert_module(build([node], {"x": x}, ["y"], opset=19)).module
    y = module_outputs(module, {"x": x})["y"].astype("f4")
    np.testing.assert_array_equal(y, [448.0, -448.0, 1.0, np.nan])


@pytest.mark.parametrize("fixed", [(), (1, 2), (1,), (2,)])
def test_bounds_may_be_inputs_or_weights(fixed: Any, agree_on_node: Check) -> None:
    low, high = np.array(-0.3, "f4"), np.array(0.2, "f4")
    agree_on_node("Clip", INSIDE, low, high, fixed=fixed)


def test_a_bound_may_be_left_out(agree_on_node: Check) -> None:
    agree_on_node("Clip", INSIDE, None, np.array(0.2, "f4"), fixed=(2,))
    agree_on_node("Clip", INSIDE, np.array(0.2, "f4"), fixed=(1,))
    agree_on_node("Clip", INSIDE)


def test_whole_numbers_are_clipped(agree_on_node: Check) -> None:
    low, high = np.array(-3, np.int64), np.array(2, np.int64)
    agree_on_node("Clip", WHOLE, low, high, fixed=(1, 2), opset=12)


@pytest.mark.parametrize("opset", [7, 10, 12, 17])
def test_dropout_does_nothing(opset: int, agree_on_node: Check) -> None:
    agree_on_node("Dropout", INSIDE, opset=opset)


def test_the_mask_of_dropout_is_all_true(agree_on_node: Check) -> None:
    agree_on_node("Dropout", INSIDE, outputs=2, opset=12)


def test_dropout_in_training_without_a_seed_draws_only_when_asked(build: Check) -> None:
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y"], name="drop")
    weights = {"ratio": np.array(0.5, "f4"), "training": np.array(True)}
    model = build([node], {"x": INSIDE}, ["y"], weights=weights)
    with pytest.raises(UnsupportedOpError, match=r"drop.*random=True"):
        convert_module(model)
    assert convert_module(model, ConvertConfig(random=True)).module.functions


def test_operands_of_two_types_are_refused(build: Check) -> None:
    node = helper.make_node("Add", ["x", "k"], ["y"], name="sum")
    model = build([node], {"x": INSIDE}, ["y"], weights={"k": WHOLE})
    with pytest.raises(DTypeError, match="'sum'"):
        convert_module(model)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_its_time(
    op: str, opset: int, axis: int, agree_on_node: Check, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((2, 3, 5)).astype("f4")
    agree_on_node(op, x, axis=axis, opset=opset)
    agree_on_node(op, x, opset=opset)


def test_hardmax_takes_the_first_of_equals(agree_on_node: Check) -> None:
    agree_on_node("Hardmax", np.array([[1, 3, 3, 0], [2, 2, 1, 2]], "f4"))


def aligned(a: Any, b: Any, axis: int) -> npt.NDArray[Any]:
    return np.asarray(a + b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim)))


@pytest.mark.parametrize("axis", [0, 1])
def test_an_old_sum_is_aligned_by_its_axis(
    axis: int, build: Check, module_outputs: Check, rng: np.random.Generator
) -> None:
    a = rng.standard_normal((2, 3, 4)).astype("f4")
    b = rng.standard_normal((2, 3)[axis]).astype("f4")
    node = helper.make_node("Add", ["a", "b"], ["y"], axis=axis, broadcast=1)
    module = convert_module(build([node], {"a": a, "b": b}, ["y"], opset=6)).module
    y = module_outputs(module, {"a": a, "b": b})["y"]
    np.testing.assert_array_equal(y, aligned(a, b, axis))


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4"])
def test_whole_numbers_have_slopes_too(
    build: Check, module_outputs: Check, dtype: str
) -> None:
    x, slope = np.array([[-3, 0, 5]]).astype(dtype), np.array([2, 3, 4], dtype)
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    feeds = {"x": x, "slope": slope}
    module = convert_module(build([node], feeds, ["y"])).module
    want = np.where(x < 0, x * slope, x)
    np.testing.assert_array_equal(module_outputs(module, feeds)["y"], want)


@pytest.mark.parametrize("op", ["Sum", "Max", "Min", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 5, 700])
def test_an_operator_of_as_many_inputs_as_there_are(
    op: str, count: int, build: Check, agree: Check
) -> None:
    names = ["x", "z"] * (count // 2) + ["x"] * (count % 2)
    feeds = {"x": INSIDE, "z": POSITIVE}
    feeds = {name: feeds[name] for name in sorted(set(names))}
    agree(build([helper.make_node(op, names, ["y"])], feeds, ["y"]), feeds)
