"""Graphs and modules as text, and back."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import numpy as np
import pytest

from edgewise.dims import Dim, floordiv, symbol
from edgewise.errors import ModelFormatError
from edgewise.ir.graph import Graph, constant, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import OPS, Array, Op, Sample
from edgewise.ir.parse import parse_graph, parse_module
from edgewise.ir.text import graph_text, module_text
from edgewise.ops import Add, Linear, Not, PackPanels, Reshape, TopK
from edgewise.types import DType, QuantParams, TensorType

N, T = symbol("N"), symbol("T")


class Corner(enum.Enum):
    NEAR = "near"
    FAR = "far"


@pytest.fixture
def every_kind() -> Iterator[type[Op]]:
    """An op with an attribute of every kind, registered for one test."""

    class EveryKind(Op, name="test_every_kind"):
        whole: int
        real: float
        flag: bool
        words: str
        size: Dim
        corner: Corner
        sizes: tuple[Dim, ...]
        reals: tuple[float, ...]
        nested: tuple[tuple[int, ...], ...]

        def infer(self, x: TensorType | None, y: TensorType) -> TensorType:
            return y

        def reference(self, x: Array | None, y: Array) -> Array:
            return y.copy()

        @staticmethod
        def samples() -> Iterator[Sample]:
            return iter(())

    yield EveryKind
    del OPS._classes["test_every_kind"], OPS.homes["test_every_kind"]


def same(graph: Graph) -> Graph:
    written = graph_text(graph)
    back = parse_graph(*written)
    assert graph_text(back).text == written.text
    return back


def test_a_graph_reads_like_code() -> None:
    x = input_value("x", TensorType(DType.F32, (N, 3)))
    w = variable_value("fc.weight", TensorType(DType.F32, (1, 3, 16)))
    y = Linear(5)(x, w, None, constant(np.ones(5, "f4")), label="fc")
    text = graph_text(Graph((x,), (y,), ("y",), {"s": y})).text
    assert text.splitlines() == [
        "graph infer(v0):",
        "  v0: f32[N, 3] = input('x')",
        "  v1: f32[1, 3, 16] = variable('fc.weight')",
        "  v2: f32[5] = constant([1.0, 1.0, 1.0, 1.0, 1.0])",
        (
            "  v3: f32[N, 5] = linear(v0, v1, None, v2, columns=5, activation='none',"
            " alpha=0.0, beta=0.0) @ 'fc'"
        ),
        "  return {'y': v3}",
        "  update {'s': v3}",
    ]


def test_attributes_of_every_kind_are_exact(every_kind: type[Op]) -> None:
    op = every_kind(
        -3,
        float("-inf"),
        flag=True,
        words='it\'s "x" = (v1, None) @ [] \n',
        size=2 * N * T - floordiv(N + 1, 2),
        corner=Corner.FAR,
        sizes=(1, N, symbol("in") + 1),
        reals=(0.1, float("nan"), -0.0, 1e-300),
        nested=((), (1,), (2, 3)),
    )
    y = input_value("y", TensorType(DType.F32, ()))
    value = op(None, y, label="odd = 'label' @ []")
    back = same(Graph((y,), (value,), ("out",)))
    node = back.outputs[0].node
    assert node.op == op
    assert node.label == value.node.label
    assert node.inputs[0] is None
    assert node.inputs[1] == back.inputs[0]


def test_several_outputs_shared_values_and_odd_names() -> None:
    x = input_value("a b\n'", TensorType(DType.F32, (7,)))
    values, indices = TopK(3, 0).node(x)
    total = Add()(values, values)
    graph = Graph((x,), (indices, total, total), ("i", "[]", "=: {"))
    back = same(graph)
    assert back.output_names == graph.output_names
    assert back.outputs[0].index == 1
    assert back.outputs[1] == back.outputs[2]
    assert back.outputs[1].node.inputs[0] == back.outputs[1].node.inputs[1]


def test_ops_called_like_words_of_python() -> None:
    x = input_value("x", TensorType(DType.BOOL, (7,)))
    assert same(Graph((x,), (Not()(x),), ("y",))).outputs[0].op == Not()


def test_quantised_types() -> None:
    quant = QuantParams((0.1, 0.25), (0, -3), axis=1)
    x = input_value("x", TensorType(DType.I8, (N, 2), quant))
    back = same(Graph((x,), (Reshape((2, N))(x),), ("y",)))
    assert back.inputs[0].type == x.type
    assert back.outputs[0].type.quant == quant


def test_long_arrays_stand_in_the_table_once() -> None:
    array = np.arange(100, dtype=np.float32)
    array.flags.writeable = False
    a, b = constant(array), constant(array)
    text, arrays = graph_text(Graph((), (a, b), ("a", "b")))
    assert "constant(a0)" in text
    assert 1 <= len(arrays) <= 2
    back = parse_graph(text, arrays)
    np.testing.assert_array_equal(back.outputs[1].op.array, array)  # type: ignore[attr-defined]


def test_a_module_keeps_variables_functions_and_metadata() -> None:
    logical = TensorType(DType.F32, (3, 5))
    packing = PackPanels((0, 1))
    stored = packing.reference(np.ones((3, 5), "f4"))
    packed = packing.infer(logical)
    weight = VariableInfo("w", packed, Role.PARAMETER, stored, logical, packing)
    shape = TensorType(DType.F32, (5,))
    derived = VariableInfo("scale", shape, Role.DERIVED)
    x = input_value("x", TensorType(DType.F32, (N, 3)))
    scale = variable_value("scale", shape)
    y = Linear(5)(x, variable_value("w", packed), scale)
    infer = Graph((x,), (y,), ("y",))
    prepare = Graph((), (), (), {"scale": constant(np.ones(5, "f4"))})
    module = Module(
        {"prepare": prepare, "infer": infer},
        {"w": weight, "scale": derived},
        {"producer": "it's\n[]"},
    )
    text, arrays = module_text(module)
    back = parse_module(text, arrays)
    assert module_text(back).text == text
    assert back.metadata == module.metadata
    assert list(back.functions) == ["prepare", "infer"]
    info = back.variables["w"]
    assert (info.type, info.logical, info.role) == (packed, logical, Role.PARAMETER)
    assert info.packing == packing
    np.testing.assert_array_equal(info.initial, stored)
    assert back.variables["scale"].initial is None
    assert set(back.functions["prepare"].updates) == {"scale"}


@pytest.mark.parametrize(
    "text",
    [
        "graph infer(v0)\n",
        "graph infer(v0):\n  return {}\n",
        "  v0: f32[3] = relu(v1)\n",
        "  v0: f33[3] = input('x')\n",
        "  v0: f32[3] = nonsense()\n",
        "  v0: f32[3] = clip(None, low=1.0)\n",
        "  v0: f32[3] = clip(None, low=1.0, high=2.0, middle=0)\n",
        "  v0: f32[3] = constant(a7)\n",
        "  v0: f32[3] = constant([1, 2])\n",
        "  v0 = relu(\n",
        "  v0: f32[3] = __import__('os').system('true')\n",
        "  return [v0]\n",
        "variable('w', 'king', f32[3])\n",
        "module 5\n",
        "what is this\n",
    ],
)
def test_a_text_that_is_no_graph_says_which_line(text: str) -> None:
    with pytest.raises(ModelFormatError, match=r"line|graph"):
        parse_graph(text, {})
