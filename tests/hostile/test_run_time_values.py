"""Indices, counts and sizes that only a run knows: any value, and no harm is done.

Every operator here is given whole numbers at their extremes.  It refuses them with an
error of ours, or has a meaning for them; it never reads what is not there, allocates
without bounds, or fails in another way.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper

import edgewise as ew
from edgewise.errors import (
    KERNEL_FAULT,
    EdgewiseError,
    InternalError,
    KernelError,
    ShapeError,
)
from edgewise.ir import reference
from edgewise.ir.op import OPS
from edgewise.types import DType, TensorType

NUMBERS = (0, -1, 1, 5, 33, -33, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
FRACTIONS = (0.0, -1.0, 0.3, 1e9, 1e30, -1e30, float("inf"), float("nan"))
LIMIT = 1 << 27  # bytes that a session may plan for
MOST = 1 << 29  # bytes that it may take besides
SLOWEST = 20.0  # seconds, on a busy machine


class Case(NamedTuple):
    """One node, and which of its inputs are given every value.

    Attributes:
        op: The operator.
        inputs: Good values.
        bad: Positions of those that are spoilt.
        attributes: Of the node.
        outputs: How many.
    """

    op: str
    inputs: tuple[Any, ...]
    bad: tuple[int, ...]
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1


def f4(*shape: int) -> Any:
    return np.ones(shape, "f4")


def i8(*values: Any) -> Any:
    return np.array(values, "i8")


def scalar(value: int) -> Any:
    return np.array(value, "i8")


IMAGE = f4(1, 2, 5, 5)
BOXES = np.array([[0, 0, 3, 3], [1, 1, 4, 4]], "f4")
CASES = [
    Case("Gather", (f4(4, 3), i8(0, 1, 2)), (1,)),
    Case("Gather", (f4(4, 3), i8(0, 1, 2)), (1,), {"axis": 1}),
    Case("GatherElements", (f4(4, 3), i8([0, 1, 2])), (1,)),
    Case("GatherND", (f4(4, 3), i8([0, 1], [2, 2])), (1,)),
    Case("ScatterElements", (f4(4, 3), i8([0, 1, 2]), f4(1, 3)), (1,)),
    Case(
        "ScatterElements",
        (f4(4, 3), i8([0, 1, 2]), f4(1, 3)),
        (1,),
        {"reduction": "add"},
    ),
    Case("ScatterND", (f4(4, 3), i8([0], [2]), f4(2, 3)), (1,)),
    Case("ScatterND", (f4(4, 3), i8([0], [2]), f4(2, 3)), (1,), {"reduction": "max"}),
    Case("Slice", (f4(4, 3), i8(0), i8(2)), (1, 2)),
    Case("Slice", (f4(4, 3), i8(0), i8(2), i8(1), i8(1)), (1, 2, 3, 4)),
    Case("Reshape", (f4(4, 3), i8(3, 4)), (1,)),
    Case("Reshape", (f4(4, 3), i8(3, 4)), (1,), {"allowzero": 1}),
    Case("Expand", (f4(1, 3), i8(4, 3)), (1,)),
    Case("Tile", (f4(4, 3), i8(2, 2)), (1,)),
    Case("ConstantOfShape", (i8(2, 3),), (0,)),
    Case("Range", (scalar(0), scalar(9), scalar(2)), (0, 1, 2)),
    Case("Pad", (f4(4, 3), i8(1, 0, 0, 1)), (1,)),
    Case("Pad", (f4(4, 3), i8(1, 0, 0, 1)), (1,), {"mode": "reflect"}),
    Case("Pad", (f4(4, 3), i8(1, 0, 0, 1)), (1,), {"mode": "edge"}),
    Case("Pad", (f4(4, 3), i8(1, 1), None, i8(0)), (1, 3)),
    Case("Unsqueeze", (f4(4, 3), i8(0)), (1,)),
    Case("Squeeze", (f4(1, 3), i8(0)), (1,)),
    Case("ReduceSum", (f4(4, 3), i8(0)), (1,)),
    Case("CumSum", (f4(4, 3), scalar(0)), (1,)),
    Case("Trilu", (f4(4, 3), scalar(0)), (1,)),
    Case("TopK", (f4(4, 3), i8(2)), (1,), {}, 2),
    Case("OneHot", (i8(0, 1), scalar(3), np.array([0, 1], "f4")), (0, 1)),
    Case("Split", (f4(4, 3), i8(1, 3)), (1,), {}, 2),
    Case("SplitToSequence", (f4(4, 3), i8(1, 3)), (1,)),
    Case("SplitToSequence", (f4(4, 3), scalar(2)), (1,)),
    Case("Resize", (IMAGE, None, None, i8(1, 2, 7, 7)), (3,)),
    Case("Resize", (IMAGE, None, np.array([1, 1, 2, 2], "f4")), (2,)),
    Case(
        "Resize", (IMAGE, None, np.array([1, 1, 2, 2], "f4")), (2,), {"mode": "cubic"}
    ),
    Case(
        "Resize",
        (IMAGE, np.array([0, 0, 0, 0, 1, 1, 1, 1], "f4"), np.array([1, 1, 2, 2], "f4")),
        (1, 2),
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
    Case(
        "RoiAlign",
        (IMAGE, BOXES, i8(0, 0)),
        (1, 2),
        {"output_height": 2, "output_width": 2},
    ),
    Case(
        "MaxRoiPool",
        (IMAGE, np.array([[0, 0, 0, 3, 3]], "f4")),
        (1,),
        {"pooled_shape": [2, 2]},
    ),
    Case(
        "MaxUnpool",
        (f4(1, 1, 2, 2), i8([[[0, 3], [5, 9]]])),
        (1,),
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    Case("GridSample", (IMAGE, f4(1, 3, 3, 2)), (1,)),
    Case("GridSample", (IMAGE, f4(1, 3, 3, 2)), (1,), {"padding_mode": "reflection"}),
    Case("GridSample", (IMAGE, f4(1, 3, 3, 2)), (1,), {"mode": "cubic"}),
    Case("AffineGrid", (f4(1, 2, 3), i8(1, 2, 5, 5)), (1,)),
    Case(
        "DeformConv",
        (IMAGE, f4(2, 2, 2, 2), f4(1, 8, 4, 4)),
        (2,),
        {"kernel_shape": [2, 2]},
    ),
    Case("CenterCropPad", (f4(4, 3), i8(6, 2)), (1,)),
    Case("Col2Im", (f4(1, 4, 4), i8(3, 3), i8(2, 2)), (1, 2)),
    Case("ReverseSequence", (f4(4, 3), i8(1, 2, 3)), (1,)),
    Case(
        "NonMaxSuppression",
        (f4(1, 3, 4), f4(1, 1, 3), i8(2), np.array([0.5], "f4"), np.array([0], "f4")),
        (2, 3, 4),
    ),
    Case("NegativeLogLikelihoodLoss", (f4(3, 5), i8(0, 1, 2)), (1,)),
    Case("SoftmaxCrossEntropyLoss", (f4(3, 5), i8(0, 1, 2)), (1,)),
    Case("HannWindow", (scalar(8),), (0,)),
    Case("DFT", (f4(1, 8, 1), scalar(8), scalar(1)), (1, 2)),
    Case("STFT", (f4(1, 16, 1), scalar(4), None, scalar(8)), (1, 3)),
    Case(
        "MelWeightMatrix",
        (scalar(4), scalar(8), scalar(100), np.array(0, "f4"), np.array(50, "f4")),
        (0, 1, 2, 3, 4),
    ),
    Case("Div", (i8(4, 3), i8(2, 1)), (0, 1)),
    Case("Mod", (i8(4, 3), i8(2, 1)), (0, 1)),
    Case("Pow", (i8(4, 3), i8(2, 1)), (0, 1)),
    Case(
        "BitShift",
        (i8(4, 3).astype("u8"), i8(2, 1).astype("u8")),
        (1,),
        {"direction": "LEFT"},
    ),
    Case(
        "GRU",
        (f4(4, 3, 2), f4(1, 6, 2), f4(1, 6, 2), None, np.array([1, 2, 3], "i4")),
        (4,),
        {"hidden_size": 2},
    ),
    Case(
        "LSTM",
        (f4(4, 3, 2), f4(1, 8, 2), f4(1, 8, 2), None, np.array([1, 2, 3], "i4")),
        (4,),
        {"hidden_size": 2},
    ),
    Case(
        "RotaryEmbedding",
        (f4(1, 2, 3, 4), f4(5, 2), f4(5, 2), i8([0, 1, 2])),
        (3,),
    ),
    Case("TensorScatter", (f4(2, 1, 4, 3), f4(2, 1, 2, 3), i8(0, 1)), (2,)),
]


def built(case: Case) -> ew.Model:
    """The case with every input for the run to bring."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(case.inputs)]
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, **case.attributes)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, case.inputs, strict=True)
        if array is not None
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "case", infos, results)
    imports = [helper.make_opsetid("", 24)]
    return ew.convert(helper.make_model(graph, opset_imports=imports, ir_version=10))


