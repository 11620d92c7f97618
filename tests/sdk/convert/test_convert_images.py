"""Convolutions, pools, samplers over any axes give what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import ModelFormatError, UnsupportedOpError

Check = Callable[..., Any]


@pytest.fixture
def f32(rng: np.random.Generator) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("f4")

    return make


DEEP: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 4, 5, 6), (4, 3, 2, 3, 3), {"pads": [1, 0, 1, 0, 1, 1]}),
    ((2, 4, 5, 4, 6), (6, 2, 3, 1, 2), {"group": 2, "strides": [2, 1, 2]}),
    ((1, 3, 6, 5, 5), (3, 1, 2, 2, 2), {"group": 3, "dilations": [2, 1, 2]}),
    ((1, 2, 5, 5, 5), (3, 2, 1, 1, 1), {}),
    ((1, 2, 5, 5, 5), (3, 2, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2] * 3}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), DEEP)
def test_a_convolution_over_three_axes(
    x: Any, w: Any, attributes: Any, agree_on_node: Check, f32: Check
) -> None:
    agree_on_node("Conv", f32(*x), f32(*w), fixed=(1,), **attributes)
    agree_on_node("Conv", f32(*x), f32(*w), f32(w[0]), fixed=(1, 2), **attributes)


def test_a_convolution_over_four_axes_is_one_over_three_where_the_fourth_is_thin(
    build: Check, module_outputs: Check, f32: Check
) -> None:
    x, w = f32(1, 2, 4, 4, 5, 3), f32(3, 2, 2, 2, 3, 1)
    node = helper.make_node("Conv", ["x", "w"], ["y"])

    def run(x: Any, w: Any) -> Any:
        feeds = {"x": x, "w": w}
        return module_outputs(convert_module(build([node], feeds, ["y"])).module, feeds)

    whole = run(x, w)["y"]
    for last in range(3):
        thin = run(x[..., last], w[..., 0])["y"]
        np.testing.assert_allclose(whole[..., last], thin, 1e-5, 1e-5)


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 4, 5), (3, 2, 3, 3), {}),
    ((2, 3, 4, 5), (3, 2, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 3, 4, 5), (3, 2, 3, 2), {"strides": [2, 3], "output_padding": [1, 2]}),
    ((1, 3, 4, 5), (3, 2, 1, 2), {"strides": [3, 4]}),
    ((1, 4, 4, 5), (4, 3, 3, 3), {"group": 2, "strides": [2, 1], "dilations": [2, 3]}),
    ((1, 4, 4, 5), (4, 1, 3, 3), {"group": 4, "strides": [2, 2], "pads": [0, 1, 2, 0]}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    ((1, 2, 3, 3), (2, 2, 2, 2), {"strides": [2, 2], "pads": [3, 2, 1, 2]}),
    ((2, 3, 7), (3, 4, 5), {"strides": [3], "pads": [2, 1]}),
    ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2), {"strides": [2, 1, 2]}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), TRANSPOSED)
def test_a_transposed_convolution(
    x: Any, w: Any, attributes: Any, agree_on_node: Check, f32: Check
) -> None:
    bias = f32(w[1] * attributes.get("group", 1))
    agree_on_node("ConvTranspose", f32(*x), f32(*w), fixed=(1,), **attributes)
    agree_on_node("ConvTranspose", f32(*x), f32(*w), bias, **attributes)


def test_a_transposed_convolution_of_open_sizes(
    build: Check, agree: Check, f32: Check
) -> None:
    more = {"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 1]}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **more)
    feeds, weights = {"x": f32(2, 3, 5, 4)}, {"w": f32(3, 2, 3, 3)}
    shapes = {"x": ["N", 3, "H", "W"]}
    agree(build([node], feeds, ["y"], weights=weights, shapes=shapes), feeds)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_the_odd_row_is_cropped_where_the_mode_says(
    mode: str, build: Check, module_outputs: Check
) -> None:
    more = {"strides": [1, 1], "auto_pad": mode}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **more)
    feeds = {"x": np.ones((1, 1, 1, 3), "f4"), "w": np.ones((1, 1, 1, 2), "f4")}
    got = module_outputs(convert_module(build([node], feeds, ["y"])).module, feeds)
    wanted = [1, 2, 2] if mode == "SAME_UPPER" else [2, 2, 1]
    assert got["y"].reshape(-1).tolist() == wanted


@pytest.mark.parametrize(
    ("w", "attributes", "text"),
    [
        ((3, 2, 3), {}, "weight"),
        ((4, 2, 3, 3), {}, "weight"),
        ((3, 2, 3, 3), {"group": 2}, "2 groups"),
        ((3, 2, 3, 3), {"strides": [0, 1]}, "strides"),
        ((3, 2, 3, 3), {"output_shape": [4]}, "2 sizes"),
        ((3, 2, 3, 3), {"kernel_shape": [2, 2]}, "kernel_shape"),
    ],
)
def test_a_transposed_convolution_that_cannot_be_is_refused(
    w: Any, attributes: Any, text: str, build: Check, f32: Check
) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], name="up", **attributes)
    model = build([node], {"x": f32(1, 3, 4, 4)}, ["y"], weights={"w": f32(*w)})
    with pytest.raises(ModelFormatError, match=f"up.*{text}"):
        convert_module(model)


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 4, 6, 7), {"kernel_shape": [2, 2, 3]}),
    ((2, 2, 5, 6, 5), {"kernel_shape": [3] * 3, "strides": [2] * 3, "pads": [1] * 6}),
    ((1, 2, 5, 6, 7), {"kernel_shape": [2] * 3, "strides": [3, 2, 2], "ceil_mode": 1}),
    ((1, 2, 6, 6, 7), {"kernel_shape": [2] * 3, "dilations": [2, 1, 3]}),
]


@pytest.mark.parametrize(("shape", "attributes"), POOLS)
def test_a_pool_over_three_axes(
    shape: Any, attributes: Any, agree_on_node: Check, f32: Check
) -> None:
    agree_on_node("MaxPool", f32(*shape), **attributes)
    for counted in (0, 1):
        more = {"count_include_pad": counted, "opset": 19}
        agree_on_node("AveragePool", f32(*shape), **more, **attributes)
    agree_on_node("LpPool", f32(*shape), opset=18, **attributes)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("shape", [(2, 3, 9), (1, 3, 6, 7)])
def test_a_pool_of_powers(p: int, shape: Any, agree_on_node: Check, f32: Check) -> None:
    kernel = [3] * (len(shape) - 2)
    more = {"strides": [2] * len(kernel), "auto_pad": "SAME_UPPER"}
    agree_on_node("LpPool", f32(*shape), kernel_shape=kernel, p=p, **more)
    agree_on_node("GlobalLpPool", f32(*shape), p=p)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("height", [5, 6, 7])
def test_pads_that_only_a_run_knows(
    op: str, height: int, build: Check, agree: Check, f32: Check
) -> None:
    more = {"strides": [2, 3], "auto_pad": "SAME_LOWER"}
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[3, 4], **more)
    feeds = {"x": f32(1, 2, height, 8)}
    agree(build([node], feeds, ["y"], shapes={"x": [1, 2, "H", "W"]}), feeds)


@pytest.mark.parametrize("major", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 9), (2, 3, 6, 7), (1, 2, 4, 5, 6)])
def test_the_places_of_the_largest(
    major: int, shape: Any, agree_on_node: Check, f32: Check
) -> None:
    kernel = [2] * (len(shape) - 2)
    more = {"storage_order": major, "strides": kernel, "outputs": 2}
    agree_on_node("MaxPool", f32(*shape), kernel_shape=kernel, **more)


def test_unpooling_puts_elements_back(
    build: Check, agree_on_node: Check, module_outputs: Check, f32: Check
) -> None:
    x, more = f32(1, 2, 2, 2), {"kernel_shape": [2, 2], "strides": [2, 2]}
    places = np.array([[[[1, 3], [8, 14]], [[16, 19], [25, 31]]]], np.int64)
    agree_on_node("MaxUnpool", x, places, **more)
    node = helper.make_node("MaxUnpool", ["x", "i", "s"], ["y"], **more)
    feeds, shape = {"x": x, "i": places}, np.array([1, 2, 5, 4], np.int64)
    model = build([node], feeds, ["y"], weights={"s": shape})
    got = module_outputs(convert_module(model).module, feeds)["y"]
    # Places count what the pool reads, as ONNX's own reference has it: 4 rows of 4.
    flat = np.zeros(32, "f4")
    flat[places.reshape(-1)] = x.reshape(-1)
    np.testing.assert_array_equal(got[:, :, :4], flat.reshape(1, 2, 4, 4))
    assert not got[:, :, 4].any()


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("corners", [0, 1])
def test_sampling_a_grid(
    padding: str, mode: str, corners: int, agree_on_node: Check, f32: Check
) -> None:
    more = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    x, grid = f32(2, 2, 5, 4), f32(2, 3, 6, 2)
    agree_on_node("GridSample", x, grid, opset=20, **more)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("opset", [10, 16])
def test_aligned_regions(
    mode: str, ratio: int, opset: int, agree_on_node: Check, f32: Check
) -> None:
    rois = np.array([[0, 1, 6, 5], [1.5, 2, 3, 7], [-2, 0, 20, 3]], "f4")
    more: dict[str, Any] = {"output_height": 2, "output_width": 3, "spatial_scale": 0.8}
    more |= {"mode": mode, "sampling_ratio": ratio, "opset": opset}
    images = np.array([1, 0, 1], np.int64)
    agree_on_node("RoiAlign", np.abs(f32(2, 3, 6, 7)), rois, images, **more)


def test_the_largest_of_regions(agree_on_node: Check, f32: Check) -> None:
    rois = np.array([[1, 0, 1, 5, 4], [0, 1, 2, 2.4, 5.6]], "f4")
    agree_on_node("MaxRoiPool", f32(2, 3, 6, 7), rois, pooled_shape=[2, 3])


def test_folding_columns(agree_on_node: Check, f32: Check) -> None:
    sizes, block = np.array([5, 6], np.int64), np.array([2, 3], np.int64)
    more = {"strides": [2, 1], "pads": [1, 0, 0, 2], "dilations": [1, 2], "opset": 18}
    agree_on_node("Col2Im", f32(2, 12, 12), sizes, block, fixed=(1, 2), **more)
    agree_on_node("Col2Im", f32(2, 12, 12), sizes, block, **more)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_statistics_of_the_batch(shape: Any, agree_on_node: Check, f32: Check) -> None:
    vectors = f32(3), f32(3), f32(3), np.abs(f32(3))
    more = {"training_mode": 1, "momentum": 0.7, "outputs": 3}
    agree_on_node("BatchNormalization", 9 + f32(*shape), *vectors, **more)


def test_a_mean_and_a_variance_for_every_place(
    build: Check, module_outputs: Check, f32: Check
) -> None:
    names = ["x", "scale", "shift", "mean", "variance"]
    node = helper.make_node("BatchNormalization", names, ["y"], spatial=0)
    x, scale, shift, mean = f32(4, 2, 3), f32(2, 3), f32(2, 3), f32(2, 3)
    variance = np.abs(f32(2, 3))
    values = x, scale, shift, mean, variance
    feeds = dict(zip(names, values, strict=True))
    model = build([node], feeds, ["y"], opset=7)
    got = module_outputs(convert_module(model).module, feeds)["y"]
    wanted = (x - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + shift
    np.testing.assert_allclose(got, wanted, 1e-5, 1e-6)


def test_a_small_variance_far_from_zero(build: Check, module_outputs: Check) -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    x = (4000 + np.arange(6)).astype("f4").reshape(1, 1, 2, 3)
    got = module_outputs(
        convert_module(build([node], {"x": x}, ["y"])).module, {"x": x}
    )
    wanted = (np.arange(6) - 2.5) / np.std(np.arange(6))
    np.testing.assert_allclose(got["y"].reshape(-1), wanted, 1e-4)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_space_and_depth_are_each_other_s_inverse(
    mode: str, build: Check, module_outputs: Check, f32: Check
) -> None:
    x, more = f32(2, 3, 4, 6), {"blocksize": 2, "mode": mode}
    nodes = [
        helper.make_node("SpaceToDepth", ["x"], ["d"], **more),
        helper.make_node("DepthToSpace", ["d"], ["y"], **more),
    ]
    model = build(nodes, {"x": x}, ["y"], opset=28)
    got = module_outputs(convert_module(model).module, {"x": x})["y"]
    np.testing.assert_array_equal(got, x)


def test_image_files_are_refused_with_a_way_out(build: Check) -> None:
    node = helper.make_node("ImageDecoder", ["x"], ["y"], name="jpeg")
    model = build([node], {"x": np.zeros(9, np.uint8)}, ["y"], opset=20)
    with pytest.raises(UnsupportedOpError, match=r"jpeg.*decode images before"):
        convert_module(model)
