"""Model files whose functions run each other in ways that no importer would write."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from edgewise import ops
from edgewise.dims import symbol
from edgewise.errors import ModelFormatError
from edgewise.format._generated import schema
from edgewise.format.build import build
from edgewise.format.container import aligned, seal
from edgewise.format.flatten import flatten
from edgewise.format.read import read_bytes
from edgewise.ir.graph import Graph, constant, input_value
from edgewise.ir.module import Module
from edgewise.types import DType, OptionalType, SequenceType, TensorType

F32 = TensorType(DType.F32, (symbol("N"),))
BOOL = TensorType(DType.BOOL, ())


def calling(*names: str) -> Graph:
    """A function that runs two others."""
    c, x = input_value("c", BOOL), input_value("x", F32)
    op = ops.If.giving((F32,), then_branch=names[0], else_branch=names[-1])
    return Graph((c, x), (op(c, c, x),), ("y",))


def file(model: schema.Model, payloads: tuple[bytes | memoryview, ...]) -> bytes:
    chunks = [seal(build(model, schema.IDENTIFIER))]
    for payload in payloads:
        chunks += [bytes(payload), bytes(aligned(len(payload)) - len(payload))]
    return b"".join(chunks)


def refused(
    functions: dict[str, Graph],
    message: str,
    change: Callable[[schema.Model], None] = lambda model: None,
) -> None:
    flat = flatten(Module(functions, {}))
    change(flat.model)
    with pytest.raises(ModelFormatError, match=message):
        read_bytes(file(flat.model, flat.payloads))


def test_a_function_that_runs_itself_is_refused() -> None:
    refused({"infer": calling("infer")}, "runs itself")


def test_functions_that_run_each_other_are_refused() -> None:
    bodies = {"infer": calling("a"), "a": calling("b"), "b": calling("c")}
    refused(bodies | {"c": calling("a")}, "runs itself")


def test_a_body_that_is_not_there_is_refused() -> None:
    refused({"infer": calling("nowhere")}, "not there")


def test_functions_that_nest_without_end_are_refused() -> None:
    c, x = input_value("c", BOOL), input_value("x", F32)
    deep = {f"f{n}": calling(f"f{n + 1}") for n in range(500)}
    last = Graph((c, x), (x,), ("y",))
    refused({"infer": calling("f0"), **deep, "f500": last}, "at most 32")


def test_a_body_of_other_types_is_refused() -> None:
    c, x = input_value("c", BOOL), input_value("x", TensorType(DType.I64, (3,)))
    refused({"infer": calling("a"), "a": Graph((c, x), (x,), ("y",))}, "takes")
    refused({"infer": calling("a"), "a": Graph((c,), (c,), ("y",))}, "takes")


def found() -> dict[str, Graph]:
    """A function with a binder, which value 3 is."""
    x, n = input_value("x", F32), input_value("n", TensorType(DType.I64, (1,)))
    read = ops.ReadDims(("m",))(n)
    y = ops.Fill((symbol("m"),))(constant(np.float32(1)))
    return {"infer": Graph((x, n), (y,), ("y",), {}, (read,))}


def test_a_file_with_binders_says_so() -> None:
    flat = flatten(Module(found(), {}))
    assert flat.model.features == ("binders",)
    assert read_bytes(file(flat.model, flat.payloads)).functions["infer"].binders


@pytest.mark.parametrize(
    ("binders", "message"),
    [
        ((99,), "99"),
        ((0,), "no symbol"),
        ((2,), "no symbol"),
        ((3, 4), "no symbol"),
    ],
)
def test_binders_that_bind_nothing_are_refused(
    binders: tuple[int, ...], message: str
) -> None:
    def change(model: schema.Model) -> None:
        model.functions[0].binders = binders

    refused(found(), message, change)


@pytest.mark.parametrize("name", ["", "N", "1", "a b", "x" * 9999 + "!", "m\0"])
def test_symbols_of_hostile_names_are_refused(name: str) -> None:
    def change(model: schema.Model) -> None:
        for op in model.ops:
            if op.name == "read_dims":
                op.attributes[0].items[0].text = name

    refused(found(), "read_dims|N|m", change)


@pytest.mark.parametrize("form", [4, 255])
def test_a_form_of_type_that_is_none_is_refused(form: int) -> None:
    def change(model: schema.Model) -> None:
        model.types[0].form = form

    refused(found(), "form", change)


def test_a_tensor_of_any_shape_alone_is_refused() -> None:
    def change(model: schema.Model) -> None:
        model.types[0].any_shape = True

    refused(found(), "any shape", change)


@pytest.mark.parametrize(
    "kind", ["", "f33", "sequence(f32", "optional(optional(f32))", "f32)", "f32[...]"]
)
def test_declared_types_that_are_none_are_refused(kind: str) -> None:
    o = input_value("o", OptionalType(SequenceType(F32)))
    y = ops.OptionalGetElement.giving((SequenceType(F32),))(o)

    def change(model: schema.Model) -> None:
        for attribute in model.ops[0].attributes:
            if attribute.name == "kinds":
                attribute.items[0].text = kind

    refused({"infer": Graph((o,), (y,), ("y",))}, "optional_get_element", change)


def test_a_variable_that_is_a_sequence_is_refused() -> None:
    flat = flatten(Module(found(), {}))
    flat.model.types[flat.model.tensors[0].type].form = 1
    with pytest.raises(ModelFormatError, match="stored tensor"):
        read_bytes(file(flat.model, flat.payloads))
