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
    x = draw(st.sampled_from([v for v in values if v.type == ROWS]))
    y = draw(st.sampled_from(values))
    match draw(st.integers(0, 6)):
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
        case _:
            return [Mirror()(x)]


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
