"""Functions of a model, and operators that ONNX itself writes as graphs."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from edgewise.convert import convert
from edgewise.convert.onnx_ops import importer_of
from edgewise.errors import ModelFormatError, UnsupportedOpError

Check = Callable[..., Any]
X = np.array([[1, -2, 3], [0.5, 0, -1]], "f4")


def call(
    name: str, inputs: str, outputs: str, domain: str = "local", **attributes: Any
) -> onnx.NodeProto:
    return helper.make_node(
        name, inputs.split(), outputs.split(), domain=domain, **attributes
    )


def function(
    name: str,
    inputs: str,
    outputs: str,
    nodes: Sequence[onnx.NodeProto],
    opset: int = 17,
    **named: Any,
) -> onnx.FunctionProto:
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_function(
        "local", name, inputs.split(), outputs.split(), list(nodes), sets, **named
    )


def with_functions(
    model: onnx.ModelProto, *functions: onnx.FunctionProto
) -> onnx.ModelProto:
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("local", 1))
    return model


def referring(op: str, inputs: str, output: str, **references: str) -> onnx.NodeProto:
    """A node whose attributes are those of the call around it."""
    made = helper.make_node(op, inputs.split(), [output])
    for name, source in references.items():
        item = made.attribute.add(name=name, ref_attr_name=source)
        item.type = onnx.AttributeProto.FLOAT
    return made


def test_functions_call_functions(build: Check, agree: Check) -> None:
    twice = function("Twice", "a", "b", [call("Add", "a a", "b", "")])
    fourfold = function(
        "Fourfold", "a", "b", [call("Twice", "a", "t"), call("Twice", "t", "b")]
    )
    model = build([call("Fourfold", "x", "y")], {"x": X}, ["y"])
    agree(with_functions(model, twice, fourfold), {"x": X})


def test_names_within_a_function_are_its_own(build: Check, agree: Check) -> None:
    body = [call("Neg", "x", "y", ""), call("Mul", "y x", "z", "")]
    square = function("Square", "x", "z", body)
    nodes = [
        call("Square", "x", "t"),
        call("Square", "t", "z"),
        call("Abs", "z", "y", ""),
    ]
    agree(with_functions(build(nodes, {"x": X}, ["y"]), square), {"x": X})


def test_attributes_are_those_of_the_call_or_their_defaults(
    build: Check, agree: Check
) -> None:
    leaky = function(
        "Leaky", "a", "b", [referring("LeakyRelu", "a", "b", alpha="slope")],
        attributes=[], attribute_protos=[helper.make_attribute("slope", 0.5)],
    )  # fmt: skip
    bare = function(
        "Bare", "a", "b", [referring("LeakyRelu", "a", "b", alpha="slope")],
        attributes=["slope"],
    )  # fmt: skip
    nodes = [
        call("Leaky", "x", "y0"),
        call("Leaky", "x", "y1", slope=0.25),
        call("Bare", "x", "y2"),
        call("Bare", "x", "y3", slope=0.125),
    ]
    names = [f"y{index}" for index in range(4)]
    agree(with_functions(build(nodes, {"x": X}, names), leaky, bare), {"x": X})


def test_a_function_has_an_operator_set_of_its_own(build: Check) -> None:
    old = function(
        "Total",
        "a",
        "b",
        [helper.make_node("ReduceSum", ["a"], ["b"], axes=[1], keepdims=0)],
        opset=11,
    )
    model = with_functions(build([call("Total", "x", "y")], {"x": X}, ["y"]), old)
    assert convert(model).outputs[0].shape == (2,)


def test_an_input_that_a_call_leaves_out_is_absent(build: Check) -> None:
    clip = function("Clipped", "a low high", "b", [call("Clip", "a low high", "b", "")])
    made = with_functions(build([call("Clipped", "x", "y")], {"x": X}, ["y"]), clip)
    assert convert(made).outputs[0].shape == (2, 3)


def test_a_function_that_calls_itself_is_refused(build: Check) -> None:
    first = function("First", "a", "b", [call("Second", "a", "b")])
    second = function("Second", "a", "b", [call("First", "a", "b")])
    model = with_functions(
        build([call("First", "x", "y")], {"x": X}, ["y"]), first, second
    )
    with pytest.raises(ModelFormatError, match="'First' calls itself"):
        convert(model)


def test_functions_that_nest_too_deep_are_refused(build: Check) -> None:
    chain = [function("F0", "a", "b", [call("Neg", "a", "b", "")])]
    chain += [
        function(f"F{level}", "a", "b", [call(f"F{level - 1}", "a", "b")])
        for level in range(1, 50)
    ]
    model = with_functions(build([call("F49", "x", "y")], {"x": X}, ["y"]), *chain)
    with pytest.raises(ModelFormatError, match="deep"):
        convert(model)


def test_functions_that_multiply_without_end_are_refused(
    build: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        importlib.import_module("edgewise.convert.nodes"), "MAX_EXPANDED", 1000
    )
    bombs = [function("F0", "a", "b", [call("Neg", "a", "b", "")])]
    for level in range(1, 30):
        inner = f"F{level - 1}"
        names = ["a", *(f"t{index}" for index in range(9)), "b"]
        body = [call(inner, *pair) for pair in itertools.pairwise(names)]
        bombs.append(function(f"F{level}", "a", "b", body))
    model = with_functions(build([call("F29", "x", "y")], {"x": X}, ["y"]), *bombs)
    with pytest.raises(ModelFormatError, match="nodes"):
        convert(model)


def test_too_many_inputs_are_refused(build: Check) -> None:
    twice = function("Twice", "a", "b", [call("Add", "a a", "b", "")])
    model = with_functions(build([call("Twice", "x x", "y")], {"x": X}, ["y"]), twice)
    with pytest.raises(ModelFormatError, match="takes 1 inputs"):
        convert(model)


def test_an_operator_of_a_function_that_is_not_here_is_named(build: Check) -> None:
    odd = function("Odd", "a", "b", [call("Frobnicate", "a", "b", "")])
    model = with_functions(build([call("Odd", "x", "y")], {"x": X}, ["y"]), odd)
    with pytest.raises(UnsupportedOpError, match="Frobnicate"):
        convert(model)


def test_an_operator_without_an_importer_is_what_onnx_writes_it_as(
    build: Check, module_outputs: Check
) -> None:
    name = "AffineGrid"
    assert onnx.defs.get_schema(name, 20).has_function
    theta = np.array([[[1, 0, 0.5], [0, 2, 0]]], "f4")
    model = build(
        [helper.make_node(name, ["theta", "size"], ["y"], align_corners=1)],
        {"theta": theta},
        ["y"],
        weights={"size": np.array([1, 1, 2, 3], "i8")},
        opset=20,
    )
    grid = convert(model).module
    got = module_outputs(grid, {"theta": theta})["y"]
    x, y = np.meshgrid([-1, 0, 1], [-1, 1])
    np.testing.assert_allclose(got[0, ..., 0], x + 0.5, atol=1e-6)
    np.testing.assert_allclose(got[0, ..., 1], 2 * y, atol=1e-6)


def test_an_importer_is_found_by_domain_and_version() -> None:
    assert importer_of("Relu", 17) is importer_of("Relu", 17, "ai.onnx")
    assert importer_of("Relu", 17, "com.microsoft") is None
    assert importer_of("LabelEncoder", 1, "ai.onnx.ml") is not importer_of(
        "LabelEncoder", 2, "ai.onnx.ml"
    )


def test_a_domain_that_nothing_uses_may_be_imported(build: Check, agree: Check) -> None:
    model = build([call("Neg", "x", "y", "")], {"x": X}, ["y"])
    model.opset_import.append(helper.make_opsetid("org.nowhere", 7))
    assert convert(model).outputs[0].shape == (2, 3)
