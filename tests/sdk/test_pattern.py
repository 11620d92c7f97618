"""Patterns over values: what fits, in which ways, and what is captured."""

from __future__ import annotations

import numpy as np

from edgewise.ir.graph import Value, constant, input_value
from edgewise.ir.op import OPS
from edgewise.ir.pattern import Match, Pattern, a
from edgewise.ops import Add, Clip, Linear, MatMul, Mul, Relu, Sub, TopK
from edgewise.types import DType, TensorType

SQUARE = TensorType(DType.F32, (4, 4))
X, W, B = (input_value(key, SQUARE) for key in "xwb")


def number(value: float) -> Value:
    return constant(np.asarray(value, "f4"))


def all_of(pattern: Pattern, value: Value) -> list[Match]:
    return list(pattern.matches(value))


def test_a_nested_pattern_captures_by_name_and_lists_its_nodes() -> None:
    product = MatMul()(X, W)
    total = Add()(product, B)
    pattern = a(Add, a(MatMul, "x", "w", name="product"), "bias")
    (match,) = all_of(pattern, total)
    assert match.captures == {"product": product, "x": X, "w": W, "bias": B}
    assert match.nodes == (total.node, product.node)
    assert pattern.names() == {"product", "x", "w", "bias"}


def test_commutative_ops_match_in_either_order() -> None:
    pattern = a(Add, a(MatMul, "x", "w"), "bias")
    (match,) = all_of(pattern, Add()(B, MatMul()(X, W)))
    assert match.captures["bias"] == B
    assert not all_of(a(Sub, a(MatMul, "x", "w"), "b"), Sub()(B, MatMul()(X, W)))


def test_both_orders_of_equal_patterns_are_offered() -> None:
    matches = all_of(a(Add, "p", "q"), Add()(X, B))
    assert [m.captures["p"] for m in matches] == [X, B]
    assert len(all_of(a(Add, "p", "q"), Add()(X, X))) == 1


def test_choices_inside_are_taken_back_when_the_rest_does_not_fit() -> None:
    value = Add()(Mul()(X, W), Mul()(W, B))
    shared = a(Add, a(Mul, "left", "common"), a(Mul, "common", "right"))
    captures = [m.captures for m in all_of(shared, value)]
    assert {"left": X, "common": W, "right": B} in captures


def test_equal_texts_want_equal_values() -> None:
    assert all_of(a(Mul, "x", "x"), Mul()(X, X))
    assert not all_of(a(Mul, "x", "x"), Mul()(X, W))


def test_a_number_matches_a_constant_of_nothing_else() -> None:
    half = a(Mul, "x", 0.5)
    assert all_of(half, Mul()(X, number(0.5)))
    assert all_of(half, Mul()(number(0.5), X))
    assert all_of(a(Mul, "x", 0.7071067811865476), Mul()(X, number(0.70710677)))
    assert not all_of(half, Mul()(X, number(0.51)))
    assert not all_of(half, Mul()(X, number(float("nan"))))
    assert not all_of(half, Mul()(X, W))


def test_one_of_several_ops() -> None:
    pattern = a((Relu, Clip), "x", name="act")
    assert all_of(pattern, Relu()(X))
    assert all_of(pattern, Clip()(X))
    assert not all_of(pattern, Add()(X, X))


def test_absent_inputs_and_the_rest_of_them() -> None:
    w = input_value("p", TensorType(DType.F32, (1, 4, 16)))
    shift = constant(np.ones(4, "f4"))
    value = Linear(4)(X, w, None, shift)
    assert all_of(a(Linear, "x", "w", None, "shift"), value)
    assert all_of(a(Linear, "x", "w", ...), value)
    assert not all_of(a(Linear, "x", "w"), value)
    assert not all_of(a(Linear, "x", "w", "scale", None), value)


def test_only_the_first_output_of_a_node_is_matched() -> None:
    values, indices = TopK(2, 0).node(X)
    assert all_of(a(TopK, "x"), values)
    assert not all_of(a(TopK, "x"), indices)


def test_every_op_said_to_be_commutative_is() -> None:
    found = 0
    for name in OPS:
        cls = OPS[name]
        if not cls.commutative:
            continue
        found += 1
        for sample in cls.samples():
            x, y = sample.inputs
            np.testing.assert_array_equal(
                sample.op.reference(x, y), sample.op.reference(y, x)
            )
    assert found >= 10
