"""Constants are computed at home; equal nodes are computed once."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.dims import symbol
from edgewise.ir.graph import constant
from edgewise.ops import Add, Arange, DimValue, Exp, Fill, Mul, PackPanels, Relu, TopK
from edgewise.passes.fold import fold
from edgewise.passes.share import share

LIMIT = 1 << 10


def test_what_constants_decide_is_a_constant(t: Any) -> None:
    total = Add()(constant(np.array([1, 2], "f4")), constant(np.array([3, 4], "f4")))
    graph, done = fold(t.graph(Mul()(t.x(2), total)), LIMIT)
    assert t.ops(graph) == {"mul": 1}
    assert done == {"add": 1}


def test_what_has_no_inputs_is_folded(t: Any) -> None:
    graph, _ = fold(t.graph(Arange(2, 5, 3)(), DimValue((3, 4), False)()), LIMIT)
    assert not t.ops(graph)


def test_variables_and_inputs_are_no_constants(t: Any) -> None:
    one = constant(np.ones(3, "f4"))
    graph, done = fold(t.graph(Add()(t.w(3), one), Add()(t.x(3), one)), LIMIT)
    assert not done
    assert t.ops(graph) == {"add": 2}


def test_what_is_larger_than_the_limit_stays(t: Any) -> None:
    graph, done = fold(
        t.graph(Fill((1 << 20, 1 << 20))(constant(np.float32(0)))), LIMIT
    )
    assert not done
    assert t.ops(graph) == {"fill": 1}


def test_what_does_not_grow_is_folded_whatever_its_size(t: Any) -> None:
    large = constant(np.zeros(1 << 12, "f4"))
    _, done = fold(t.graph(Exp()(large)), LIMIT)
    assert done == {"exp": 1}


def test_open_sizes_are_not_folded(t: Any) -> None:
    _, done = fold(t.graph(DimValue((symbol("N"),), False)()), LIMIT)
    assert not done


def test_packing_is_left_to_another_pass(t: Any) -> None:
    panels = PackPanels((0, 1))(constant(np.ones((2, 3), "f4")))
    _, done = fold(t.graph(panels), LIMIT)
    assert not done


def test_all_outputs_of_a_node_are_folded(t: Any) -> None:
    outputs = TopK(1, 0, True).node(constant(np.array([1, 5, 3], "f4")))
    graph, _ = fold(t.graph(*outputs), LIMIT)
    assert not t.ops(graph)


def test_equal_nodes_become_one(t: Any) -> None:
    x = t.x(3)
    graph, done = share(t.graph(Add()(Relu()(x), Exp()(Relu()(x)))))
    assert t.ops(graph) == {"add": 1, "relu": 1, "exp": 1}
    assert done == {"relu": 1}


def test_equal_constants_make_equal_nodes(t: Any) -> None:
    x = t.x(3)
    halves = [Mul()(x, constant(np.array(0.5, "f4"))) for _ in range(3)]
    graph, _ = share(t.graph(*halves))
    assert t.ops(graph) == {"mul": 1}


def test_different_nodes_stay_apart(t: Any) -> None:
    x, y = t.x(3), t.x(3, key="y")
    half, third = (constant(np.array(n, "f4")) for n in (0.5, 0.25))
    values = Relu()(x), Relu()(y), Mul()(x, half), Mul()(x, third)
    graph, done = share(t.graph(*values))
    assert not done
    assert t.ops(graph) == {"relu": 2, "mul": 2}


def test_the_two_outputs_of_one_node_are_not_mixed(t: Any) -> None:
    x = t.x(4)
    first, second = TopK(2, 0, True).node(x), TopK(2, 0, True).node(x)
    module = t.module(first[0], second[1])
    graph, _ = share(module.functions["infer"])
    assert t.ops(graph) == {"top_k": 1}
    t.same_numbers(module, module.with_function("infer", graph))
