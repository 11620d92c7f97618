"""Activations and norms that exporters write out are found again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Abs,
    Add,
    Clip,
    Div,
    Erf,
    Exp,
    HardSigmoid,
    Log,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Pow,
    Reciprocal,
    ReduceMean,
    Relu,
    Sigmoid,
    Softplus,
    Sqrt,
    Sub,
    Tanh,
)
from edgewise.passes import recognise, recognise_norm

RULES = (*recognise.RULES, *recognise_norm.RULES)
Form = Callable[[Value], Value]


def n(value: float) -> Value:
    return constant(np.array(value, "f4"))


def erf(x: Value) -> Value:
    return Add()(Erf()(Div()(x, n(math.sqrt(2)))), n(1))


def tanh(x: Value) -> Value:
    cube = Mul()(Pow()(x, n(3)), n(0.044715))
    return Add()(n(1), Tanh()(Mul()(n(math.sqrt(2 / math.pi)), Add()(x, cube))))


def six(x: Value) -> Value:
    return Clip(0.0, 6.0)(Add()(x, n(3)))


FORMS: list[tuple[str, Form]] = [
    ("gelu", lambda x: Mul()(Mul()(x, erf(x)), n(0.5))),
    ("gelu", lambda x: Mul()(Mul()(n(0.5), x), erf(x))),
    ("gelu", lambda x: Mul()(x, Mul()(erf(x), n(0.5)))),
    ("gelu", lambda x: Div()(Mul()(x, erf(x)), n(2))),
    ("gelu", lambda x: Mul()(Mul()(x, tanh(x)), n(0.5))),
    ("gelu", lambda x: Mul()(tanh(x), Mul()(x, n(0.5)))),
    ("silu", lambda x: Mul()(x, Sigmoid()(x))),
    ("silu", lambda x: Mul()(Sigmoid()(x), x)),
    ("silu", lambda x: Div()(x, Add()(n(1), Exp()(Neg()(x))))),
    ("hard_sigmoid", lambda x: Div()(six(x), n(6))),
    ("hard_sigmoid", lambda x: Mul()(six(x), n(1 / 6))),
    ("hard_swish", lambda x: Mul()(x, Div()(six(x), n(6)))),
    ("hard_swish", lambda x: Div()(Mul()(x, six(x)), n(6))),
    ("hard_swish", lambda x: Mul()(x, HardSigmoid(1 / 6, 0.5)(x))),
    ("mish", lambda x: Mul()(x, Tanh()(Softplus()(x)))),
    ("mish", lambda x: Mul()(x, Tanh()(Log()(Add()(Exp()(x), n(1)))))),
    ("softplus", lambda x: Log()(Add()(n(1), Exp()(x)))),
    ("clip", lambda x: Minimum()(Maximum()(x, n(-0.5)), n(0.5))),
    ("clip", lambda x: Maximum()(n(-0.5), Minimum()(n(0.5), x))),
    ("clip", lambda x: Minimum()(Maximum()(x, n(0.5)), n(-0.5))),
    ("clip", lambda x: Maximum()(Minimum()(x, n(-0.5)), n(0.5))),
    ("clip", lambda x: Minimum()(Relu()(x), n(0.75))),
    ("relu", lambda x: Maximum()(x, n(0))),
]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_an_activation_is_found(name: str, form: Form, t: Any) -> None:
    assert t.ops(t.rewritten(RULES, form(t.x(40)))) == {name: 1}


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_an_activation_of_a_computed_value_is_found(
    name: str, form: Form, t: Any
) -> None:
    ops = t.ops(t.rewritten(RULES, form(Tanh()(Mul()(t.x(40), n(2))))))
    assert ops == {name: 1, "tanh": 1, "mul": 1}


OTHERS: list[Form] = [
    lambda x: Mul()(Mul()(x, Add()(Erf()(Div()(x, n(1.5))), n(1))), n(0.5)),
    lambda x: Mul()(Mul()(x, erf(x)), n(0.4)),
    lambda x: Mul()(Abs()(x), Sigmoid()(x)),
    lambda x: Mul()(x, HardSigmoid(0.2, 0.5)(x)),
    lambda x: Div()(Clip(0.0, 5.0)(Add()(x, n(3))), n(6)),
    lambda x: Minimum()(Relu()(x), n(-1)),
    lambda x: Maximum()(x, n(0.5)),
    lambda x: Log()(Add()(Exp()(x), n(2))),
]


@pytest.mark.parametrize("form", OTHERS)
def test_what_only_looks_alike_stays(form: Form, t: Any) -> None:
    before = t.ops(t.graph(form(t.x(40))))
    assert t.ops(t.rewritten(RULES, form(t.x(40)))) == before


def test_an_inner_value_that_others_read_stays(t: Any) -> None:
    x = t.x(5)
    gate = Sigmoid()(x)
    assert t.ops(t.rewritten(RULES, Mul()(x, gate), gate)) == {"mul": 1, "sigmoid": 1}


def variance(off: Value, axes: tuple[int, ...], power: bool) -> Value:
    square = Pow()(off, n(2)) if power else Mul()(off, off)
    return Add()(ReduceMean(axes, True)(square), n(1e-3))


def layer(x: Value, axes: tuple[int, ...] = (1,), power: bool = True) -> Value:
    off = Sub()(x, ReduceMean(axes, True)(x))
    return Div()(off, Sqrt()(variance(off, axes, power)))


@pytest.mark.parametrize("power", [True, False])
@pytest.mark.parametrize("axes", [(1,), (0, 1)])
def test_a_layer_norm_is_found(axes: Any, power: bool, t: Any) -> None:
    assert t.ops(t.rewritten(RULES, layer(t.x(4, 6), axes, power))) == {"layer_norm": 1}


def test_its_scale_and_shift_are_taken_in(t: Any) -> None:
    value = Add()(Mul()(layer(t.x(4, 6)), t.w(6)), t.w(6, key="b"))
    assert t.ops(t.rewritten(RULES, value)) == {"layer_norm": 1}
    value = Add()(t.w(1, 6, key="b"), layer(t.x(4, 6)))
    assert t.ops(t.rewritten(RULES, value)) == {"layer_norm": 1, "reshape": 1}


def test_a_scale_of_another_shape_stays_outside(t: Any) -> None:
    value = Mul()(layer(t.x(4, 6)), t.w(4, 1))
    assert t.ops(t.rewritten(RULES, value)) == {"layer_norm": 1, "mul": 1}


def test_a_norm_over_leading_axes_is_none(t: Any) -> None:
    before = t.ops(t.graph(layer(t.x(4, 6), (0,))))
    assert t.ops(t.rewritten(RULES, layer(t.x(4, 6), (0,)))) == before


ROOTS: list[Callable[[Value, Value], Value]] = [
    lambda x, v: Div()(x, Sqrt()(v)),
    lambda x, v: Mul()(x, Reciprocal()(Sqrt()(v))),
    lambda x, v: Mul()(x, Div()(n(1), Sqrt()(v))),
    lambda x, v: Mul()(Pow()(v, n(-0.5)), x),
]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("power", [True, False])
def test_an_rms_norm_is_found(root: Any, power: bool, t: Any) -> None:
    x = t.x(4, 6)
    value = Mul()(t.w(6), root(x, variance(x, (1,), power)))
    assert t.ops(t.rewritten(RULES, value)) == {"rms_norm": 1}


@pytest.mark.parametrize("root", ROOTS)
def test_a_layer_norm_is_found_whatever_its_root(root: Any, t: Any) -> None:
    x = t.x(4, 6)
    off = Sub()(x, ReduceMean((1,), True)(x))
    value = root(off, variance(off, (1,), power=True))
    assert t.ops(t.rewritten(RULES, value)) == {"layer_norm": 1}
