"""Whatever the graph, a session gives what the references give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise import ops
from edgewise.dims import symbol
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Value, constant, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array, Op, Sample
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.types import DType, TensorType

N = symbol("N")
ROWS = TensorType(DType.F32, (N, 24))
W = TensorType(DType.F32, (24,))


class Mirror(Op):
    """Elements backwards, without a kernel; its reference gives a view of its input."""

    name: ClassVar[str] = "mirror"

    def infer(self, x: TensorType) -> TensorType:
        return x

    def reference(self, x: Array) -> Array:
        return x[:, ::-1]

    @staticmethod
    def samples() -> Iterator[Sample]:
        return iter(())


def grown(draw: st.DrawFn, values: list[Value]) -> list[Value]:
    """The outputs of one more node."""
    rows = st.sampled_from([v for v in values if v.type == ROWS])
    x, z = draw(rows), draw(rows)
    y = draw(st.sampled_from(values))
    match draw(st.integers(0, 10)):
        case 0:
            return [ops.Add()(x, y)]
        case 1:
            return [ops.Mul()(y, x)]
        case 2:
            return [ops.Relu()(x)]
        case 3:
            return [ops.Neg()(x)]
        case 4:
            folded = ops.Reshape((4 * N, 6))(x)
            return [ops.Reshape((N, 24))(ops.Tanh()(folded))]
        case 5:
            turned = ops.Transpose((1, 0))(x)
            return [ops.Transpose((1, 0))(ops.Abs()(turned))]
        case 6:
            return [Mirror()(x)]
        case kind:
            return parted(kind, x, z)


def parted(kind: int, x: Value, z: Value) -> list[Value]:
    """Values of parts of both, or parts of one of both."""
    match kind:
        case 7:
            return [ops.Concat(1)(product(x, 10), product(z, 14))]
        case 8:
            return [ops.Concat(1)(columns(x, 3, 10), product(z, 5), columns(z, 0, 9))]
        case 9:
            joined = ops.Concat(0)(ops.Relu()(x), ops.Add()(x, z), z)
            return [ops.Slice((a, 0), (N, 24), (1, 1))(joined) for a in (0, N, 2 * N)]
        case _:
            thirds = [ops.Reshape((N, 2, 4))(columns(v, 8, 8)) for v in (x, z, x)]
            return [ops.Reshape((N, 24))(ops.Concat(2)(*thirds))]


def product(x: Value, columns: int) -> Value:
    """Numbers of ``x``, each with its share of another."""
    w = np.eye(24, columns, dtype=np.float32) + np.eye(24, columns, 1, dtype=np.float32)
    return ops.Linear(columns)(x, ops.PackPanels((0, 1))(constant(w)), None, None, None)


def columns(x: Value, first: int, count: int) -> Value:
    """``count`` columns of ``x``."""
    return ops.Slice((0, first), (N, count), (1, 1))(x)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    inputs = (input_value("a", ROWS), input_value("b", ROWS))
    c = constant(np.linspace(-1, 1, 24, dtype=np.float32))
    values = [*inputs, variable_value("w", W), c]
    for _ in range(draw(st.integers(1, 15))):
        values += grown(draw, values)
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    names = tuple(f"out{index}" for index in range(len(outputs)))
    return Graph(inputs, tuple(outputs), names)


@settings(deadline=None, max_examples=40)
@given(graphs(), st.integers(0, 5), st.sampled_from([1, 2]))
def test_a_session_agrees_with_the_references(
    graph: Graph, rows: int, threads: int
) -> None:
    rng = np.random.default_rng(0)
    feed = {k: rng.standard_normal((rows, 24)).astype("f4") for k in ("a", "b")}
    w = rng.standard_normal(24).astype("f4")
    wanted, _ = evaluate(graph.bind({"N": rows}), feed, {"w": w})
    info = VariableInfo("w", W, Role.PARAMETER, w)
    model = Model(Module({"infer": graph}, {"w": info}))
    with Session(model, SessionConfig(threads=threads)) as session:
        for _ in range(2):
            outputs = session.run(feed)
            for name, want in wanted.items():
                np.testing.assert_allclose(outputs[name], want, rtol=1e-5, atol=1e-6)
