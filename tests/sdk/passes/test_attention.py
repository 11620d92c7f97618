"""Attention is found in the forms that exporters write, and reads things in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgewise.convert.config import ConvertConfig
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Add,
    Attention,
    Div,
    Expand,
    Gather,
    Greater,
    MatMul,
    Mul,
    Reshape,
    Slice,
    Softmax,
    Tanh,
    Transpose,
    Where,
)
from edgewise.passes.pipeline import optimise
from edgewise.types import DType

N, T, H, D = 2, 5, 3, 4
Three = tuple[Value, Value, Value]


def n(value: float) -> Value:
    return constant(np.array(value, "f4"))


def heads(x: Value, axes: tuple[int, ...] = (0, 2, 1, 3)) -> Value:
    return Transpose(axes)(Reshape((N, T, H, D))(x))


def three(t: Any, name: str = "") -> Three:
    """Queries, keys and values of three layers, as their heads."""
    q, k, v = (t.x(N, T, H * D, key=f"{name}{key}") for key in "qkv")
    return heads(q), heads(k, (0, 2, 3, 1)), heads(v)


def together(scores: Value, v: Value) -> Value:
    y = MatMul()(Softmax(scores.type.rank - 1)(scores), v)
    return Reshape((N, T, H * D))(Transpose((0, 2, 1, 3))(y))


def scaled_scores(t: Any) -> Value:
    q, k, v = three(t)
    return together(Div()(MatMul()(q, k), n(math.sqrt(D))), v)


def scaled_queries(t: Any) -> Value:
    q, k, v = three(t)
    return together(MatMul()(Mul()(q, n(0.5)), k), v)


def scaled_on_both_sides(t: Any) -> Value:
    q, k, v = three(t)
    turned = Transpose((0, 1, 3, 2))(k)
    k = Transpose((0, 1, 3, 2))(Mul()(n(0.7), turned))
    return together(MatMul()(Mul()(q, n(0.7)), k), v)


def additive_mask(t: Any) -> Value:
    q, k, v = three(t)
    scores = Div()(MatMul()(q, k), n(2.0))
    return together(Add()(scores, t.x(N, 1, 1, T, key="mask")), v)


def bias_and_mask(t: Any) -> Value:
    """As T5: no scale, a bias for each head, then what is hidden."""
    q, k, v = three(t)
    scores = Add()(t.x(1, H, T, T, key="bias"), MatMul()(q, k))
    return together(Add()(scores, t.x(N, 1, 1, T, key="mask")), v)


def chosen_scores(t: Any) -> Value:
    """As GPT-2: a condition says which scores stay."""
    q, k, v = three(t)
    seen = Greater()(t.x(1, 1, T, T, key="mask"), n(-0.5))
    scores = Div()(MatMul()(q, k), n(2.0))
    return together(Where()(seen, scores, n(-3.4028235e38)), v)


def filled_scores(t: Any) -> Value:
    """As ``masked_fill``: a condition says which scores go."""
    q, k, v = three(t)
    hidden = Greater()(t.x(N, 1, 1, T, key="mask"), n(1.5))
    return together(Where()(hidden, n(-math.inf), MatMul()(q, k)), v)


def shared_keys(t: Any) -> Value:
    """One head of keys and values for all of queries."""
    q, _, _ = three(t)
    k, v = t.x(N, 1, D, T, key="k1"), t.x(N, 1, T, D, key="v1")
    return together(MatMul()(q, k), v)


FORMS: list[Callable[[Any], Value]] = [
    scaled_scores,
    scaled_queries,
    scaled_on_both_sides,
    additive_mask,
    bias_and_mask,
    chosen_scores,
    filled_scores,
    shared_keys,
]


def optimised(t: Any, value: Value) -> Any:
    module = t.module(value)
    after, _ = optimise(module, ConvertConfig())
    t.same_numbers(module, after)
    return after.functions["infer"]


@pytest.mark.parametrize("form", FORMS)
def test_attention_is_found_and_nothing_is_moved(form: Any, t: Any) -> None:
    ops = t.ops(optimised(t, form(t)))
    assert ops["attention"] == 1
    assert not ops.keys() & {"matmul", "softmax", "transpose"}


def packed_by_axes(t: Any) -> Value:
    """As timm: [N, T, 3, H, D], taken apart behind a transpose."""
    x = Reshape((N, T, 3, H, D))(t.x(N, T, 3 * H * D))
    x = Transpose((2, 0, 3, 1, 4))(x)
    parts = [
        Reshape((N, H, T, D))(
            Slice((i, 0, 0, 0, 0), (1, N, H, T, D), (1,) * 5)(x),
        )
        for i in range(3)
    ]
    return together(MatMul()(parts[0], Transpose((0, 1, 3, 2))(parts[1])), parts[2])


def packed_and_indexed(t: Any) -> Value:
    """The same by an index."""
    x = Reshape((N, T, 3, H, D))(t.x(N, T, 3 * H * D))
    x = Transpose((2, 0, 3, 1, 4))(x)
    q, k, v = (Gather(0)(x, constant(np.array(i))) for i in (0, 1, -1))
    return together(MatMul()(q, Transpose((0, 1, 3, 2))(k)), v)


def packed_by_channels(t: Any) -> Value:
    """As GPT-2: three parts of the last axis."""
    x = t.x(N, T, 3 * H * D)
    q, k, v = (Slice((0, 0, i * H * D), (N, T, H * D), (1, 1, 1))(x) for i in range(3))
    return together(MatMul()(heads(q), heads(k, (0, 2, 3, 1))), heads(v))


def packed_in_heads(t: Any) -> Value:
    """As BLOOM: each head has its three parts."""
    x = Reshape((N, T, H, 3, D))(t.x(N, T, 3 * H * D))
    q, k, v = (
        Reshape((N, T, H, D))(
            Slice((0, 0, 0, i, 0), (N, T, H, 1, D), (1,) * 5)(x),
        )
        for i in range(3)
    )
    scores = MatMul()(Transpose((0, 2, 1, 3))(q), Transpose((0, 2, 3, 1))(k))
    return together(scores, Transpose((0, 2, 1, 3))(v))


@pytest.mark.parametrize(
    "form", [packed_by_axes, packed_and_indexed, packed_by_channels, packed_in_heads]
)
def test_parts_of_one_product_are_read_where_they_lie(form: Any, t: Any) -> None:
    assert t.ops(optimised(t, form(t))).keys() <= {"attention", "reshape"}


def test_products_of_three_axes_are_heads_of_one_batch(t: Any) -> None:
    """As ``nn.MultiheadAttention``: time first, batch and heads in one axis."""
    q, k, v = (
        Transpose((1, 0, 2))(Reshape((T, N * H, D))(t.x(T, N, H * D, key=key)))
        for key in "qkv"
    )
    y = MatMul()(Softmax(2)(MatMul()(q, Transpose((0, 2, 1))(k))), v)
    y = Reshape((T, N, H * D))(Transpose((1, 0, 2))(y))
    ops = t.ops(optimised(t, y))
    assert ops["attention"] == 1
    assert not ops.keys() & {"matmul", "softmax"}


def other_axis(t: Any) -> Value:
    q, k, v = three(t)
    return MatMul()(Softmax(2)(MatMul()(q, k)), v)


def something_between(t: Any) -> Value:
    q, k, v = three(t)
    return together(Tanh()(MatMul()(q, k)), v)


def small_fill(t: Any) -> Value:
    q, k, v = three(t)
    seen = Greater()(t.x(1, 1, T, T, key="mask"), n(0.0))
    return together(Where()(seen, MatMul()(q, k), n(-10.0)), v)


def mask_that_widens(t: Any) -> Value:
    q, k, v = (t.x(1, H, T, D, key=key) for key in "qkv")
    scores = MatMul()(q, Transpose((0, 1, 3, 2))(k))
    v = Expand((N, H, T, D))(v)
    return together(Add()(scores, t.x(N, 1, 1, T, key="mask")), v)


def scaled_behind_the_mask(t: Any) -> Value:
    q, k, v = three(t)
    scores = Add()(MatMul()(q, k), t.x(T, T, key="mask"))
    return together(Mul()(scores, n(0.5)), v)


@pytest.mark.parametrize(
    "form",
    [
        other_axis,
        something_between,
        small_fill,
        mask_that_widens,
        scaled_behind_the_mask,
    ],
)
def test_what_is_no_attention_stays(form: Any, t: Any) -> None:
    ops = t.ops(optimised(t, form(t)))
    assert ops["attention"] == 0
    assert ops["softmax"] == 1


def test_weights_that_are_read_elsewhere_stay(t: Any) -> None:
    q, k, v = three(t)
    weights = Softmax(3)(MatMul()(q, k))
    module = t.module(weights, MatMul()(weights, v))
    after, _ = optimise(module, ConvertConfig())
    t.same_numbers(module, after)
    assert t.ops(after.functions["infer"])["attention"] == 0


def test_doubles_stay(t: Any) -> None:
    q, k, v = (t.x(N, H, T, D, key=key, dtype=DType.F64) for key in "qkv")
    y = MatMul()(Softmax(3)(MatMul()(q, Transpose((0, 1, 3, 2))(k))), v)
    after, _ = optimise(t.module(y), ConvertConfig())
    assert t.ops(after.functions["infer"])["attention"] == 0


@pytest.mark.parametrize(
    "axes",
    [
        "nqhd,nkhd,nkhe",
        "nqhd,nkhd,nkhe->nqhd",
        "nqhd,nkhd->nqhe",
        "nqh0,nkhd,nkhe->nqhe",
        "nq00hd,nkhd,nkhe->nqhe",
        "nqhd,nkhd,nkhe->nq0he",
        "nqhd,nkhd,nkhé->nqhe",
        "",
    ],
)
def test_axes_that_say_nothing_are_refused(axes: str) -> None:
    with pytest.raises(Exception, match="axes like"):
        Attention(1.0, axes).forms()
