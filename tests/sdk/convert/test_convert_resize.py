"""Resizing, by gathers or by one op, gives what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import ModelFormatError, UnsupportedOpError

Check = Callable[..., Any]


def i64(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


@pytest.fixture
def f32(rng: np.random.Generator) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("f4")

    return make


RESIZES: list[dict[str, Any]] = [
    {"mode": "nearest"},
    {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"},
    {"mode": "nearest", "nearest_mode": "ceil"},
    {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
    {"mode": "nearest", "nearest_mode": "floor"},
    {"mode": "linear"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
]


@pytest.mark.parametrize("attributes", RESIZES)
@pytest.mark.parametrize("size", [(8, 10), (3, 7), (1, 13)])
def test_a_resize(attributes: Any, size: Any, agree_on_node: Check, f32: Check) -> None:
    x, sizes = f32(1, 2, 4, 5), i64(1, 2, *size)
    agree_on_node("Resize", x, None, None, sizes, fixed=(3,), **attributes)


def test_a_resize_by_scales(agree_on_node: Check, f32: Check) -> None:
    scales = np.array([1, 1, 2, 1.7], "f4")
    for mode in ("nearest", "linear"):
        agree_on_node("Resize", f32(1, 2, 4, 5), None, scales, fixed=(2,), mode=mode)
        agree_on_node(
            "Resize", f32(1, 2, 4, 5), scales, fixed=(1,), mode=mode, opset=10
        )
        agree_on_node(
            "Upsample", f32(1, 2, 4, 5), scales, fixed=(1,), mode=mode, opset=9
        )


def test_a_resize_of_open_sizes_repeats(build: Check, agree: Check, f32: Check) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest")
    weights = {"s": np.array([1, 1, 2, 3], "f4")}
    feeds = {"x": f32(2, 3, 5, 4)}
    shapes = {"x": ["N", 3, "H", "W"]}
    agree(build([node], feeds, ["y"], weights=weights, shapes=shapes), feeds)


CUBIC: list[dict[str, Any]] = [
    {},
    {"cubic_coeff_a": -0.5},
    {"exclude_outside": 1},
    {"coordinate_transformation_mode": "asymmetric"},
    {"antialias": 1},
]


@pytest.mark.parametrize("attributes", CUBIC)
@pytest.mark.parametrize("size", [(8, 10), (3, 2), (4, 13)])
def test_a_cubic_resize(
    attributes: Any, size: Any, agree_on_node: Check, f32: Check
) -> None:
    x, sizes = f32(1, 2, 4, 5), i64(1, 2, *size)
    more = {"mode": "cubic", **attributes}
    agree_on_node("Resize", x, None, None, sizes, fixed=(3,), opset=18, **more)


@pytest.mark.parametrize("size", [(8, 10), (3, 2), (2, 13)])
def test_a_filtered_resize(size: Any, agree_on_node: Check, f32: Check) -> None:
    x, sizes = f32(1, 2, 4, 5), i64(1, 2, *size)
    more = {"mode": "linear", "antialias": 1}
    agree_on_node("Resize", x, None, None, sizes, fixed=(3,), opset=18, **more)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("fixed", [(3,), ()])
def test_a_resize_that_keeps_the_aspect(
    policy: str, fixed: Any, agree_on_node: Check, f32: Check
) -> None:
    more = {"keep_aspect_ratio_policy": policy, "axes": [2, 3], "mode": "nearest"}
    sizes = i64(7, 9)
    x = f32(1, 2, 4, 5)
    agree_on_node("Resize", x, None, None, sizes, fixed=fixed, opset=18, **more)


@pytest.mark.parametrize("fixed", [(1, 3), (3,), ()])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_crop(fixed: Any, mode: str, agree_on_node: Check, f32: Check) -> None:
    roi = np.array([0, 0, 0.4, 0.6, 1, 1, 0.9, 1.2], "f4")
    agree_on_node(
        "Resize",
        f32(1, 1, 4, 5),
        roi,
        None,
        i64(1, 1, 3, 6),
        fixed=fixed,
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.0,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_sizes_and_scales_that_only_a_run_knows(
    mode: str, agree_on_node: Check, f32: Check
) -> None:
    x, scales = f32(1, 2, 4, 5), np.array([1, 1, 1.5, 0.6], "f4")
    agree_on_node("Resize", x, None, scales, mode=mode)
    agree_on_node("Resize", x, None, None, i64(1, 2, 7, 3), mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_an_image_of_open_sizes(
    mode: str, build: Check, agree: Check, f32: Check
) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode)
    weights = {"s": np.array([1, 1, 1.5, 0.75], "f4")}
    feeds = {"x": f32(2, 3, 5, 4)}
    shapes = {"x": ["N", 3, "H", "W"]}
    agree(build([node], feeds, ["y"], weights=weights, shapes=shapes), feeds)


@pytest.mark.parametrize(("rule", "lower"), [("ceil", 15), ("floor", 14)])
def test_an_exact_tie_is_one(
    rule: str, lower: int, build: Check, module_outputs: Check
) -> None:
    more = {"mode": "nearest", "nearest_mode": f"round_prefer_{rule}"}
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], **more)
    feeds = {"x": np.arange(30, dtype=np.float32).reshape(1, 30)}
    model = build([node], feeds, ["y"], weights={"s": i64(1, 9)})
    got = module_outputs(convert_module(model).module, feeds)["y"]
    # The middles of new elements 1, 4 and 7 lie half way between two old ones.
    assert got[0, [1, 4, 7]].tolist() == [lower - 10, lower, lower + 10]


def test_numbers_of_other_types(build: Check, module_outputs: Check) -> None:
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear")
    for dtype in (np.uint8, np.float16, np.float64):
        feeds = {"x": np.array([[0, 100, 30]], dtype)}
        model = build([node], feeds, ["y"], weights={"s": i64(1, 6)})
        got = module_outputs(convert_module(model).module, feeds)["y"]
        assert got.dtype == dtype
        exact = np.array([[0, 25, 75, 82.5, 47.5, 30]])
        wanted = np.rint(exact) if dtype == np.uint8 else exact
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("attributes", "error", "text"),
    [
        ({"mode": "lanczos"}, UnsupportedOpError, "lanczos"),
        ({"nearest_mode": "up"}, UnsupportedOpError, "up"),
        ({"keep_aspect_ratio_policy": "never"}, ModelFormatError, "never"),
        (
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
            ModelFormatError,
            "input 1",
        ),
    ],
)
def test_a_resize_that_says_nonsense_is_refused(
    attributes: Any, error: Any, text: str, build: Check, f32: Check
) -> None:
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], name="z", **attributes)
    weights = {"s": i64(1, 1, 8, 9)}
    model = build([node], {"x": f32(1, 1, 4, 5)}, ["y"], weights=weights, opset=18)
    with pytest.raises(error, match=text):
        convert_module(model)
