"""Loops whose carried values change in size, or are sequences that begin empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewise.convert import convert
from edgewise.errors import UnsupportedOpError
from edgewise.runtime.session import Session

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL  # noqa: E741
TURN = (
    helper.make_tensor_value_info("i", I, []),
    helper.make_tensor_value_info("go", B, []),
)
LIST = helper.make_tensor_sequence_value_info("s", F, None)
X = np.arange(6, dtype="f4").reshape(2, 3)


def node(op: str, inputs: Sequence[str], outputs: str, **more: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs.split(), **more)


GO_ON = node("Identity", ["go"], "go_on")
EMPTY = node("SequenceEmpty", [], "none", dtype=F)


def value(name: str, shape: Sequence[Any] | None = None) -> Any:
    return helper.make_tensor_value_info(name, F, shape)


def loop(
    nodes: Sequence[onnx.NodeProto],
    carried: Sequence[str],
    inner: Sequence[onnx.ValueInfoProto],
    given: Sequence[str],
    outputs: str,
) -> onnx.NodeProto:
    body = helper.make_graph(
        [GO_ON, *nodes],
        "body",
        [*TURN, *inner],
        [onnx.ValueInfoProto(name=name) for name in ("go_on", *given)],
    )
    return node("Loop", ["turns", "", *carried], outputs, body=body)


def model(
    nodes: Sequence[onnx.NodeProto], inputs: Sequence[Any], outputs: Sequence[str]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "loops",
        [helper.make_tensor_value_info("turns", I, []), *inputs],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.array(0), "nought")],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def both(made: onnx.ModelProto, **feeds: Any) -> tuple[list[Any], list[Any]]:
    """What we give, and what onnxruntime gives."""
    peer = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(Session(convert(made)).run(feeds).values()), peer.run(None, feeds)


def swapping() -> onnx.ModelProto:
    """Two matrices change places every turn; a row of the first is kept."""
    inner = loop(
        [
            node("Identity", ["b"], "a2"),
            node("Identity", ["a"], "b2"),
            node("Neg", ["a"], "row"),
        ],
        ["x", "y"],
        [value("a"), value("b")],
        ["a2", "b2", "row"],
        "p q rows",
    )
    return model([inner], [value("x", "AB"), value("y", "CD")], ["p", "q", "rows"])


@pytest.mark.parametrize(("turns", "columns"), [(1, 3), (2, 3), (5, 3), (1, 4)])
def test_rows_have_sizes_of_their_turn(turns: int, columns: int) -> None:
    y = np.ones((2, columns), "f4")
    got, want = both(swapping(), turns=np.array(turns), x=X, y=y)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("columns", [3, 4])
def test_without_a_turn_there_are_no_rows(columns: int) -> None:
    y = np.ones((2, columns), "f4")
    made = Session(convert(swapping()))
    p, q, rows = made.run({"turns": 0, "x": X, "y": y}).values()
    np.testing.assert_array_equal(p, X)
    np.testing.assert_array_equal(q, y)
    assert rows.shape == (0, 0, 0)


def growing(tail: onnx.NodeProto, shape: Sequence[Any]) -> onnx.ModelProto:
    """A sequence that gets ``x`` every turn, and what is made of it."""
    insert = node("SequenceInsert", ["s", "x"], "s2")
    grow = loop([insert], ["none"], [LIST], ["s2"], "all")
    return model([EMPTY, grow, tail], [value("x", shape)], ["y"])


@pytest.mark.parametrize("shape", [[2, 3], ["N", 3]])
@pytest.mark.parametrize(
    "tail",
    [
        node("ConcatFromSequence", ["all"], "y", axis=0),
        node("ConcatFromSequence", ["all"], "y", axis=0, new_axis=1),
        node("SequenceAt", ["all", "nought"], "y"),
        node("SequenceLength", ["all"], "y"),
    ],
    ids=lambda tail: tail.op_type,
)
def test_a_sequence_that_begins_empty_has_the_type_of_what_it_gets(
    tail: onnx.NodeProto, shape: Sequence[Any]
) -> None:
    got, want = both(growing(tail, shape), turns=np.array(3), x=X)
    np.testing.assert_array_equal(got[0], want[0])


def test_a_sequence_of_tensors_of_several_ranks_stays_without_a_type() -> None:
    nodes = [
        node("ReduceSum", ["x"], "sum", keepdims=0),
        node("SequenceInsert", ["s", "x"], "one"),
        node("SequenceInsert", ["one", "sum"], "s2"),
    ]
    grow = loop(nodes, ["none"], [LIST], ["s2"], "all")
    length = node("SequenceLength", ["all"], "y")
    made = model([EMPTY, grow, length], [value("x", "NM")], ["y"])
    assert Session(convert(made)).run({"turns": 4, "x": X})["y"] == 8
    made.graph.node[-1].CopyFrom(node("SequenceAt", ["all", "nought"], "y"))
    with pytest.raises(UnsupportedOpError, match="declare the shape"):
        convert(made)


def test_a_first_tensor_put_at_the_start_tells_the_type() -> None:
    nodes = [
        EMPTY,
        node("SequenceInsert", ["none", "x", "nought"], "one"),
        node("SequenceInsert", ["one", "x"], "two"),
        node("ConcatFromSequence", ["two"], "y", axis=1),
    ]
    made = model(nodes, [value("x", "NM")], ["y"])
    y = Session(convert(made)).run({"turns": 0, "x": X})["y"]
    np.testing.assert_array_equal(y, np.concatenate([X, X], 1))


def test_what_a_long_loop_collects_is_all_there_and_ours() -> None:
    made = growing(node("ConcatFromSequence", ["all"], "y", axis=0), [2, 3])
    x = X.copy()
    y = Session(convert(made)).run({"turns": 300, "x": x})["y"]
    x[:] = -1
    np.testing.assert_array_equal(y, np.tile(X, (300, 1)))
