"""What verification refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from edgewise.dims import symbol
from edgewise.errors import DTypeError, EdgewiseError, InternalError, ShapeError
from edgewise.ir.graph import (
    Constant,
    Graph,
    Input,
    Node,
    Value,
    constant,
    input_value,
    variable_value,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.verify import verify, verify_module
from edgewise.ops import Add, Clip, PackTaps, Relu, Transpose
from edgewise.types import DType, TensorType

N = symbol("N")
F32 = TensorType(DType.F32, (N, 3))
VECTOR = TensorType(DType.F32, (3,))


def x() -> Value:
    return input_value("x", F32)


def graph(value: Value, *inputs: Value) -> Graph:
    return Graph(inputs, (value,), ("y",))


def test_a_sound_graph_passes() -> None:
    a = x()
    verify(graph(Relu()(Add()(a, constant(np.ones(3, "f4")))), a))


def test_an_input_that_is_not_listed() -> None:
    with pytest.raises(InternalError, match="no input of the graph"):
        verify(graph(Relu()(x())))


def test_an_input_that_is_none() -> None:
    value = constant(np.ones(3))
    with pytest.raises(InternalError, match="want input nodes"):
        verify(graph(value, value))


def test_two_inputs_or_outputs_of_one_name() -> None:
    a, b = x(), x()
    with pytest.raises(InternalError, match="2 inputs are called 'x'"):
        verify(graph(Add()(a, b), a, b))
    twice = Graph((a,), (a, a), ("y", "y"))
    with pytest.raises(InternalError, match="2 outputs are called 'y'"):
        verify(twice)


@pytest.mark.parametrize(
    "type_", [VECTOR, F32.with_dtype(DType.F64), F32.with_shape((N, 4))]
)
def test_a_type_that_is_not_the_ops(type_: TensorType) -> None:
    a = x()
    node = Node(Relu(), (a,), (type_,), "act")
    with pytest.raises(ShapeError, match="act"):
        verify(graph(Value(node), a))


def test_an_unknown_size_may_be_any() -> None:
    a = x()
    node = Node(Relu(), (a,), (F32.with_shape((symbol("M"), 3)),), "act")
    verify(graph(Value(node), a))


def test_inputs_that_do_not_fit_name_the_node() -> None:
    a = x()
    node = Node(Transpose((0, 0)), (a,), (F32,), "turn")
    with pytest.raises(ShapeError, match="turn"):
        verify(graph(Value(node), a))
    ints = constant(np.ones(3, "i4"))
    mixed = Node(Add(), (a, ints), (F32,), "sum")
    with pytest.raises(DTypeError, match="sum"):
        verify(graph(Value(mixed), a))


def test_an_output_the_node_does_not_have() -> None:
    a = x()
    relu = Relu()(a)
    with pytest.raises(InternalError, match="no output 1"):
        verify(graph(Value(relu.node, 1), a))
    reader = Node(Relu(), (Value(relu.node, 3),), (F32,), "late")
    with pytest.raises(InternalError, match="reads output 3"):
        verify(graph(Value(reader), a))


@pytest.mark.parametrize(
    "op", [Clip("0", 1.0), Clip(np.float64(0), 1.0), Transpose((True, 0))]
)
def test_an_attribute_of_another_kind(op: Any) -> None:
    a = x()
    node = Node(op, (a,), (F32,), "odd")
    with pytest.raises(InternalError, match="attribute"):
        verify(graph(Value(node), a))


def test_an_op_that_is_not_registered() -> None:
    class Ghost(Relu):
        pass

    a = x()
    node = Node(Ghost(), (a,), (F32,), "ghost")
    with pytest.raises(InternalError, match="no registered op"):
        verify(graph(Value(node), a))


def test_leaves_with_inputs_and_constants_that_lie() -> None:
    a = x()
    leaf = Node(Input("z"), (a,), (F32,), "z")
    with pytest.raises(InternalError, match="leaf"):
        verify(graph(Value(leaf), a, Value(leaf)))
    lie = Node(Constant(np.ones(2, "f4")), (), (VECTOR,), "lie")
    with pytest.raises(ShapeError, match="holds"):
        verify(graph(Value(lie)))


def parameter(**changes: Any) -> VariableInfo:
    given: dict[str, Any] = {"key": "w", "type_": VECTOR, "role": Role.PARAMETER}
    given["initial"] = np.ones(3, "f4")
    return VariableInfo(**(given | changes))


def module(
    info: VariableInfo, functions: Mapping[str, Graph] | None = None, key: str = "w"
) -> Module:
    if functions is None:
        functions = {"infer": graph(Relu()(variable_value("w", VECTOR)))}
    return Module(functions, {key: info})


def test_a_sound_module_passes() -> None:
    verify_module(module(parameter()))
    w = variable_value("w", VECTOR)
    made = Graph((), (), (), {"w": Relu()(constant(np.ones(3, "f4")))})
    derived = parameter(role=Role.DERIVED, initial=None)
    verify_module(module(derived, {"infer": graph(w), "prepare": made}))


@pytest.mark.parametrize(
    ("info", "error"),
    [
        (parameter(key="v"), "filed under"),
        (parameter(initial=None), "no values"),
        (parameter(initial=np.ones(4, "f4")), "holds"),
        (parameter(initial=np.ones(3, "f8")), "holds"),
        (parameter(type_=VECTOR.with_shape((4,))), "holds"),
        (parameter(role=Role.DERIVED), "has values"),
        (parameter(role=Role.DERIVED, initial=None), "not by 'prepare'"),
        (parameter(logical=F32), "stored as"),
        (parameter(packing=PackTaps()), "want a weight|0 to|axis"),
    ],
)
def test_a_variable_that_lies(info: VariableInfo, error: str) -> None:
    with pytest.raises(EdgewiseError, match=error):
        verify_module(module(info))


def test_functions_that_use_variables_wrongly() -> None:
    other = graph(variable_value("w", VECTOR.with_shape((4,))))
    with pytest.raises(ShapeError, match=r"function 'infer': variable 'w': used as"):
        verify_module(module(parameter(), {"infer": other}))
    unknown = graph(variable_value("v", VECTOR))
    with pytest.raises(InternalError, match="no variable is called 'v'"):
        verify_module(module(parameter(), {"infer": unknown}))
    stored = Graph((), (), (), {"v": constant(np.ones(3, "f4"))})
    with pytest.raises(InternalError, match="no variable is called 'v'"):
        verify_module(module(parameter(), {"infer": stored}))


def test_prepare_takes_and_gives_nothing() -> None:
    with pytest.raises(InternalError, match="prepare"):
        verify_module(
            module(parameter(), {"prepare": graph(variable_value("w", VECTOR))})
        )
