"""Resizing, by gathers, gives what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import UnsupportedOpError

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


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"mode": "cubic"}, "cubic"),
        ({"mode": "linear", "antialias": 1}, "antialias"),
        ({"mode": "linear", "keep_aspect_ratio_policy": "not_larger"}, "aspect"),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "tf_crop"),
    ],
)
def test_other_resizes_are_refused(
    attributes: Any, text: str, build: Check, f32: Check
) -> None:
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], name="z", **attributes)
    weights = {"s": i64(1, 1, 8, 9)}
    model = build([node], {"x": f32(1, 1, 4, 5)}, ["y"], weights=weights, opset=18)
    with pytest.raises(UnsupportedOpError, match=text):
        convert_module(model)
