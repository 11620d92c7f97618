"""Transposes sink, cancel, and become reshapes where they move nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from edgewise.dims import symbol
from edgewise.ir.graph import Graph, Value, constant
from edgewise.ops import (
    Abs,
    Add,
    Argmax,
    BatchNorm,
    Cast,
    Clip,
    Concat,
    Gather,
    LayerNorm,
    MatMul,
    Mul,
    Pad,
    Prelu,
    ReduceMean,
    Relu,
    Reshape,
    ScaleShift,
    Slice,
    Softmax,
    TopK,
    Transpose,
    Where,
)
from edgewise.passes.layout import layout

TO_LAST, TO_FIRST = Transpose((0, 2, 3, 1)), Transpose((0, 3, 1, 2))
N = symbol("N")


def after(t: Any, *outputs: Value, sizes: Any = None) -> Counter[str]:
    """Ops that are left when the last of two borders has met the first."""
    module = t.module(*outputs)
    graph, _ = layout(module.functions["infer"])
    t.same_numbers(module, module.with_function("infer", graph), sizes)
    return Counter(t.ops(graph))


def image(t: Any, key: str = "x") -> Value:
    """``f32[2, 3, 4, 5]`` from channels-last data."""
    return TO_FIRST(t.x(2, 4, 5, 3, key=key))


def row(*shape: int) -> Value:
    size = int(np.prod(shape))
    return constant(np.linspace(-1, 1, size, dtype="f4").reshape(shape))


def test_a_transpose_and_its_inverse_vanish(t: Any) -> None:
    assert not after(t, TO_LAST(image(t)))


def test_a_border_stays(t: Any) -> None:
    assert after(t, Relu()(image(t))) == {"relu": 1, "transpose": 1}


INNER = {
    "unary": lambda _t, x: Abs()(x),
    "activation": lambda _t, x: Relu()(x),
    "clip": lambda _t, x: Clip(0.0, 0.5)(x),
    "cast": lambda _t, x: Cast("f16")(x),
    "scalar": lambda _t, x: Mul()(x, row()),
    "one": lambda _t, x: Mul()(x, row(1)),
    "channels": lambda _t, x: Add()(x, row(3, 1, 1)),
    "columns": lambda _t, x: Add()(row(5), x),
    "whole": lambda _t, x: Add()(x, row(1, 3, 4, 5)),
    "variable": lambda t, x: Add()(x, t.w(3, 4, 5)),
    "itself": lambda _t, x: Mul()(x, Relu()(x)),
    "prelu": lambda t, x: Prelu()(x, t.w(3, 1, 1)),
    "where": lambda t, x: Where()(Cast("bool")(x), x, image(t, "z")),
    "both": lambda t, x: Add()(x, image(t, "z")),
    "concat": lambda t, x: Concat(1)(x, image(t, "z")),
    "concat constant": lambda _t, x: Concat(1)(x, row(2, 3, 4, 5)),
    "slice": lambda _t, x: Slice((0, 2, 1, 4), (2, 2, 3, 3), (1, -1, 1, -2))(x),
    "pad": lambda _t, x: Pad((0, 1, 2, 0, 0, 0, 1, -1), "edge")(x),
    "softmax": lambda _t, x: Softmax(1)(x),
    "norm": lambda t, x: BatchNorm(1)(x, *(t.w(3, key=k) for k in "gbmv")),
    "scale": lambda t, x: ScaleShift(1)(x, t.w(3), None),
    "gather": lambda _t, x: Gather(2)(x, constant(np.array([3, 0]))),
}


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_a_transpose_sinks_through(inner: Any, t: Any) -> None:
    """What stands between two transposes runs channels-last."""
    ops = after(t, TO_LAST(inner(t, image(t))))
    # A variable of the image's size is moved itself, once, in ``prepare``.
    assert ops["transpose"] <= (inner is INNER["variable"])


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(2, 3), (1,), (0, 1, 2, 3), (0, 2)])
def test_a_reduction_takes_its_axes_along(axes: Any, keepdims: bool, t: Any) -> None:
    ops = after(t, ReduceMean(axes, keepdims)(image(t)))
    assert ops["reduce_mean"] == 1
    assert ops["transpose"] <= (axes in {(1,), (0, 2)})


@pytest.mark.parametrize("keepdims", [True, False])
def test_the_place_of_an_extreme(keepdims: bool, t: Any) -> None:
    assert not after(t, Argmax(1, keepdims)(image(t)))["transpose"]


def test_a_scalar_index_removes_an_axis(t: Any) -> None:
    assert not after(t, Gather(1)(image(t), constant(np.array(1))))["transpose"]


def test_the_mean_of_an_image_is_flattened_without_a_transpose(t: Any) -> None:
    x = TO_FIRST(t.x(N, 4, 5, 3))
    value = Reshape((N, 3))(ReduceMean((2, 3), True)(x))
    ops = after(t, value, sizes={"N": 2})
    assert ops == {"reduce_mean": 1, "reshape": 1}


def test_a_flattened_image_needs_its_transpose(t: Any) -> None:
    ops = after(t, Reshape((2, 60))(image(t)))
    assert ops == {"transpose": 1, "reshape": 1}


def test_pixels_become_a_sequence_without_a_transpose(t: Any) -> None:
    tokens = Transpose((0, 2, 1))(Reshape((N, 3, 20))(TO_FIRST(t.x(N, 4, 5, 3))))
    assert after(t, tokens, sizes={"N": 2}) == {"reshape": 1}


def test_channels_are_shuffled_where_they_lie(t: Any) -> None:
    x = TO_FIRST(t.x(2, 4, 5, 6))
    split = Transpose((0, 2, 1, 3, 4))(Reshape((2, 2, 3, 4, 5))(x))
    ops = after(t, TO_LAST(Reshape((2, 6, 4, 5))(split)))
    assert ops["transpose"] == 1


def test_heads_of_attention_are_joined_as_before(t: Any) -> None:
    heads = Transpose((0, 2, 1, 3))(t.x(2, 3, 4, 5))
    ops = after(t, Reshape((2, 4, 15))(heads))
    assert ops == {"transpose": 1, "reshape": 1}


def test_a_line_of_ones_is_reshaped(t: Any) -> None:
    assert after(t, TO_LAST(t.x(N, 1, 4, 5)), sizes={"N": 2}) == {"reshape": 1}
    assert after(t, TO_LAST(t.x(2, 3, 1, 1))) == {"reshape": 1}


def test_another_operand_that_would_have_to_move_stops_it(t: Any) -> None:
    ops = after(t, TO_LAST(Add()(image(t), t.x(2, 3, 4, 5, key="z"))))
    assert ops["transpose"] == 2


def test_a_softmax_over_an_inner_axis_stays(t: Any) -> None:
    x = Transpose((0, 2, 1))(t.x(2, 3, 4))
    graph, _ = layout(t.graph(Softmax(2)(x)))
    assert graph.outputs[0].op == Softmax(2)


def test_a_norm_whose_axes_move_stays(t: Any) -> None:
    kept = LayerNorm(2)(Transpose((1, 0, 2))(t.x(2, 3, 4)), t.w(4), None)
    graph, _ = layout(t.graph(kept))
    assert graph.outputs[0].op.name == "transpose"
    moved = LayerNorm(2)(Transpose((0, 2, 1))(t.x(2, 3, 4)), t.w(3), None)
    graph, _ = layout(t.graph(moved))
    assert graph.outputs[0].op.name == "layer_norm"


def test_products_and_several_outputs_keep_their_transposes(t: Any) -> None:
    x = Transpose((1, 0))(t.x(3, 4))
    assert after(t, MatMul()(x, t.w(3, 2)), *TopK(1, 0, True).node(x)) == {
        "transpose": 1,
        "matmul": 1,
        "top_k": 1,
    }


def test_a_graph_without_transposes_is_left_alone(t: Any) -> None:
    graph: Graph = t.graph(Relu()(t.x(3)))
    same, done = layout(graph)
    assert not done
    assert same.outputs[0].node is graph.outputs[0].node
