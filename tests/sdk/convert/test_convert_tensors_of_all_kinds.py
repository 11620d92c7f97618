"""Einsum, sequences turned, spectra, losses, what values choose: whole operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import KernelError, ModelFormatError, ShapeError
from edgewise.ir.op import Array

Check = Callable[..., Any]
RNG = np.random.default_rng(5)


def normal(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.fixture(name="run")
def run_fixture(build: Check, module_outputs: Check) -> Check:
    """The outputs of one node over inputs of which some are weights."""

    def run(
        op: str,
        *inputs: Array | None,
        opset: int = 18,
        outputs: int = 1,
        fixed: tuple[int, ...] = (),
        shapes: dict[str, list[Any]] | None = None,
        **attributes: Any,
    ) -> list[Array]:
        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        results = [f"y{i}" for i in range(outputs)]
        node = helper.make_node(op, names, results, name="node", **attributes)
        feeds = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
        weights = {f"x{i}": feeds.pop(f"x{i}") for i in fixed}
        model = build(
            [node], feeds, results, weights=weights, opset=opset, shapes=shapes
        )
        return list(module_outputs(convert_module(model).module, feeds).values())

    return run


# Einsum


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(3, 5)]),
        ("ij", [(3, 5)]),
        ("ba", [(3, 5)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("iji->j", [(4, 3, 4)]),
        ("...ii->...i", [(2, 3, 4, 4)]),
        ("i,i", [(7,), (7,)]),
        ("i,j->ij", [(3,), (5,)]),
        ("i,j->ji", [(3,), (5,)]),
        (",ij->ij", [(), (3, 5)]),
        ("ij,jk->ik", [(3, 5), (5, 2)]),
        ("ij,jk", [(3, 5), (5, 2)]),
        ("bij,bjk->bik", [(2, 3, 5), (2, 5, 4)]),
        ("bij,bjk->ki", [(2, 3, 5), (2, 5, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 7, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 5), (5, 4)]),
        ("...ij,...jk", [(2, 1, 3, 5), (6, 5, 4)]),
        ("ij,ij,ij->", [(3, 5), (3, 5), (3, 5)]),
        ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
        ("ab,cd->acbd", [(2, 3), (4, 5)]),
        ("aab,bc->c", [(3, 3, 4), (4, 2)]),
        ("ij,jk->ik", [(3, 1), (5, 2)]),
        ("ij,jk->ik", [(3, 0), (0, 2)]),
        ("i -> ", [(7,)]),
    ],
)
def test_einsum_is_that_of_numpy(
    run: Check, equation: str, shapes: list[tuple[int, ...]]
) -> None:
    inputs = [normal(*shape) for shape in shapes]
    (y,) = run("Einsum", *inputs, equation=equation)
    want = np.einsum(equation, *(x.astype("f8") for x in inputs))
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, 1e-5, 1e-5)


def test_einsum_of_whole_numbers_is_exact(run: Check) -> None:
    a, b = RNG.integers(-99, 99, (3, 5)), RNG.integers(-99, 99, (5, 2))
    (y,) = run("Einsum", a, b, equation="ij,jk->ki")
    np.testing.assert_array_equal(y, (a @ b).T)


def test_einsum_over_sizes_that_only_a_run_knows(run: Check) -> None:
    a, b = normal(2, 3, 5), normal(2, 5, 4)
    shapes = {"x0": ["N", 3, "K"], "x1": ["N", "K", 4]}
    (y,) = run("Einsum", a, b, equation="bij,bjk->bki", shapes=shapes)
    np.testing.assert_allclose(y, (a @ b).transpose(0, 2, 1), 1e-5, 1e-5)


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik,", "ij->kl", "ijk,jk", "ij,jk->ii", "i j$", "i...j...,jk"]
)
def test_an_equation_that_does_not_fit_is_refused(run: Check, equation: str) -> None:
    with pytest.raises(ModelFormatError, match=r"node.*Einsum"):
        run("Einsum", normal(3, 5), normal(5, 2), equation=equation)


# Layout


@pytest.mark.parametrize("time", [0, 1])
def test_each_sequence_is_turned_up_to_its_end(run: Check, time: int) -> None:
    x, lengths = normal(4, 4, 3), np.array([4, 0, 1, 3])
    (y,) = run("ReverseSequence", x, lengths, time_axis=time, batch_axis=1 - time)
    rows = np.moveaxis(x, time, 1).copy()
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    np.testing.assert_array_equal(y, np.moveaxis(rows, 1, time))


def test_a_sequence_longer_than_its_axis_stops_the_run(run: Check) -> None:
    with pytest.raises(KernelError, match="out of range"):
        run("ReverseSequence", normal(4, 2), np.array([5, 1]))


@pytest.mark.parametrize("sizes", [(4, 9), (7, 2), (5, 6), (6, 5), (1, 1)])
def test_a_crop_keeps_the_middle_and_a_pad_surrounds_it(
    agree_on_node: Check, sizes: tuple[int, int]
) -> None:
    x, target = normal(2, 5, 6), np.array(sizes)
    agree_on_node("CenterCropPad", x, target, axes=[1, -1], fixed=[1], opset=18)


@pytest.mark.parametrize("flags", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("fixed", [(), (1,)])
def test_running_products(
    run: Check, flags: tuple[int, int], fixed: tuple[int, ...]
) -> None:
    x, (exclusive, reverse) = normal(2, 4, 3), flags
    options = {"exclusive": exclusive, "reverse": reverse}
    (y,) = run("CumProd", x, np.array(-2), opset=26, fixed=fixed, **options)
    ordered = x[:, ::-1] if reverse else x
    want = np.cumprod(ordered, 1)
    if exclusive:
        want = np.concatenate((np.ones_like(want[:, :1]), want[:, :-1]), 1)
    np.testing.assert_allclose(y, want[:, ::-1] if reverse else want, 1e-6)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [(0,), (-1, 1), (2, 0, -2)])
def test_axes_that_only_the_run_knows(
    run: Check, axes: tuple[int, ...], keepdims: int
) -> None:
    x = normal(2, 5, 3)
    (y,) = run("ReduceSum", x, np.array(axes), keepdims=keepdims)
    want = x.sum(axes, keepdims=bool(keepdims))
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, 1e-5, 1e-5)


@pytest.mark.parametrize("axes", [(3,), (-4,)])
def test_an_axis_beyond_the_last_stops_the_run(
    run: Check, axes: tuple[int, ...]
) -> None:
    with pytest.raises(KernelError, match="out of range"):
        run("ReduceSum", normal(2, 5, 3), np.array(axes))


@pytest.mark.parametrize("axes", [(1, 1), (1, -2)])
def test_an_axis_given_twice_stops_the_run(run: Check, axes: tuple[int, ...]) -> None:
    with pytest.raises((KernelError, ShapeError)):
        run("ReduceMax", normal(2, 5, 3), np.array(axes))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-(2**63), -2, 0, 3, 2**63 - 1])
def test_a_diagonal_that_only_the_run_knows(run: Check, k: int, upper: int) -> None:
    x = normal(2, 4, 5)
    (y,) = run("Trilu", x, np.array(k), upper=upper)
    ahead = np.arange(5)[None] - np.arange(4)[:, None]
    np.testing.assert_array_equal(
        y, np.where((ahead >= k) if upper else ahead <= k, x, 0)
    )


# What values choose


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_slices_are_kept_where_the_condition_holds(
    agree_on_node: Check, axis: int | None
) -> None:
    options = {} if axis is None else {"axis": axis}
    condition = np.array([False, True, True])
    agree_on_node("Compress", normal(3, 4), condition, opset=11, **options)
    agree_on_node("Compress", normal(3, 4), condition, opset=11, fixed=[1], **options)


def test_a_condition_beyond_the_axis_stops_the_run(run: Check) -> None:
    with pytest.raises(KernelError, match="out of range"):
        run("Compress", normal(2, 3), np.array([False, False, True]), axis=0)


def test_nothing_may_be_chosen(run: Check) -> None:
    (y,) = run("Compress", normal(2, 3), np.zeros(2, bool), axis=0)
    assert y.shape == (0, 3)


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_slices(agree_on_node: Check, axis: int | None, ordered: int) -> None:
    x = RNG.integers(0, 2, (5, 3)).astype("f4")
    options = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    agree_on_node("Unique", x, opset=11, outputs=4, **options)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("most", [0, 2, 99])
@pytest.mark.parametrize("limit", [None, 0.3])
def test_boxes_that_overlap_a_better_one_go(
    agree_on_node: Check, center: int, most: int, limit: float | None
) -> None:
    low = RNG.uniform(0, 4, (2, 40, 2))
    size = RNG.uniform(0.5, 3, (2, 40, 2))
    boxes = np.concatenate((low, size if center else low + size), 2).astype("f4")
    scores = RNG.uniform(0, 1, (2, 3, 40)).astype("f4")
    inputs = [boxes, scores, np.array([most]), np.array([0.4], "f4")]
    if limit is not None:
        inputs.append(np.array([limit], "f4"))
    agree_on_node("NonMaxSuppression", *inputs, opset=11, center_point_box=center)


# Losses


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 1, -7])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(
    agree_on_node: Check, op: str, reduction: str, weighted: bool, ignored: int | None
) -> None:
    labels = RNG.integers(0, 3, (4, 5))
    options = {"reduction": reduction}
    if ignored is not None:
        labels[1, :2] = ignored
        options["ignore_index"] = ignored  # type: ignore[assignment]
    inputs = [normal(4, 3, 5), labels]
    if weighted:
        inputs.append(RNG.uniform(0.5, 2, 3).astype("f4"))
    agree_on_node(op, *inputs, opset=13, **options)


def test_the_logarithms_of_a_cross_entropy_come_with_it(agree_on_node: Check) -> None:
    labels = np.array([2, 0])
    agree_on_node("SoftmaxCrossEntropyLoss", normal(2, 3), labels, opset=13, outputs=2)


def test_a_label_beyond_the_classes_stops_the_run(run: Check) -> None:
    with pytest.raises(KernelError, match="out of range"):
        run("NegativeLogLikelihoodLoss", normal(2, 3), np.array([0, 3]))


# Spectra


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 3, 8, 11])
@pytest.mark.parametrize("late", [False, True])
def test_the_transform_is_that_of_numpy(
    run: Check, inverse: int, length: int | None, late: bool
) -> None:
    x = normal(2, 8, 3, 2)
    size = None if length is None else np.array(length)
    fixed = () if late else (() if size is None else (1,)) + (2,)
    (y,) = run("DFT", x, size, np.array(1), opset=20, inverse=inverse, fixed=fixed)
    transform = np.fft.ifft if inverse else np.fft.fft
    want = transform(x[..., 0] + 1j * x[..., 1], n=length, axis=1)
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], want, 1e-4, 1e-4)


@pytest.mark.parametrize("length", [7, 8])
def test_half_a_spectrum_and_back(run: Check, length: int) -> None:
    x = normal(2, length, 1)
    axis = np.array(-2)
    (half,) = run("DFT", x, None, axis, opset=20, onesided=1, fixed=(2,))
    np.testing.assert_allclose(
        half[..., 0] + 1j * half[..., 1], np.fft.rfft(x[..., 0]), 1e-4, 1e-4
    )
    options = {"onesided": 1, "inverse": 1}
    size = np.array(length)
    (back,) = run("DFT", half, size, axis, opset=20, fixed=(1, 2), **options)
    np.testing.assert_allclose(back, x, 1e-4, 1e-4)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("fixed", [(), (1, 3)])
def test_frames_of_a_signal(
    run: Check, onesided: int, windowed: bool, fixed: tuple[int, ...]
) -> None:
    x, step, length = normal(2, 37, 1), 5, 16
    window = np.hanning(length).astype("f4") if windowed else None
    inputs = (x, np.array(step), window, np.array(length))
    (y,) = run("STFT", *inputs, opset=17, onesided=onesided, fixed=fixed)
    count = (37 - length) // step + 1
    frames = np.stack([x[:, i * step :][:, :length, 0] for i in range(count)], 1)
    transform = np.fft.rfft if onesided else np.fft.fft
    want = transform(frames * (1 if window is None else window))
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], want, 1e-4, 1e-4)


def test_mel_weights_agree(agree_on_node: Check) -> None:
    numbers = [np.array(n) for n in (40, 400, 16000)]
    edges = [np.array(20.0, "f4"), np.array(8000.0, "f4")]
    agree_on_node("MelWeightMatrix", *numbers, *edges, fixed=range(5), opset=17)
    agree_on_node("MelWeightMatrix", *numbers, *edges, opset=17)


# Determinants and bits


def test_determinants_agree(agree_on_node: Check) -> None:
    agree_on_node("Det", normal(2, 3, 4, 4), opset=11)


@pytest.mark.parametrize(
    ("source", "target", "code"), [("f4", "i4", 6), ("i2", "u2", 4), ("f8", "i8", 7)]
)
def test_bits_stay_as_they_are(run: Check, source: str, target: str, code: int) -> None:
    x = RNG.integers(0, 256, (3, 8), dtype=np.uint8).view(source)
    (y,) = run("BitCast", x, opset=26, to=code)
    np.testing.assert_array_equal(y, x.view(target))
