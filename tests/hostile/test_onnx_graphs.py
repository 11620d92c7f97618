"""Random small graphs: good ones agree with onnxruntime, their mutants do no harm."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.errors import KERNEL_FAULT, EdgewiseError, InternalError, KernelError

Mutate = Callable[[random.Random, bytes, bytes], onnx.ModelProto]
ROWS, COLUMNS = 3, 4
CLOSE = 1e-4  # float32, after a few operators of a dozen terms each
LIMIT = 1 << 26  # bytes that a session may plan for
# Nodes that take [ROWS, COLUMNS] and give it; A and B are earlier values.
STEPS: tuple[tuple[tuple[Any, ...], ...], ...] = (
    (("Relu", "A"),),
    (("Tanh", "A"),),
    (("Neg", "A"),),
    (("Add", "A B"),),
    (("Mul", "A B"),),
    (("Max", "A B"),),
    (("Sub", "A row"),),
    (("Div", "A column"),),
    (("Softmax", "A", {"axis": 1}),),
    (("MatMul", "A square"),),
    (("Gather", "A flipped", {"axis": 1}),),
    (("Transpose", "A", {"perm": [1, 0]}), ("Reshape", "last shape")),
    (("Concat", "A B", {"axis": 0}), ("Slice", "last from to")),
    (("ReduceMean", "A axis", {"keepdims": 1}), ("Add", "last B")),
    (("Unsqueeze", "A axis"), ("Squeeze", "last axis")),
    (("Shape", "A"), ("Reshape", "B last")),
    (("Greater", "A B"), ("Where", "last A B")),
)
RNG = np.random.default_rng(3)
WEIGHTS = {
    "row": RNG.standard_normal(COLUMNS).astype("f4"),
    "column": np.array([[1], [2], [-3]], "f4"),
    "square": RNG.standard_normal((COLUMNS, COLUMNS)).astype("f4"),
    "flipped": np.array([3, 2, 1, 0]),
    "shape": np.array([ROWS, -1]),
    "from": np.array([1, 0]),
    "to": np.array([1 + ROWS, COLUMNS]),
    "axis": np.array([1]),
}
steps = st.tuples(st.sampled_from(STEPS), st.integers(0), st.integers(0))
graphs = st.lists(steps, min_size=1, max_size=8)


def built(chosen: list[tuple[Any, int, int]], open_size: bool) -> onnx.ModelProto:
    """The graph of these steps, over earlier values that are picked by number."""
    values, nodes = ["x"], []
    for number, (step, a, b) in enumerate(chosen):
        names = {"A": values[a % len(values)], "B": values[b % len(values)]}
        for part, (op, inputs, *attributes) in enumerate(step):
            read = [names.get(name, name) for name in inputs.split()]
            names["last"] = f"v{number}_{part}"
            made = dict(attributes[0]) if attributes else {}
            nodes.append(helper.make_node(op, read, [names["last"]], **made))
        values.append(names["last"])
    read = {name for node in nodes for name in node.input}
    used = {name: array for name, array in WEIGHTS.items() if name in read}
    shape: list[Any] = [ROWS, "C" if open_size else COLUMNS]
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in used.items()],
    )
    imports = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def outputs(model: ew.Model, feed: dict[str, Any]) -> list[Any]:
    config = ew.SessionConfig(threads=1, memory_limit=LIMIT, arena_limit=LIMIT)
    with ew.Session(model, config) as session:
        return list(session.run(feed).values())


X = RNG.standard_normal((ROWS, COLUMNS)).astype("f4")


@settings(deadline=None, max_examples=80)
@given(chosen=graphs, open_size=st.booleans())
def test_random_graphs_agree_with_onnxruntime(
    chosen: list[tuple[Any, int, int]], open_size: bool
) -> None:
    model = built(chosen, open_size)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (want,) = session.run(None, {"x": X})
    (got,) = outputs(ew.convert(model), {"x": X})
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, CLOSE, CLOSE)


@pytest.fixture(scope="module")
def mutate() -> Iterator[Mutate]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        from fuzz_mutate import fields

        yield fields


@settings(
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(chosen=graphs, other=graphs, open_size=st.booleans(), seed=st.integers(0))
def test_their_mutants_are_refused_or_run(
    mutate: Mutate, chosen: Any, other: Any, open_size: bool, seed: int
) -> None:
    good, donor = (
        built(steps, open_size).SerializeToString() for steps in (chosen, other)
    )
    mutant = mutate(random.Random(seed), good, donor)  # noqa: S311 - no secret
    try:
        model = ew.convert(mutant)
        if [info.name for info in model.inputs] == ["x"]:
            outputs(model, {"x": X})
    except InternalError:
        raise
    except EdgewiseError as error:
        fault = isinstance(error, KernelError) and error.status == KERNEL_FAULT
        assert not fault, error.__cause__  # noqa: PT017 - a run may also end well
