"""What the tests of passes share: graphs from values, and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Input, Value, Variable, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.passes.rewrite import Rewriter, Rule
from edgewise.types import DType, TensorType


def x(*shape: Any, key: str = "x", dtype: DType = DType.F32) -> Value:
    return input_value(key, TensorType(dtype, shape))


def w(*shape: int, key: str = "w") -> Value:
    return variable_value(key, TensorType(DType.F32, shape))


def graph_of(*outputs: Value) -> Graph:
    names = tuple(f"y{i}" for i in range(len(outputs)))
    bare = Graph((), outputs, names)
    inputs = [Value(node) for node in bare.nodes() if isinstance(node.op, Input)]
    return Graph(tuple(inputs), outputs, names)


def module_of(*outputs: Value) -> Module:
    graph = graph_of(*outputs)
    rng = np.random.default_rng(1)
    variables = {
        node.op.key: VariableInfo(
            node.op.key,
            node.types[0],
            Role.PARAMETER,
            rng.uniform(0.5, 1.5, node.types[0].dims).astype("f4"),
        )
        for node in graph.nodes()
        if isinstance(node.op, Variable)
    }
    return Module({"infer": graph}, variables)


def ops(graph: Graph) -> Counter[str]:
    """How often each op occurs, leaves left out."""
    leaves = ("input", "variable", "constant")
    return Counter(n.op.name for n in graph.nodes() if n.op.name not in leaves)


def arrays_of(module: Module) -> dict[str, Array]:
    found = {
        key: info.initial
        for key, info in module.variables.items()
        if info.initial is not None
    }
    if "prepare" in module.functions:
        found |= evaluate(module.functions["prepare"], {}, found)[1]
    return found


def outputs_of(module: Module, sizes: Mapping[str, int] | None = None) -> list[Array]:
    """Its outputs for seeded inputs."""
    rng = np.random.default_rng(0)
    graph = module.functions["infer"]
    feeds = {}
    for value in graph.inputs:
        type_ = value.type.bind(sizes or {})
        feeds[value.node.label] = (
            rng.standard_normal(type_.dims).astype("f4")
            if type_.dtype is DType.F32
            else rng.integers(0, 2, type_.dims).astype(type_.dtype.numpy)
        )
    return list(evaluate(graph, feeds, arrays_of(module))[0].values())


def same_numbers(
    before: Module, after: Module, sizes: Mapping[str, int] | None = None
) -> None:
    pairs = zip(outputs_of(before, sizes), outputs_of(after, sizes), strict=True)
    for old, new in pairs:
        assert old.shape == new.shape
        np.testing.assert_allclose(new, old, 1e-5, 1e-5)


def rewritten(
    rules: tuple[list[Rule], ...], *outputs: Value, sizes: Any = None
) -> Graph:
    """The graph after the rules, whose numbers are those of before."""
    module = module_of(*outputs)
    graph, _ = Rewriter(rules).apply(module.functions["infer"])
    same_numbers(module, module.with_function("infer", graph), sizes)
    return graph


class Tools:
    """The helpers above, as one fixture."""

    x = staticmethod(x)
    w = staticmethod(w)
    graph = staticmethod(graph_of)
    module = staticmethod(module_of)
    ops = staticmethod(ops)
    arrays = staticmethod(arrays_of)
    same_numbers = staticmethod(same_numbers)
    rewritten: Callable[..., Graph] = staticmethod(rewritten)


@pytest.fixture
def t() -> type[Tools]:
    return Tools
