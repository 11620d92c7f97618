"""Branches and loops of ONNX give what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewise.convert import convert, convert_module
from edgewise.errors import ModelFormatError, UnsupportedOpError
from edgewise.ops.control import If
from edgewise.runtime.session import Session

Check = Callable[..., Any]
X = np.array([[1, 2], [3, -1]], "f4")
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL  # noqa: E741


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def value(name: str, code: int = F, shape: Sequence[Any] | None = None) -> Any:
    return helper.make_tensor_value_info(name, code, shape)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[str],
    **weights: Any,
) -> onnx.GraphProto:
    return helper.make_graph(
        list(nodes),
        "inner",
        list(inputs),
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )


def scalar(number: Any, dtype: str = "f4") -> Any:
    return np.array(number, dtype)


TURN = (value("i", I, []), value("go", B, []))
GO_ON = node("Identity", "go", "go_on")


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_reads_inputs_weights_and_values_around_it(
    condition: bool, build: Check, agree: Check
) -> None:
    then = graph([node("Add", "square w", "a")], [], ["a"])
    other = graph([node("Sub", "square x", "b")], [], ["b"])
    model = build(
        [
            node("Mul", "x x", "square"),
            node("If", "c", "y", then_branch=then, else_branch=other),
        ],
        {"x": X, "c": scalar(condition, "?")},
        ["y"],
        weights={"w": np.array([10, 20], "f4")},
    )
    agree(model, {"x": X, "c": scalar(condition, "?")})


def test_branches_may_give_other_sizes(build: Check, agree: Check) -> None:
    then = graph([node("Concat", "x x", "a", axis=0)], [], ["a"])
    other = graph([node("Identity", "x", "b")], [], ["b"])
    nodes = [
        node("If", "c", "z", then_branch=then, else_branch=other),
        node("ReduceSum", "z", "y", keepdims=0),
        node("Shape", "z", "s"),
    ]
    for condition in (True, False):
        feeds = {"x": X, "c": scalar(condition, "?")}
        agree(build(nodes, feeds, ["z", "y", "s"]), feeds)


def test_only_the_branch_taken_is_imported_where_that_is_known(
    build: Check, agree: Check
) -> None:
    then = graph([node("Neg", "x", "a")], [], ["a"])
    other = graph([node("Unheard", "x", "b")], [], ["b"])
    model = build(
        [node("If", "c", "y", then_branch=then, else_branch=other)],
        {"x": X},
        ["y"],
        weights={"c": scalar(True, "?")},
    )
    model.graph.node[0].attribute[1].g.node[0].domain = ""
    module = convert_module(model).module
    assert list(module.functions) == ["infer"]
    assert not any(isinstance(n.op, If) for n in module.functions["infer"].nodes())


def loop_of(turns: int | None, body: onnx.GraphProto, outputs: str) -> onnx.NodeProto:
    trip = "" if turns is None else "n"
    return helper.make_node("Loop", [trip, "c", "x"], outputs.split(), body=body)


@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_loop_carries_values_and_stacks_rows(
    turns: int, build: Check, agree: Check
) -> None:
    body = graph(
        [GO_ON, node("Mul", "s w", "next"), node("ReduceSum", "s", "r", keepdims=0)],
        [*TURN, value("s")],
        ["go_on", "next", "r"],
        w=scalar(2),
    )
    feeds = {"x": X, "n": scalar(turns, "i8"), "c": scalar(True, "?")}
    model = build([loop_of(turns, body, "y rows")], feeds, ["y", "rows"])
    agree(model, feeds)


def test_a_loop_may_grow_what_it_carries(build: Check, agree: Check) -> None:
    body = graph(
        [GO_ON, node("Concat", "s x", "next", axis=0)],
        [*TURN, value("s")],
        ["go_on", "next"],
    )
    feeds = {"x": X, "n": scalar(3, "i8"), "c": scalar(True, "?")}
    model = build([loop_of(3, body, "y")], feeds, ["y"], shapes={"x": ["N", 2]})
    agree(model, feeds)


def test_a_loop_ends_by_its_condition(build: Check, agree: Check) -> None:
    body = graph(
        [
            node("Add", "s x", "next"),
            node("ReduceMax", "next", "top", keepdims=0),
            node("Less", "top limit", "go_on"),
        ],
        [*TURN, value("s")],
        ["go_on", "next"],
        limit=scalar(10),
    )
    feeds = {"x": X, "c": scalar(True, "?")}
    agree(build([loop_of(None, body, "y")], feeds, ["y"]), feeds)


def test_nested_loops_and_branches_read_through_all_scopes(
    build: Check, agree: Check
) -> None:
    then = graph([node("Add", "t outer", "a")], [], ["a"])
    other = graph([node("Sub", "t x", "b")], [], ["b"])
    inner = graph(
        [
            node("Identity", "go", "go_on2"),
            node("Mul", "s w", "t"),
            node("ReduceSum", "t", "total", keepdims=0),
            node("Greater", "total nought", "positive"),
            node("If", "positive", "next2", then_branch=then, else_branch=other),
        ],
        [value("j", I, []), value("go", B, []), value("s")],
        ["go_on2", "next2"],
        w=scalar(1.5),
    )
    body = graph(
        [GO_ON, helper.make_node("Loop", ["n", "c", "s1"], ["next"], body=inner)],
        [value("i", I, []), value("go", B, []), value("s1")],
        ["go_on", "next"],
    )
    feeds = {"x": X, "n": scalar(2, "i8"), "c": scalar(True, "?")}
    model = build(
        [node("Neg", "x", "outer"), loop_of(2, body, "y")],
        feeds,
        ["y"],
        weights={"nought": scalar(0)},
    )
    agree(model, feeds)


def test_a_name_within_hides_the_one_around_it(build: Check) -> None:
    body = graph(
        [GO_ON, node("Add", "x k", "next")],
        [*TURN, value("x", F, [])],
        ["go_on", "next"],
    )
    feeds = {
        "x": scalar(1), "k": scalar(2), "n": scalar(4, "i8"), "c": scalar(True, "?")
    }  # fmt: skip
    model = build([loop_of(4, body, "y")], feeds, ["y"])
    with Session(convert(model)) as session:
        assert session.run(feeds)["y"] == 9


def test_weights_of_two_bodies_may_share_a_name(build: Check) -> None:
    then = graph([node("Mul", "x w", "a")], [], ["a"], w=scalar(3))
    other = graph([node("Mul", "x w", "b")], [], ["b"], w=scalar(5))
    model = build(
        [node("If", "c", "y", then_branch=then, else_branch=other)],
        {"x": X, "c": scalar(True, "?")},
        ["y"],
    )
    made = convert(model)
    assert {name: float(w) for name, w in made.parameters().items()} == {
        "w": 3, "w_1": 5
    }  # fmt: skip
    with Session(made) as session:
        got = session.run({"x": X, "c": scalar(False, "?")})["y"]
    np.testing.assert_array_equal(got, X * 5)


def test_a_convolution_in_a_loop_has_packed_weights(
    build: Check, agree: Check, rng: np.random.Generator
) -> None:
    image = rng.standard_normal((1, 4, 5, 5)).astype("f4")
    body = graph(
        [GO_ON, node("Conv", "s w", "next", pads=[1, 1, 1, 1])],
        [*TURN, value("s")],
        ["go_on", "next"],
    )
    kernel = (rng.standard_normal((4, 4, 3, 3)) / 6).astype("f4")
    feeds = {"x": image, "n": scalar(2, "i8"), "c": scalar(True, "?")}
    model = build([loop_of(2, body, "y")], feeds, ["y"], weights={"w": kernel})
    module = agree(model, feeds)
    assert module.variables["w"].packing is not None


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_directions": [1]},
        {"scan_output_directions": [1]},
        {"scan_input_axes": [1], "scan_output_axes": [-1]},
    ],
    ids=["plain", "from the end", "to the front", "other axes"],
)
def test_a_scan(attributes: Any, build: Check, agree: Check) -> None:
    body = graph(
        [
            node("Add", "total row", "sum"),
            node("Mul", "sum k", "out"),
        ],
        [value("total"), value("row")],
        ["sum", "out"],
    )
    x = np.arange(9, dtype="f4").reshape(3, 3)
    model = build(
        [node("Scan", "a x", "y rows", num_scan_inputs=1, body=body, **attributes)],
        {"a": x[0], "x": x},
        ["y", "rows"],
        weights={"k": scalar(2)},
    )
    agree(model, {"a": x[0], "x": x})


@pytest.mark.parametrize(
    ("outputs", "text"),
    [(["go_on"], "gives 1 values"), (["go_on", "i"], "one type|element type")],
)
def test_a_body_that_does_not_fit_is_refused(
    outputs: list[str], text: str, build: Check
) -> None:
    body = graph([GO_ON], [*TURN, value("s")], outputs)
    feeds = {"x": X, "n": scalar(2, "i8"), "c": scalar(True, "?")}
    with pytest.raises((ModelFormatError, UnsupportedOpError), match=text):
        convert(build([loop_of(2, body, "y")], feeds, ["y"]))


def test_what_is_read_in_vain_within_is_named(build: Check) -> None:
    then = graph([node("Add", "x lost", "a")], [], ["a"])
    other = graph([node("Neg", "x", "b")], [], ["b"])
    nodes = [node("If", "c", "y", then_branch=then, else_branch=other)]
    with pytest.raises(ModelFormatError, match="'lost', which nothing makes"):
        convert(build(nodes, {"x": X, "c": scalar(True, "?")}, ["y"]))