def spoilt(array: Any, value: float) -> Any:
    """The array, and the array in one place, with a value as its type takes it."""
    if array.dtype.kind != "f":
        bounds = np.iinfo(array.dtype)
        value = min(max(int(value), int(bounds.min)), int(bounds.max))
    everywhere, once = np.full_like(array, value), array.copy()
    once.reshape(-1)[-1:] = value
    return everywhere, once


def want_harmless(session: ew.Session, feed: dict[str, Any]) -> None:
    start = time.perf_counter()
    tracemalloc.reset_peak()
    try:
        session.run(feed)
    except InternalError:
        raise
    except EdgewiseError as error:
        fault = isinstance(error, KernelError) and error.status == KERNEL_FAULT
        assert not fault, error.__cause__  # noqa: PT017 - a run may also end well
    assert time.perf_counter() - start < SLOWEST
    assert tracemalloc.get_traced_memory()[1] < MOST


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.op}{dict(case.attributes)}"
)
def test_any_value_is_refused_or_has_a_meaning(case: Case) -> None:
    model = built(case)
    good = {f"x{i}": a for i, a in enumerate(case.inputs) if a is not None}
    config = ew.SessionConfig(threads=1, memory_limit=LIMIT)
    tracemalloc.start()
    try:
        with ew.Session(model, config) as session:
            session.run(good)
            for position in case.bad:
                array = case.inputs[position]
                for value in FRACTIONS if array.dtype.kind == "f" else NUMBERS:
                    for bad in spoilt(array, value):
                        want_harmless(session, {**good, f"x{position}": bad})
            session.run(good)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [-1, 0, 3, 1 << 40, (1 << 63) - 1])
