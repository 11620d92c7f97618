"""ONNX operators that move, pick and reduce give what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from edgewise.convert import convert_module
from edgewise.errors import ModelFormatError

Check = Callable[..., Any]


def i64(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


@pytest.fixture
def f32(rng: np.random.Generator) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("f4")

    return make


@pytest.mark.parametrize(
    ("target", "attributes"),
    [
        ((6, 4), {}),
        ((0, -1), {}),
        ((-1,), {}),
        ((2, 0, 2, -1), {}),
        ((2, 3, 4, 1), {"allowzero": 1}),
    ],
)
def test_a_reshape(
    target: Any, attributes: Any, agree_on_node: Check, f32: Check
) -> None:
    agree_on_node("Reshape", f32(2, 3, 4), i64(*target), fixed=(1,), **attributes)


@pytest.mark.parametrize(
    ("target", "attributes"),
    [
        ((-1, -1), {}),
        ((0, -1), {"allowzero": 1}),
        ((2, 3, 4, 0), {}),
        ((-2, 12), {}),
    ],
)
def test_a_reshape_to_nowhere_is_refused(
    target: Any, attributes: Any, build: Check, f32: Check
) -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="r", **attributes)
    weights = {"s": i64(*target)}
    with pytest.raises(ModelFormatError, match="'r'"):
        convert_module(build([node], {"x": f32(2, 3, 4)}, ["y"], weights=weights))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Flatten", f32(2, 3, 4), axis=axis)


def test_axes_of_size_one_come_and_go(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Squeeze", f32(1, 3, 1, 2))
    agree_on_node("Squeeze", f32(1, 3, 1, 2), i64(0, -2), fixed=(1,))
    agree_on_node("Squeeze", f32(1, 3, 1, 2), axes=[2], opset=11)
    agree_on_node("Unsqueeze", f32(3, 2), i64(0, -1), fixed=(1,))
    agree_on_node("Unsqueeze", f32(3, 2), axes=[1, 3], opset=11)


def test_a_squeeze_of_more_than_one_is_refused(build: Check, f32: Check) -> None:
    node = helper.make_node("Squeeze", ["x"], ["y"], name="s", axes=[1])
    with pytest.raises(ModelFormatError, match="axis 1"):
        convert_module(build([node], {"x": f32(1, 3)}, ["y"], opset=11))


def test_transposes(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Transpose", f32(2, 3, 4))
    agree_on_node("Transpose", f32(2, 3, 4), perm=[1, 2, 0])


def test_a_transpose_that_repeats_an_axis_is_refused(build: Check, f32: Check) -> None:
    node = helper.make_node("Transpose", ["x"], ["y"], name="t", perm=[0, 0, 2])
    with pytest.raises(ModelFormatError, match="perm"):
        convert_module(build([node], {"x": f32(2, 3, 4)}, ["y"]))


def test_tensors_are_joined_and_split(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Concat", f32(2, 3), f32(2, 0), f32(2, 1), axis=-1)
    agree_on_node("Split", f32(6, 2), outputs=3)
    agree_on_node("Split", f32(6, 2), i64(1, 0, 5), fixed=(1,), outputs=3)
    agree_on_node("Split", f32(2, 6), axis=1, split=[2, 4], outputs=2, opset=11)
    agree_on_node("Split", f32(7, 2), outputs=3, num_outputs=3, opset=18)


SLICES: list[tuple[Any, Any, Any, Any]] = [
    ((1,), (3,), None, None),
    ((1, 0), (3, 100), (0, 1), None),
    ((-3,), (2**31 - 1,), (-1,), (2,)),
    ((10,), (-(2**63),), (1,), (-2,)),
    ((5,), (0,), (0,), None),
    ((-100,), (100,), (1,), (1,)),
    ((2**63 - 1,), (-(2**63),), (0,), (-1,)),
    ((4, -1), (0, -4), (0, 1), (-1, -1)),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_a_slice(
    starts: Any, ends: Any, axes: Any, steps: Any, agree_on_node: Check, f32: Check
) -> None:
    rest = [None if a is None else i64(*a) for a in (axes, steps)]
    fixed = [1, 2, *(i for i, a in enumerate(rest, 3) if a is not None)]
    agree_on_node("Slice", f32(5, 6), i64(*starts), i64(*ends), *rest, fixed=fixed)


def test_an_old_slice(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Slice", f32(5, 6), starts=[1, -2], ends=[4, 9], axes=[1, 0], opset=9)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_padding(mode: str, agree_on_node: Check, f32: Check) -> None:
    pads = i64(1, 0, 2, 2)
    agree_on_node("Pad", f32(3, 4), pads, fixed=(1,), mode=mode)
    agree_on_node("Pad", f32(3, 4), pads=pads.tolist(), mode=mode, opset=10)
    agree_on_node(
        "Pad", f32(3, 4), i64(1, 2), None, i64(-1), fixed=(1, 3), mode=mode, opset=18
    )


def test_padding_with_a_number_and_cropping(agree_on_node: Check, f32: Check) -> None:
    value = np.array(2.5, "f4")
    agree_on_node("Pad", f32(3, 4), i64(1, -1, 0, 2), value, fixed=(1, 2))
    agree_on_node("Pad", f32(3, 4), pads=[0, 1, 0, 1], value=1.5, opset=10)
    agree_on_node("Pad", f32(3, 4), i64(1, 2, 3, 0), fixed=(1,), mode="wrap", opset=19)


def test_tensors_are_repeated(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Expand", f32(3, 1), i64(2, 1, 4), fixed=(1,))
    agree_on_node("Expand", f32(3, 4), i64(1), fixed=(1,))
    agree_on_node("Tile", f32(2, 3), i64(2, 2), fixed=(1,))


def test_blocks_move_between_depth_and_space(agree_on_node: Check, f32: Check) -> None:
    for mode in ("DCR", "CRD"):
        agree_on_node("DepthToSpace", f32(2, 8, 3, 2), blocksize=2, mode=mode)
    agree_on_node("SpaceToDepth", f32(2, 3, 4, 6), blocksize=2)


REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_a_reduction(op: str, agree_on_node: Check, rng: np.random.Generator) -> None:
    x = rng.uniform(0.5, 1.5, (2, 3, 4)).astype("f4")
    for keepdims in (0, 1):
        agree_on_node(op, x, axes=[0, -1], keepdims=keepdims)
        agree_on_node(op, x, i64(1), fixed=(1,), keepdims=keepdims, opset=18)
    agree_on_node(op, x)
    agree_on_node(op, x, opset=18, noop_with_empty_axes=0)


def test_a_sum_took_its_axes_as_input_before_others(
    agree_on_node: Check, f32: Check
) -> None:
    agree_on_node("ReduceSum", f32(2, 3), axes=[1], opset=11)
    agree_on_node("ReduceSum", f32(2, 3), i64(1), fixed=(1,), opset=13)
    agree_on_node("ReduceSum", f32(2, 3), noop_with_empty_axes=1, opset=13)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_the_place_of_an_extreme(op: str, last: int, agree_on_node: Check) -> None:
    x = np.array([[1, 3, 3], [2, 0, 0]], "f4")
    for keepdims in (0, 1):
        agree_on_node(op, x, axis=-1, keepdims=keepdims, select_last_index=last)
    agree_on_node(op, x)


def test_running_sums(agree_on_node: Check, f32: Check) -> None:
    for exclusive in (0, 1):
        for reverse in (0, 1):
            agree_on_node(
                "CumSum",
                f32(3, 4),
                np.array(1, np.int64),
                fixed=(1,),
                exclusive=exclusive,
                reverse=reverse,
            )


def test_the_largest_and_the_smallest(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("TopK", f32(3, 7), i64(2), fixed=(1,), outputs=2)
    agree_on_node("TopK", f32(5, 3), i64(2), fixed=(1,), outputs=2, axis=0, largest=0)


def test_picking_by_index(agree_on_node: Check, f32: Check) -> None:
    x = f32(4, 3, 2)
    agree_on_node("Gather", x, i64(3, -1, 0), axis=0)
    agree_on_node("Gather", x, np.array([[0, 1], [2, 2]], np.int32), axis=1)
    agree_on_node("Gather", x, np.array(1, np.int64), axis=-1)
    agree_on_node("GatherElements", x, np.zeros((4, 1, 2), np.int64), axis=1)
    agree_on_node("GatherND", x, np.array([[0, 1], [3, 2]], np.int64))
    agree_on_node("GatherND", x, np.array([[0], [1], [2], [1]], np.int64), batch_dims=1)


def test_placing_by_index(agree_on_node: Check, f32: Check) -> None:
    x, index = f32(4, 3), np.array([[1, 0, 2]], np.int64)
    agree_on_node("ScatterElements", x, index, f32(1, 3), axis=0)
    agree_on_node("Scatter", x, index, f32(1, 3), axis=0, opset=10)
    agree_on_node("ScatterElements", x, index, f32(1, 3), reduction="add", opset=16)
    agree_on_node("ScatterND", x, np.array([[1], [3]], np.int64), f32(2, 3))
    agree_on_node(
        "ScatterND", x, np.array([[1], [1]], np.int64), f32(2, 3), reduction="add"
    )


def test_one_hot(agree_on_node: Check) -> None:
    values = np.array([0.25, 2.0], "f4")
    for axis in (-1, 0):
        agree_on_node(
            "OneHot", i64(0, 2, -1, 9), np.array(4), values, fixed=(1,), axis=axis
        )


@pytest.mark.parametrize("k", [0, 1, -2])
@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(k: int, upper: int, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Trilu", f32(2, 3, 4), np.array(k), fixed=(1,), upper=upper)


def test_tensors_out_of_nothing(agree_on_node: Check) -> None:
    tensor = numpy_helper.from_array(np.array([7], np.int32))
    agree_on_node("ConstantOfShape", i64(2, 0, 3), fixed=(0,))
    agree_on_node("ConstantOfShape", i64(2, 3), fixed=(0,), value=tensor)
    agree_on_node("EyeLike", np.zeros((3, 4), "f4"), k=1)
    agree_on_node("Range", *(np.array(n) for n in (3, -4, -2)), fixed=(0, 1, 2))
    floats = (np.array(n, "f4") for n in (0.5, 3.0, 0.7))
    agree_on_node("Range", *floats, fixed=(0, 1, 2))
    agree_on_node("NonZero", np.array([[1, 0], [0, 3]], np.int64), fixed=(0,))


@pytest.mark.parametrize(
    "attributes",
    [
        {"value": numpy_helper.from_array(np.array([[1.5]], "f4"))},
        {"value_float": 1.5},
        {"value_floats": [1.5, 2.5]},
        {"value_int": 3},
        {"value_ints": [3, 4]},
    ],
    ids=lambda attributes: next(iter(attributes)),
)
def test_constants(attributes: Any, agree_on_node: Check) -> None:
    agree_on_node("Constant", opset=13, **attributes)
