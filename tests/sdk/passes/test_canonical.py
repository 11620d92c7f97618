"""Canonical form: what computes nothing goes, chains become one op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgewise.dims import symbol
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Add,
    Cast,
    Clip,
    Concat,
    Div,
    Expand,
    Mul,
    Neg,
    Pad,
    Pow,
    Relu,
    Reshape,
    Slice,
    Sub,
    Tile,
    Transpose,
)
from edgewise.passes import canonical

RULES = canonical.RULES


def number(value: float) -> Value:
    return constant(np.array(value, "f4"))


@pytest.mark.parametrize(
    ("op", "neutral"), [(Mul, 1), (Div, 1), (Add, 0), (Sub, 0), (Pow, 1)]
)
def test_a_neutral_operand_goes(op: Any, neutral: float, t: Any) -> None:
    assert not t.ops(t.rewritten(RULES, op()(t.x(3), number(neutral))))


@pytest.mark.parametrize("op", [Mul, Add])
def test_a_neutral_operand_may_stand_first(op: Any, t: Any) -> None:
    neutral = number(1 if op is Mul else 0)
    assert not t.ops(t.rewritten(RULES, op()(neutral, t.x(3))))


def test_one_minus_or_over_something_stays(t: Any) -> None:
    x = t.x(3)
    assert t.ops(t.rewritten(RULES, Sub()(number(0), x), Div()(number(1), x))) == {
        "sub": 1,
        "div": 1,
    }


def test_a_neutral_operand_that_broadcasts_stays(t: Any) -> None:
    ones = constant(np.ones((1, 1), "f4"))
    assert t.ops(t.rewritten(RULES, Mul()(t.x(3), ones))) == {"mul": 1}


def test_another_number_stays(t: Any) -> None:
    assert t.ops(t.rewritten(RULES, Mul()(t.x(3), number(1.5)))) == {"mul": 1}


@pytest.mark.parametrize(
    "op",
    [
        Cast("f32"),
        Reshape((2, 3)),
        Expand((1, 3)),
        Tile((1, 1)),
        Transpose((0, 1)),
        Slice((0, 0), (2, 3), (1, 1)),
        Pad((0, 0, 0, 0)),
        Concat(0),
    ],
    ids=lambda op: op.name,
)
def test_an_op_that_changes_nothing_goes(op: Any, t: Any) -> None:
    assert not t.ops(t.rewritten(RULES, op(t.x(2, 3))))


@pytest.mark.parametrize(
    "op",
    [
        Cast("f64"),
        Reshape((3, 2)),
        Expand((2, 2, 3)),
        Tile((1, 2)),
        Transpose((1, 0)),
        Slice((1, 2), (2, 3), (-1, -1)),
        Pad((1, 0, -1, 0)),
    ],
    ids=lambda op: op.name,
)
def test_an_op_that_changes_something_stays(op: Any, t: Any) -> None:
    assert t.ops(t.rewritten(RULES, op(t.x(2, 3)))) == {op.name: 1}


def test_two_transposes_are_one_or_none(t: Any) -> None:
    x = t.x(2, 3, 4)
    one = Transpose((1, 2, 0))(Transpose((2, 0, 1))(x))
    assert not t.ops(t.rewritten(RULES, one))
    two = Transpose((2, 1, 0))(Transpose((2, 0, 1))(x))
    assert t.ops(t.rewritten(RULES, two)) == {"transpose": 1}


def test_reshapes_merge_over_open_sizes(t: Any) -> None:
    n = symbol("N")
    value = Reshape((n, 2, 6))(Reshape((n, 3, 4))(t.x(n, 12)))
    assert t.ops(t.rewritten(RULES, value, sizes={"N": 3})) == {"reshape": 1}


def test_two_negations_are_none(t: Any) -> None:
    assert not t.ops(t.rewritten(RULES, Neg()(Neg()(t.x(3)))))


@pytest.mark.parametrize(
    ("inner", "outer"),
    [((-1, 1), (0, 2)), ((-1, 1), (3, 4)), ((2, 3), (-1, 1)), ((0, 1), (0, 1))],
)
def test_two_ranges_are_one(inner: Any, outer: Any, t: Any) -> None:
    x = Mul()(t.x(50), number(3))
    value = Clip(*map(float, outer))(Clip(*map(float, inner))(x))
    assert t.ops(t.rewritten(RULES, value))["clip"] == 1


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.5, 1.0), (-2.0, -1.0)])
def test_a_range_and_a_relu_are_one_range(bounds: Any, t: Any) -> None:
    x = Mul()(t.x(50), number(3))
    assert t.ops(t.rewritten(RULES, Relu()(Clip(*bounds)(x))))["relu"] == 0
    ops = t.ops(t.rewritten(RULES, Clip(*bounds)(Relu()(x))))
    assert ops["relu"] == (bounds[1] < 0)


def test_a_slice_of_a_slice_is_one(t: Any) -> None:
    inner = Slice((9, 1), (4, 5), (-2, 1))(t.x(10, 8))
    value = Slice((1, 0), (2, 3), (2, 2))(inner)
    assert t.ops(t.rewritten(RULES, value)) == {"slice": 1}


def part(x: Value, first: int, count: int) -> Value:
    return Slice((0, first), (3, count), (1, 1))(x)


def test_slices_side_by_side_again_are_what_they_were_cut_from(t: Any) -> None:
    x = t.x(3, 8)
    y = Neg()(x)
    value = Concat(1)(part(x, 0, 5), part(x, 5, 3), y)
    assert t.ops(t.rewritten(RULES, value)) == {"concat": 1, "neg": 1}
    whole = Concat(1)(part(x, 0, 5), part(x, 5, 3))
    assert not t.ops(t.rewritten(RULES, whole))
    inner = Concat(1)(part(x, 1, 4), part(x, 5, 2))
    assert t.ops(t.rewritten(RULES, inner)) == {"slice": 1}


@pytest.mark.parametrize("second", [(0, 5), (6, 2), (4, 3)])
def test_slices_that_do_not_meet_stay(second: tuple[int, int], t: Any) -> None:
    x = t.x(3, 8)
    value = Concat(1)(part(x, 0, 5), part(x, *second))
    assert t.ops(t.rewritten(RULES, value)) == {"concat": 1, "slice": 2}
    turned = Concat(0)(part(x, 0, 4), part(x, 4, 4))
    assert t.ops(t.rewritten(RULES, turned)) == {"concat": 1, "slice": 2}
