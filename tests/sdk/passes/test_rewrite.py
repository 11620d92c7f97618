"""The driver of rewrite rules: what it refuses, and when it stops."""

from __future__ import annotations

from typing import Any

import pytest

from edgewise.errors import InternalError
from edgewise.ir.graph import Value
from edgewise.ir.pattern import a
from edgewise.ops import Abs, Cast, Exp, Neg, Relu, Reshape, TopK
from edgewise.passes.rewrite import Rewriter, rule
from edgewise.types import DType


@rule(a(Relu, a(Abs, "x")))
def relu_of_abs(x: Value) -> Value:
    return Abs()(x)


@rule(a(Relu, "x"))
def never(x: Value) -> Value | None:
    del x
    return None


def test_captures_must_be_parameters() -> None:
    with pytest.raises(InternalError, match=r"rule bad takes \['y'\].*\['x'\]"):

        @rule(a(Relu, "x"))
        def bad(y: Value) -> Value:
            return y


def test_a_rule_fires_and_is_counted(t: Any) -> None:
    graph = t.graph(Relu()(Abs()(t.x(3))))
    after, fired = Rewriter((relu_of_abs,)).apply(graph)
    assert t.ops(after) == {"abs": 1}
    assert fired == {"relu_of_abs": 1}


def test_a_rule_may_decline(t: Any) -> None:
    graph = t.graph(Relu()(t.x(3)))
    after, fired = Rewriter((never,)).apply(graph)
    assert t.ops(after) == {"relu": 1}
    assert not fired


def test_a_graph_without_a_match_keeps_its_nodes(t: Any) -> None:
    graph = t.graph(Exp()(t.x(3)))
    after, _ = Rewriter((relu_of_abs,)).apply(graph)
    assert after.outputs[0].node is graph.outputs[0].node


def test_a_value_with_a_second_reader_is_not_fused_away(t: Any) -> None:
    inner = Abs()(t.x(3))
    graph = t.graph(Relu()(inner), Exp()(inner))
    after, fired = Rewriter((relu_of_abs,)).apply(graph)
    assert not fired
    assert t.ops(after) == {"abs": 1, "relu": 1, "exp": 1}


def test_a_value_that_is_an_output_is_not_fused_away(t: Any) -> None:
    inner = Abs()(t.x(3))
    _, fired = Rewriter((relu_of_abs,)).apply(t.graph(Relu()(inner), inner))
    assert not fired


def test_a_chain_is_rewritten_to_its_end(t: Any) -> None:
    value = Abs()(t.x(3))
    for _ in range(100):
        value = Relu()(value)
    after, fired = Rewriter((relu_of_abs,)).apply(t.graph(value))
    assert t.ops(after) == {"abs": 1}
    assert fired == {"relu_of_abs": 100}


def test_a_rule_that_changes_the_element_type_is_a_bug(t: Any) -> None:
    @rule(a(Relu, "x"))
    def wrong(x: Value) -> Value:
        return Cast(DType.F64.value)(x)

    with pytest.raises(InternalError, match=r"wrong makes f64\[3\] of f32\[3\]"):
        Rewriter((wrong,)).apply(t.graph(Relu()(t.x(3))))


def test_a_result_of_another_shape_is_declined(t: Any) -> None:
    @rule(a(Relu, "x"))
    def turned(x: Value) -> Value:
        return Reshape((2, 3))(x)

    _, fired = Rewriter((turned,)).apply(t.graph(Relu()(t.x(3, 2))))
    assert not fired


def test_rules_that_never_settle_are_named(t: Any) -> None:
    @rule(a(Relu, "x"))
    def there(x: Value) -> Value:
        return Neg()(x)

    @rule(a(Neg, "x"))
    def back(x: Value) -> Value:
        return Relu()(x)

    with pytest.raises(InternalError, match=r"back.*there|there.*back"):
        Rewriter((there, back)).apply(t.graph(Relu()(t.x(3))))


def test_new_nodes_take_the_label_of_the_old(t: Any) -> None:
    value = Relu()(Abs()(t.x(3), label="inner"), label="outer")
    after, _ = Rewriter((relu_of_abs,)).apply(t.graph(value))
    assert after.outputs[0].node.label == "outer"


def test_nodes_of_several_outputs_pass_through(t: Any) -> None:
    values, places = TopK(2, 0, True).node(Relu()(Abs()(t.x(3))))
    after, fired = Rewriter((relu_of_abs,)).apply(t.graph(values, places))
    assert fired == {"relu_of_abs": 1}
    assert t.ops(after) == {"abs": 1, "top_k": 1}
