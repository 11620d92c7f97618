"""Ops written in ONNX: another engine gets from them what our references say."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Missing

from edgewise.convert.to_onnx import to_onnx
from edgewise.convert.to_onnx.registry import RULES
from edgewise.errors import UnsupportedOpError
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.module import Module
from edgewise.ir.op import OPS, Array, Op, Sample
from edgewise.ir.reference import outputs
from edgewise.model import Model
from edgewise.types import DType, TensorType

WITH_SAMPLES = [name for name in OPS if any(True for _ in OPS[name].samples())]
# ONNX has no operator for them, or only one that means something else.
REFUSED = {
    *("activation_grad", "linear_input_grad", "linear_weight_grad"),
    *("conv_input_grad", "conv_weight_grad"),
    *("depthwise_input_grad", "depthwise_weight_grad"),
    *("max_pool_grad", "average_pool_grad", "batch_statistics"),
    *("batch_norm_train", "batch_norm_train_grad", "sgd_update", "adam_update"),
    *("gru_grad", "lstm_grad", "rnn_grad", "resize_grad", "cumprod_grad", "det_grad"),
    # Plans and steps of training alone have them.
    *("bottleneck", "after", "straight_through"),
    # Models have them over weights, which are written widened.
    *("pack_narrow", "pack_halves", "widen_panels", "narrow_linear", "narrow_conv"),
    *("cumprod", "bit_cast", "permute", "trees", "look_up", "one_of", "count_ngrams"),
    *("random_uniform", "random_normal"),
    "pack_quads",
    # Of stored weights alone.
    *("bit_linear", "bit_conv", "sign_bits"),
    *("byte_linear", "byte_conv", "byte_depthwise_conv"),
}
LARGE = 1e6  # beyond that engines differ in what they still compute exactly
LOOSE, CLOSE = 2e-2, 1e-3
# Between pairs of operators each number is rounded twice before it becomes a byte: what
# lies on the edge between two may fall to either.  Scales of samples put many there.
STEPS, TIES = {"byte_add", "byte_mul", "byte_mean", "byte_average_pool"}, 0.05
# Forms that onnxruntime 1.32 computes otherwise than ONNX says.
OTHERWISE: dict[str, Any] = {
    # It saturates nothing beyond an element type.
    "cast": lambda op, x: op.to in ("i8", "u8", "i16", "u16", "i32", "u32", "u64"),
    "lstm": lambda op, *_: op.clip,
    "gru": lambda op, *_: "softplus" in op.activations,
    "dft": lambda op, *_: op.inverse and op.onesided,
    "affine_grid": lambda op, *_: len(op.sizes) == 3,
    # It saturates sums of two products at 16 bits.
    "matmul_integer": lambda _op, a, *_: a.dtype == np.uint8,
    # It cuts whole numbers, not rounds them, and rounds what lies between corners.
    "resize": lambda op, x, *more: (
        x.dtype.kind in "iu" or (bool(more) and op.positions == "align_corners")
    ),
    # It makes an operator of its own of the three, which has no dilations.
    "byte_average_pool": lambda op, *_: max(op.dilations) > 1,
    "pow": lambda _op, a, b: a.dtype.kind in "iu",
    "string_split": lambda op, *_: op.limit < 0,
    "non_zero": lambda _op, x: not x.ndim,
}


def comparable(sample: Sample) -> bool:
    """Whether engines agree on what it means: finite, not empty, no undefined sums."""
    arrays = [np.asarray(a) for a in sample.inputs if a is not None]
    for array in arrays:
        if not array.size:
            return False
        if array.dtype.kind in "fiu":
            size = np.abs(array.astype(np.float64))
            if not np.isfinite(size).all() or size.max() > LARGE:
                return False
    if sample.op.name in ("div", "mod") and arrays[1].dtype.kind in "iu":
        return bool((arrays[1] > 0).all())
    differs = OTHERWISE.get(sample.op.name)
    return not (differs and differs(sample.op, *arrays))


def model_of(sample: Sample) -> Model:
    """The op alone as a model with inputs x0, x1, … and outputs y0, y1, …."""
    inputs = [
        None
        if a is None
        else input_value(f"x{i}", TensorType(DType.of(np.asarray(a).dtype), a.shape))
        for i, a in enumerate(sample.inputs)
    ]
    made = sample.op.node(*inputs)
    given = tuple(value for value in inputs if value is not None)
    names = tuple(f"y{i}" for i in range(len(made)))
    return Model(Module({"infer": Graph(given, made, names)}, {}))


def run(model: onnx.ModelProto, inputs: tuple[Array | None, ...]) -> list[Any]:
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {f"x{i}": np.asarray(a) for i, a in enumerate(inputs) if a is not None}
    return list(session.run(None, feeds))


def close(op: Op, got: Array, want: Array) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if op.name in STEPS:
        gap = np.abs(got.astype(np.int32) - want.astype(np.int32))
        assert gap.max() <= 1, str(op)
        assert gap.sum() <= max(1.0, TIES * gap.size), str(op)
        return
    if want.dtype.kind not in "fV":
        np.testing.assert_array_equal(got, want, err_msg=str(op))
        return
    gap = CLOSE if want.dtype.itemsize > 2 else LOOSE
    got, want = got.astype(np.float64), want.astype(np.float64)
    scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    np.testing.assert_allclose(got, want, gap, gap * scale, err_msg=str(op))


@pytest.mark.parametrize("name", sorted({*WITH_SAMPLES} - REFUSED))
def test_an_op_means_the_same_in_another_engine(name: str) -> None:
    compared = 0
    for sample in OPS[name].samples():
        if not comparable(sample):
            continue
        try:
            found = run(to_onnx(model_of(sample)), sample.inputs)
        except (UnsupportedOpError, Fail, Missing):
            continue  # forms that ONNX or that engine lacks
        types = tuple(
            None if a is None else TensorType(DType.of(np.asarray(a).dtype), a.shape)
            for a in sample.inputs
        )
        made = sample.op.infer_all(types)
        for got, want in zip(
            found, outputs(sample.op, sample.inputs, made), strict=True
        ):
            close(sample.op, np.asarray(got), np.asarray(want))
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_onnx_lacks_is_refused_by_name(name: str) -> None:
    cls = OPS[name]
    sample = next(iter(cls.samples()))
    wanted = "".join(part.capitalize() for part in name.split("_"))
    with pytest.raises(UnsupportedOpError, match=wanted):
        to_onnx(model_of(sample))


def test_every_op_is_written_or_refused() -> None:
    leaves = {"input", "variable", "constant"}
    known = {cls.name for cls in RULES} | REFUSED | leaves
    ours = {name for name in OPS if OPS[name].__module__.startswith("edgewise.")}
    assert ours - known == set()
