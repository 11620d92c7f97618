"""Einsum, elements laid out anew, and what values choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgewise.errors import KernelError, ModelFormatError, ShapeError
from edgewise.ir.op import Array

Check = Callable[..., Any]
RNG = np.random.default_rng(5)


def normal(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


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
