"""Nodes whose numbers, axes or inputs do not fit: an error of ours that says which.

Each was a mutant that ended in an exception of Python or numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hostile_onnx import FLOAT, model_of
from onnx import TensorProto, helper

import edgewise as ew
from edgewise.errors import (
    SHAPE_MISMATCH,
    DTypeError,
    InternalError,
    KernelError,
    ModelFormatError,
    ShapeError,
)
from edgewise.ir.op import OPS, Op
from edgewise.kernels.catalog.base import f16_word, f32_word
from edgewise.ops.activation import Prelu
from edgewise.ops.dynamic import Permute
from edgewise.ops.image_norm import GroupNorm
from edgewise.ops.index import Triangle
from edgewise.ops.ngrams import CountNgrams
from edgewise.ops.pad import Pad
from edgewise.ops.resize import Resize
from edgewise.ops.sequence import SequenceAt
from edgewise.types import DType, SequenceType, TensorType

F4, U1, I8 = FLOAT, TensorProto.UINT8, TensorProto.INT64


def model(op: str, *inputs: Any, opset: int = 25, **attributes: Any) -> onnx.ModelProto:
    """One node over inputs of the given types and shapes; ``None``: left out."""
    names = ["" if kind is None else f"x{i}" for i, kind in enumerate(inputs)]
    node = helper.make_node(op, names, ["y"], name="n", **attributes)
    values = [
        helper.make_tensor_value_info(name, *kind)
        for name, kind in zip(names, inputs, strict=True)
        if kind is not None
    ]
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name="y")])
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=11)


HEADS = (F4, [1, 2, 3, 4])
LOGS = (F4, [2, 3])
QUANTISED = [(U1, [2, 2]), (F4, []), (U1, [])] * 2 + [(F4, [])]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            model("Attention", HEADS, HEADS, HEADS, (F4, [1] * 5)),
            "1 or 2 or 3 or 4 axes",
        ),
        (model("Attention", HEADS, HEADS, HEADS, (F4, [])), "1 or 2 or 3 or 4 axes"),
        (model("Attention", *[(F4, [1, 2, 3, 0])] * 3), "heads of size 1"),
        (
            model("Attention", *[HEADS] * 3, None, None, None, (I8, [1, 1])),
            "want 1 axes",
        ),
        (model("STFT", (F4, [1, 8, 1]), (I8, []), (F4, [])), "want 1 axes"),
        (model("STFT", (F4, [8]), (I8, [])), "want 3 axes"),
        (model("DFT", (F4, [2]), None, (I8, [])), "a signal and its parts"),
        (model("GroupNormalization", *[(F4, [2])] * 3, num_groups=1), "N, C"),
        (model("Max"), "want 1 or more"),
        (model("Min"), "want 1 or more"),
        (model("Sum"), "want 1 or more"),
        (model("Mean"), "want 1 or more"),
        (model("QLinearMatMul", *QUANTISED), "want 8 or more"),
        (
            model("NegativeLogLikelihoodLoss", LOGS, (U1, [2]), ignore_index=-1),
            "-1 and u8",
        ),
        (
            model("SoftmaxCrossEntropyLoss", LOGS, (U1, [2]), ignore_index=-5),
            "-5 and u8",
        ),
        (model("LpPool", (U1, [1, 1, 4, 4]), kernel_shape=[2, 2], p=300), "300.0 and"),
        (model("LpPool", (F4, [1, 1, 4, 4]), kernel_shape=[2, 2], p=0), "p=0"),
        (model("GlobalLpPool", (F4, [1, 1, 4, 4]), p=0), "p=0"),
        (model("CumSum", LOGS, (I8, [2])), "want one number"),
        (model("ReduceSum", LOGS, (I8, [3])), "reduces 3 axes"),
        (model("Relu", (F4, [1 << 40, 1 << 40])), "input 'x0' is too large"),
        (model("Relu", (F4, [0, 1 << 62])), "input 'x0' is too large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_node_that_cannot_be_is_refused(source: Any, reason: str) -> None:
    with pytest.raises(ModelFormatError, match=reason):
        ew.convert(source)


def test_a_negative_scale_is_a_scale() -> None:
    half = (TensorProto.FLOAT16, [1, 1, 2, 2])
    x = np.arange(4, dtype="f2").reshape(1, 1, 2, 2)
    scores = -x[0, 0] @ x[0, 0].T.astype("f4")
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    made = ew.convert(model("Attention", half, half, half, scale=-1.0))
    with ew.Session(made) as session:
        y = session.run({"x0": x, "x1": x, "x2": x})["y"]
    np.testing.assert_allclose(y[0, 0], weights @ x[0, 0], atol=1e-2)


@pytest.mark.parametrize("op", ["Unsqueeze", "Squeeze", "Reshape", "Expand"])
def test_more_axes_than_a_tensor_has_are_refused(op: str) -> None:
    with pytest.raises(ew.UnsupportedOpError, match="x1"):
        ew.convert(model(op, LOGS, (I8, [1 << 40])))


def test_an_index_beyond_a_shape_is_for_the_run_to_refuse() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Constant", [], ["i"], value_int=3),
        helper.make_node("Gather", ["s", "i"], ["y"]),
    ]
    made = ew.convert(model_of(nodes, x=(FLOAT, ["N"])))
    with ew.Session(made) as session, pytest.raises(KernelError, match="out of range"):
        session.run({"x": np.ones(2, "f4")})


def test_sizes_of_a_sequence_below_zero_are_unknown() -> None:
    item = helper.make_tensor_type_proto(FLOAT, [-5])
    kind = helper.make_sequence_type_proto(item)
    source = model("SequenceLength")
    source.graph.node[0].input.append("x")
    source.graph.input.append(helper.make_value_info("x", kind))
    with ew.Session(ew.convert(source)) as session:
        assert session.run({"x": [np.ones(3, "f4")]})["y"] == 1


def test_boxes_and_scores_that_differ_end_the_run() -> None:
    source = model("NonMaxSuppression", (F4, ["N", "B", 4]), (F4, ["M", 1, "C"]))
    boxes, scores = np.ones((1, 2, 4), "f4"), np.ones((2, 1, 2), "f4")
    with ew.Session(ew.convert(source)) as session, pytest.raises(ShapeError):
        session.run({"x0": boxes, "x1": scores})


# Inputs that a file leaves absent


X, ORDER = TensorType(DType.F32, (2, 3)), TensorType(DType.I64, (2,))


@pytest.mark.parametrize(
    ("op", "given"),
    [
        (Prelu(), (X, None)),
        (Permute((2, 3)), (X, None)),
        (SequenceAt((2, 3)), (SequenceType(X), None)),
        (OPS["concat"](0), (X, None)),
    ],
    ids=lambda value: value.name if isinstance(value, Op) else "",
)
def test_an_op_is_not_left_without_what_it_needs(op: Op, given: Any) -> None:
    with pytest.raises(ShapeError, match="no input 1"):
        op.infer_all(given)


@pytest.mark.parametrize("op", [op for op in OPS.values() if not op.objects])
def test_samples_leave_out_what_may_be_left_out(op: type[Op]) -> None:
    for sample in op.samples():
        types = tuple(
            None if x is None else TensorType(DType.of(x.dtype), x.shape)
            for x in sample.inputs
        )
        assert sample.op.infer_all(types)
        if types and types[0] is not None and not op.random:  # a seed may be absent
            with pytest.raises((ShapeError, DTypeError, InternalError)):
                sample.op.infer_all((None, *types[1:]))


# References of nothing, and of numbers beyond a type


def test_normalised_nothing_is_nothing() -> None:
    for shape in ((0, 2, 4), (2, 0, 4), (0, 0, 2, 4)):
        y = GroupNorm(2).reference(np.ones(shape, "f4"), np.ones(4), np.ones(4))
        assert y.shape == shape


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 0)])
def test_no_words_have_no_ngrams(shape: tuple[int, ...]) -> None:
    op = CountNgrams((0,), 1, 1, 0, 2, "TF")
    places = np.arange(2)
    y = op.reference(np.zeros(shape, "i8"), places, places, np.ones(2, "f4"))
    np.testing.assert_array_equal(y, np.zeros((*shape[:-1], 2)))


def test_nothing_is_resized_to_nothing() -> None:
    scales = np.array([2, 1], "f4")
    assert Resize((0, 3)).reference(np.ones((0, 3), "f4"), scales).shape == (0, 3)
    assert Resize((0, 3)).reference(np.ones((1, 3), "f4")).shape == (0, 3)
    with pytest.raises(KernelError) as caught:
        Resize((1, 3)).reference(np.ones((1, 3), "f4"), 0 * scales)
    assert caught.value.status == SHAPE_MISMATCH


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, 256.0, -1.0])
def test_what_a_type_does_not_hold_is_not_padded_with(value: float) -> None:
    with pytest.raises(DTypeError, match="pad"):
        Pad((1, 1), "constant", value).infer_all((TensorType(DType.U8, (2,)),))


def test_numbers_beyond_a_float_are_infinite_in_kernels_too() -> None:
    assert f32_word(-1e300) == np.float32(-np.inf).view(np.int32)
    assert f16_word(1e6) == np.float16(np.inf).view(np.int16)


def test_a_triangle_of_texts_is_empty_elsewhere() -> None:
    x = np.array([["a", "b"], ["c", "d"]], object)
    upper, lower = Triangle(True).reference(x), Triangle(False).reference(x)
    assert upper.tolist() == [["a", "b"], ["", "d"]]
    assert lower.tolist() == [["a", ""], ["c", "d"]]