def test_the_turns_of_a_loop_end_with_the_memory_for_its_results(count: int) -> None:
    text = """
    <ir_version: 9, opset_import: ["": 20]>
    turns (float[1024] x, int64 count) => (y, all) {
        yes = Constant <value = bool {1}> ()
        y, all = Loop (count, yes, x) <body = turn (int64 i, bool c, float[1024] v)
            => (bool again, float[1024] next, float[1024] out) {
            again = Identity (c)
            next = Add (v, x)
            out = Identity (next)
        }>
    }
    """
    model = ew.convert(onnx.parser.parse_model(text))
    config = ew.SessionConfig(threads=1, memory_limit=1 << 22)
    with ew.Session(model, config) as session:
        feed = {"x": np.ones(1024, "f4"), "count": np.array(count)}
        if count > 3:
            with pytest.raises(EdgewiseError, match="more than 4194304 bytes"):
                session.run(feed)
        else:
            assert len(session.run(feed)["all"]) == max(count, 0)


def test_sizes_that_a_model_declares_and_a_run_does_not_find_are_told() -> None:
    declared = TensorType(DType.F32, (0, 3))
    op, tensors = OPS["sequence_at"]((0, 3)), [np.ones((1, 3), "f4")]
    with pytest.raises(ShapeError, match=r"got .*1, 3.*the model says"):
        reference.outputs(op, (tensors, np.array(0)), (declared,))
