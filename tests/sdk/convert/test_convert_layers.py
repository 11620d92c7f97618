"""ONNX layers give what onnxruntime gives: convolutions, pools, norms, products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import ModelFormatError

Check = Callable[..., Any]


@pytest.fixture
def f32(rng: np.random.Generator) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("f4")

    return make


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 5, 7), (4, 3, 1, 1), {}),
    ((2, 3, 6, 5), (17, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 4, 9, 8), (6, 2, 3, 2), {"group": 2, "strides": [2, 1]}),
    ((1, 6, 7, 7), (6, 1, 3, 3), {"group": 6, "pads": [0, 1, 2, 1]}),
    ((1, 3, 7, 7), (6, 1, 3, 3), {"group": 3}),
    ((1, 1, 5, 5), (1, 1, 2, 2), {"group": 1}),
    ((1, 2, 9, 9), (3, 2, 3, 3), {"dilations": [2, 3]}),
    ((1, 2, 8, 7), (3, 2, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 2, 8, 7), (3, 2, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
    ((1, 2, 8, 7), (3, 2, 3, 3), {"auto_pad": "VALID"}),
    ((2, 3, 11), (5, 3, 3), {"strides": [2], "pads": [1, 2]}),
    ((2, 4, 11), (4, 1, 3), {"group": 4, "dilations": [2]}),
    ((1, 2, 8), (3, 2, 3), {"auto_pad": "SAME_UPPER", "strides": [3]}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CONVOLUTIONS)
def test_a_convolution(
    x: Any, w: Any, attributes: dict[str, Any], agree_on_node: Check, f32: Check
) -> None:
    agree_on_node("Conv", f32(*x), f32(*w), fixed=(1,), **attributes)
    agree_on_node("Conv", f32(*x), f32(*w), f32(w[0]), fixed=(1, 2), **attributes)


def test_a_convolution_with_a_computed_weight(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Conv", f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(3))


@pytest.mark.parametrize(
    ("x", "w", "attributes", "error", "text"),
    [
        ((1, 2, 4, 4), (3, 2, 1, 1), {"group": 0}, ModelFormatError, "0 groups"),
        ((1, 2, 4, 4), (3, 5, 1, 1), {}, ModelFormatError, "groups"),
        ((1, 2, 4, 4), (3, 2, 1), {}, ModelFormatError, "weight"),
        ((1, 2, 4, 4), (3, 2, 1, 1), {"strides": [1]}, ModelFormatError, "strides"),
        ((1, 2, 4, 4), (3, 2, 1, 1), {"strides": [0, 1]}, ModelFormatError, "or more"),
        ((1, 2, 4, 4), (3, 2, 1, 1), {"pads": [-1, 0, 0, 0]}, ModelFormatError, "pads"),
        ((1, 2, 4, 4), (3, 2, 1, 1), {"auto_pad": "SAME"}, ModelFormatError, "SAME"),
        (
            (1, 2, 4, 4),
            (3, 2, 1, 1),
            {"kernel_shape": [3, 3]},
            ModelFormatError,
            "kernel",
        ),
    ],
)
def test_a_convolution_that_cannot_be_is_refused(
    x: Any, w: Any, attributes: Any, error: Any, text: str, build: Check, f32: Check
) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", **attributes)
    model = build([node], {"x": f32(*x)}, ["y"], weights={"w": f32(*w)})
    with pytest.raises(error, match=f"conv.*{text}"):
        convert_module(model)


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 6, 7), {"kernel_shape": [2, 3]}),
    ((1, 3, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 3, 6, 7), {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1}),
    (
        (1, 2, 7, 6),
        {
            "kernel_shape": [3, 3],
            "strides": [2, 2],
            "pads": [1, 0, 1, 1],
            "ceil_mode": 1,
        },
    ),
    ((1, 2, 5, 5), {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1}),
    (
        (1, 2, 6, 5),
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ),
    ((1, 2, 6, 5), {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
]


@pytest.mark.parametrize(("x", "attributes"), POOLS)
def test_a_pool(x: Any, attributes: Any, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("MaxPool", f32(*x), **attributes)
    for counted in (0, 1):
        agree_on_node("AveragePool", f32(*x), count_include_pad=counted, **attributes)


def test_a_dilated_pool(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("MaxPool", f32(1, 2, 8, 9), kernel_shape=[3, 2], dilations=[2, 3])


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_a_global_pool(op: str, shape: Any, agree_on_node: Check, f32: Check) -> None:
    agree_on_node(op, f32(*shape))


@pytest.mark.parametrize("height", [5, 6, 7, 8])
def test_a_rounded_up_pool_over_an_open_size(
    height: int, build: Check, agree: Check, f32: Check
) -> None:
    node = helper.make_node(
        "MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1
    )
    feeds = {"x": f32(1, 2, height, 9)}
    agree(build([node], feeds, ["y"], shapes={"x": [1, 2, "H", "W"]}), feeds)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 2, 2)])
@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_a_batch_norm(shape: Any, opset: int, agree_on_node: Check, f32: Check) -> None:
    parameters = f32(3), f32(3), f32(3), np.abs(f32(3))
    agree_on_node(
        "BatchNormalization",
        f32(*shape),
        *parameters,
        fixed=(1, 2, 3, 4),
        epsilon=1e-3,
        opset=opset,
    )


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 2, 3)])
def test_an_instance_norm(shape: Any, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("InstanceNormalization", f32(*shape), f32(3), f32(3), fixed=(1, 2))


@pytest.mark.parametrize(("opset", "size"), [(18, 2), (21, 6)])
def test_a_group_norm(opset: int, size: int, agree_on_node: Check, f32: Check) -> None:
    agree_on_node(
        "GroupNormalization",
        f32(2, 6, 4, 5),
        f32(size),
        f32(size),
        fixed=(1, 2),
        num_groups=2,
        opset=opset,
    )


@pytest.mark.parametrize("axis", [-1, 1])
def test_a_layer_norm(axis: int, agree_on_node: Check, f32: Check) -> None:
    shape = (5,) if axis == -1 else (3, 5)
    x, scale, shift = f32(2, 3, 5), f32(*shape), f32(*shape)
    agree_on_node("LayerNormalization", x, scale, shift, fixed=(1, 2), axis=axis)
    agree_on_node("LayerNormalization", x, scale, axis=axis, outputs=3)


def test_other_norms(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("LRN", f32(2, 7, 3, 3), size=3, alpha=0.01, beta=0.6, bias=1.5)
    for p in (1, 2):
        agree_on_node("LpNormalization", f32(3, 4), p=p, axis=0)
    agree_on_node("LpNormalization", np.zeros((2, 3), "f4"))
    agree_on_node("MeanVarianceNormalization", f32(2, 3, 4, 5))


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (4,)),
        ((0, 4), (4, 5)),
        ((3, 0), (0, 5)),
    ],
)
@pytest.mark.parametrize("fixed", [(), (1,)])
def test_a_product(shapes: Any, fixed: Any, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("MatMul", f32(*shapes[0]), f32(*shapes[1]), fixed=fixed)


@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("c", [(), (5,), (1, 5), (3, 1), (3, 5)])
def test_a_gemm(turned: Any, c: Any, agree_on_node: Check, f32: Check) -> None:
    a = f32(4, 3) if turned[0] else f32(3, 4)
    b = f32(5, 4) if turned[1] else f32(4, 5)
    flags = {"transA": turned[0], "transB": turned[1]}
    agree_on_node("Gemm", a, b, f32(*c), fixed=(1, 2), **flags)
    agree_on_node("Gemm", a, b, f32(*c), alpha=0.5, beta=1.5, **flags)
    agree_on_node("Gemm", a, b, f32(*c), beta=0.0, **flags)


def test_a_product_of_small_integers(agree_on_node: Check) -> None:
    a, b = np.array([[1, 255], [7, 0]], np.uint8), np.array([[3, 4], [5, 6]], np.int8)
    zeros = np.array(128, np.uint8), np.array(-1, np.int8)
    agree_on_node("MatMulInteger", a, b)
    agree_on_node("MatMulInteger", a, b, *zeros, fixed=(2, 3))
