"""Shape arithmetic, as exporters write it, becomes sizes with symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from edgewise import dims
from edgewise.convert import ConvertConfig, convert
from edgewise.convert.onnx import import_module
from edgewise.convert.symbolic_rules import at_least, clamp, lower_bound
from edgewise.dims import symbol
from edgewise.runtime.session import Session

Check = Callable[..., Any]
Nodes = list[onnx.NodeProto]
N, T = symbol("N"), symbol("T")


def i64(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    """A node from names with blanks between them."""
    return helper.make_node(op, inputs.split(), [output], **attributes)


WEIGHTS = {
    "zero": np.array(0, np.int64),
    "one": np.array(1, np.int64),
    "two": np.array(2, np.int64),
    "first": i64(0),
    "second": i64(1),
    "third": i64(2),
    "minus": i64(-1),
    "eight": i64(8),
    "far": i64(2**63 - 1),
}


@pytest.fixture
def over_x(build: Check, agree: Check) -> Callable[[Nodes], Any]:
    """Checks nodes that make ``y`` from ``x[N, T, 8]``, at two sizes."""

    def check(nodes: Nodes) -> Any:
        shape = None
        for n, t in ((1, 6), (3, 4)):
            x = np.arange(n * t * 8, dtype="f4").reshape(n, t, 8)
            model = build(
                nodes, {"x": x}, ["y"], weights=WEIGHTS, shapes={"x": ["N", "T", 8]}
            )
            module = agree(model, {"x": x})
            shape = module.functions["infer"].outputs[0].type.shape
        return shape

    return check


def size(axis: str, output: str) -> Nodes:
    """``output`` is the size of ``x`` along the axis that ``axis`` names."""
    return [
        node("Shape", "x", f"{output}_all"),
        node("Gather", f"{output}_all {axis}", output),
    ]


def test_a_flattened_batch(over_x: Check) -> None:
    shape = over_x(
        [
            *size("first", "n"),
            node("Concat", "n minus", "s", axis=0),
            node("Reshape", "x s", "y"),
        ]
    )
    assert shape == (N, 8 * T)


def test_heads_split_by_computed_sizes(over_x: Check) -> None:
    shape = over_x(
        [
            *size("zero", "n"),
            *size("one", "t"),
            *size("two", "c"),
            node("Div", "c two", "h"),
            node("Unsqueeze", "n first", "n1"),
            node("Unsqueeze", "t first", "t1"),
            node("Unsqueeze", "h first", "h1"),
            node("Concat", "n1 t1 minus h1", "s", axis=0),
            node("Reshape", "x s", "r"),
            node("Transpose", "r", "y", perm=[0, 2, 1, 3]),
        ]
    )
    assert shape == (N, 2, T, 4)


def test_a_slice_to_half_the_length(over_x: Check) -> None:
    shape = over_x(
        [
            *size("second", "t"),
            node("Div", "t two", "end"),
            node("Slice", "x first end second", "y"),
        ]
    )
    assert shape[1] == dims.floordiv(T, 2)


def test_a_length_halved_through_floats(over_x: Check) -> None:
    shape = over_x(
        [
            *size("second", "t"),
            node("Cast", "t", "f", to=onnx.TensorProto.FLOAT),
            node("Constant", "", "twice", value_float=2.0),
            node("Div", "f twice", "d"),
            node("Floor", "d", "g"),
            node("Cast", "g", "end", to=onnx.TensorProto.INT64),
            node("Slice", "x first end second", "y"),
        ]
    )
    assert shape[1] == dims.floordiv(T, 2)


def test_an_expand_that_keeps_what_is_minus_one(over_x: Check) -> None:
    shape = over_x(
        [
            *size("first", "n"),
            node("Concat", "n minus eight", "want", axis=0),
            node("Shape", "x", "have"),
            node("Equal", "want minus", "open"),
            node("Where", "open have want", "target"),
            node("Expand", "x target", "y"),
        ]
    )
    assert shape == (N, T, 8)


def test_a_mask_of_the_right_length(over_x: Check) -> None:
    shape = over_x(
        [
            *size("one", "t"),
            node("Range", "zero t one", "places"),
            node("Cast", "places", "y", to=onnx.TensorProto.FLOAT),
        ]
    )
    assert shape == (T,)


def test_zeros_of_the_batch(over_x: Check) -> None:
    shape = over_x(
        [
            *size("first", "n"),
            node("Concat", "n eight", "s", axis=0),
            node("ConstantOfShape", "s", "y"),
        ]
    )
    assert shape == (N, 8)


def test_the_last_step(over_x: Check) -> None:
    assert over_x([node("Slice", "x minus far second", "y")]) == (N, 1, 8)


def test_a_size_that_is_computed_with_stays_a_tensor(over_x: Check) -> None:
    over_x(
        [
            *size("one", "t"),
            node("Cast", "t", "f", to=onnx.TensorProto.FLOAT),
            node("Sqrt", "f", "r"),
            node("Div", "x r", "y"),
        ]
    )


def test_the_shape_itself_may_be_an_output(over_x: Check) -> None:
    over_x([node("Shape", "x", "y")])
    over_x([node("Size", "x", "y")])
    over_x([node("Shape", "x", "y", start=1)])
    over_x([node("Shape", "x", "y", start=-2, end=-1)])


def test_smaller_and_larger_sizes(over_x: Check) -> None:
    shape = over_x(
        [
            *size("second", "t"),
            node("Min", "t eight", "m"),
            node("Slice", "x first m second", "y"),
        ]
    )
    assert shape[1] == dims.minimum(T, 8)


def test_the_product_of_a_shape(over_x: Check) -> None:
    shape = over_x(
        [
            node("Shape", "x", "s"),
            node("ReduceProd", "s", "p", keepdims=1),
            node("Reshape", "x p", "y"),
        ]
    )
    assert shape == (8 * N * T,)


def test_shape_arithmetic_leaves_no_trace(build: Check) -> None:
    nodes = [
        *size("first", "n"),
        node("Concat", "n minus", "s", axis=0),
        node("Reshape", "x s", "y"),
    ]
    x = np.zeros((1, 2, 8), "f4")
    model = build(nodes, {"x": x}, ["y"], weights=WEIGHTS, shapes={"x": ["N", "T", 8]})
    graph = import_module(model).functions["infer"]
    assert [n.op.name for n in graph.nodes()] == ["input", "reshape"]


def test_fixed_shapes_decide_all(build: Check) -> None:
    nodes = [*size("second", "t"), node("Add", "t eight", "y")]
    x = np.zeros((1, 2, 8), "f4")
    model = build(nodes, {"x": x}, ["y"], weights=WEIGHTS, shapes={"x": ["N", "T", 8]})
    config = ConvertConfig(input_shapes={"x": (1, 5, 8)})
    (output,) = import_module(model, config).functions["infer"].outputs
    assert output.op.name == "constant"


def test_bounds_hold_for_sizes_from_one_on() -> None:
    assert lower_bound(3) == 3
    assert lower_bound(2 * N + 1) == 3
    assert lower_bound(N - T) is None
    assert lower_bound(dims.floordiv(N + 3, 2)) == 2
    assert lower_bound(dims.maximum(N - 3, 0)) == 0
    assert lower_bound(dims.minimum(N, 8)) == 1
    assert at_least(N, 1)
    assert not at_least(N, 2)
    assert at_least(T, dims.floordiv(T, 2))
    assert at_least(T + 1, dims.minimum(T, 8))
    assert not at_least(T, dims.maximum(T, 8))
    assert clamp(N - 1, 0, N) == N - 1
    assert clamp(N + 1, 0, N) == N
    assert clamp(-3, 0, N) == 0
    assert clamp(5, 0, N) == dims.minimum(5, N)


BIG = {"big": i64(2**62, 2**61), "least": i64(-(2**63), 2**62), "k": i64(1, 2)}


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Mul", "s big", "y")],
        [node("Mul", "s big", "t"), node("Div", "t big", "y")],
        [node("Sub", "least s", "t"), node("Max", "t s", "y")],
        [node("Add", "least s", "t"), node("Add", "t t", "y")],
        [node("Mul", "s s", "t"), node("Mul", "t t", "u"), node("Mul", "u u", "y")],
        [
            node("Mul", "s s", "t"),
            node("Mul", "t t", "u"),
            node("Mul", "u u", "v"),
            node("Mul", "v v", "w"),
            node("Div", "w v", "y"),
        ],
        [node("Cast", "s", "t", to=3), node("Cast", "t", "y", to=7)],
    ],
    ids=["product", "quotient", "largest", "sum", "power", "powers", "bytes"],
)
def test_arithmetic_of_sizes_wraps_as_that_of_tensors(
    nodes: Nodes, build: Check
) -> None:
    shape = [node("Shape", "x", "s")]
    x = np.zeros((300, 2000), "f4")
    weights = {name: BIG[name] for n in nodes for name in n.input if name in BIG}
    model = build(shape + nodes, {"x": x}, ["y"], weights=weights, shapes={"x": "NT"})
    (want,) = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, {"x": x})
    np.testing.assert_array_equal(Session(convert(model)).run({"x": x})["y"], want)
