"""Nodes of ONNX files that cannot be, or ask for more than any machine has."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import onnx
import pytest
from hostile_onnx import FLOAT, SLOWEST, model_of, refuse
from onnx import helper, numpy_helper

from edgewise.convert import convert
from edgewise.errors import EdgewiseError
from edgewise.model import Model
from edgewise.runtime.session import Session

# Attributes, inputs, outputs


def spoilt(op: str, **fields: Any) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], name="n")
    node.attribute.append(onnx.AttributeProto(**fields))
    return model_of([node])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "alpha", "type": 2, "i": 1}, "want 'f'"),
        ({"name": "alpha", "type": 1, "floats": [1.0]}, "not of the type"),
        ({"name": "alpha", "type": 1, "f": 1.0, "i": 1}, "not of the type"),
        ({"name": "alpha", "type": 1}, "not of the type"),
        ({"name": "alpha", "type": 3, "s": b"x"}, "want 'f'"),
    ],
    ids=str,
)
def test_attributes_of_another_type_are_refused(fields: Any, reason: str) -> None:
    refuse(spoilt("LeakyRelu", **fields), reason)


def test_an_attribute_given_twice_is_refused() -> None:
    model = spoilt("LeakyRelu", name="alpha", type=1, f=0.1)
    attributes = model.graph.node[0].attribute
    attributes.append(attributes[0])
    refuse(model, "given twice")


def test_more_inputs_or_outputs_than_an_operator_has_are_refused() -> None:
    refuse(model_of([helper.make_node("Relu", ["x", "x"], ["y"])]), "at most 1")
    refuse(model_of([helper.make_node("Relu", ["x"], ["y", "z"])]), "at most 1")


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("name", ["kernel_shape", "strides", "pads", "dilations"])
@pytest.mark.parametrize("number", [0, -1, 1 << 31, (1 << 63) - 1, -(1 << 63)])
def test_windows_at_their_extremes_are_refused_or_made(
    op: str, name: str, number: int
) -> None:
    count = 4 if name == "pads" else 2
    attributes = {"kernel_shape": [2, 2], name: [number] * count}
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    try:
        made = convert(model_of([node], x=(FLOAT, [1, 2, 5, 5])))
    except EdgewiseError:
        return
    run(made, np.ones((1, 2, 5, 5), "f4"))


# Sizes that nobody has memory for


def run(model: Model, x: Any) -> None:
    with Session(model) as session:
        session.run({"x": x})


def constant(name: str, value: Any) -> onnx.NodeProto:
    array = numpy_helper.from_array(np.asarray(value))
    return helper.make_node("Constant", [], [name], value=array)


BIG = 1 << 40
BOMBS = {
    "ConstantOfShape": [[BIG]],
    "Range": [np.int64(0), np.int64(BIG), np.int64(1)],
    "Tile": ["x", [BIG]],
    "Expand": ["x", [BIG, 2]],
    "Pad": ["x", [BIG, 0]],
    "OneHot": [[1], np.int64(BIG), np.array([0, 1], "f4")],
    "Resize": ["x", "", np.array([1e12], "f4")],
}


@pytest.mark.parametrize("op", BOMBS)
@pytest.mark.parametrize("factor", [1, 1 << 20])
def test_bombs_are_refused_before_anything_is_allocated(op: str, factor: int) -> None:
    nodes, names = [], []
    for index, value in enumerate(BOMBS[op]):
        if isinstance(value, str):
            names.append(value)
            continue
        array = np.asarray(value)
        scaled = np.where(array >= BIG, array * float(factor), array)
        nodes.append(constant(f"c{index}", scaled.astype(array.dtype)))
        names.append(f"c{index}")
    nodes.append(helper.make_node(op, names, ["y"]))
    start = time.perf_counter()
    with pytest.raises(EdgewiseError, match=r"memory|too large|bytes at once"):
        run(convert(model_of(nodes)), np.ones(2, "f4"))
    assert time.perf_counter() - start < SLOWEST


@pytest.mark.parametrize("op", ["Mul", "Add", "Div"])
def test_arithmetic_on_sizes_does_not_grow_without_end(op: str) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s0"]), constant("three", [3, 3])]
    for i in range(60):
        nodes.append(helper.make_node(op, [f"s{i}", f"s{i}"], [f"t{i}"]))
        nodes.append(helper.make_node("Add", [f"t{i}", "three"], [f"s{i + 1}"]))
    nodes.append(helper.make_node("Expand", ["x", "s60"], ["y"]))
    start = time.perf_counter()
    try:
        run(convert(model_of(nodes, x=(FLOAT, ["N", "M"]))), np.ones((1, 1), "f4"))
    except EdgewiseError as error:
        assert str(error)  # noqa: PT017 - quotients stay small and are fine
    assert time.perf_counter() - start < SLOWEST


def test_a_vector_that_doubles_is_refused() -> None:
    nodes = [helper.make_node("Identity", ["x"], ["s0"])]
    nodes += [
        helper.make_node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0)
        for i in range(60)
    ]
    nodes.append(helper.make_node("Relu", ["s60"], ["y"]))
    refuse(model_of(nodes), "too large")
