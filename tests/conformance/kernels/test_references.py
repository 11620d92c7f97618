"""Every native kernel against the reference of its op, over all samples."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import edgewise.ops
from edgewise.errors import KernelError
from edgewise.ir.op import OPS, Array, Sample
from edgewise.kernels.catalog.base import KERNELS, load_all

load_all()
assert edgewise.ops

ULP = 2.0**-23
DENORMAL = 2.0**-149
# Sums of products: a bound that grows with their length would need each op's own; these
# hold for the lengths of samples, relative to the largest result.
SUMS = 1e-5
SUM_OPS = {
    "linear", "matmul", "conv", "depthwise_conv", "gru", "lstm", "rnn", "softmax",
    "log_softmax", "layer_norm", "rms_norm", "batch_norm", "batch_norm_fold",
    "scale_shift", "instance_norm", "group_norm", "lrn", "cumsum", "average_pool",
    "dequantize", "batch_statistics", "batch_norm_train", "attention",
    "sgd_update", "adam_update", "bottleneck", "narrow_linear", "narrow_conv",
}  # fmt: skip
# Differences of near numbers: errors relative to the input.
CANCELS = {"gelu": 3e-7, "hard_sigmoid": 3e-7, "hard_swish": 3e-7}
MEASURES = {"peak_f32"}  # of the processor: serves no op
OPS_UNDER_TEST = sorted(KERNELS)


def tolerance(name: str, inputs: tuple[Array | None, ...], want: Array) -> Array:
    """How far a kernel may be from ``want``, by element."""
    size = np.abs(np.where(np.isfinite(want), want, 0).astype(np.float64))
    bound = 4 * ULP * size + 4 * DENORMAL
    if name in SUM_OPS or name.startswith("reduce_") or name.endswith("_grad"):
        bound = bound + SUMS * max(float(size.max(initial=0)), 1e-3)
    if name in CANCELS:
        x = inputs[0]
        assert x is not None
        bound = bound + CANCELS[name] * np.abs(x)
    return bound


def check(sample: Sample, got: list[Array], want: tuple[Array, ...]) -> None:
    assert len(got) == len(want)
    for mine, theirs in zip(got, want, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        if theirs.dtype.kind != "f":
            np.testing.assert_array_equal(mine, theirs, err_msg=repr(sample.op))
            continue
        with np.errstate(all="ignore"):
            bound = tolerance(sample.op.name, sample.inputs, theirs)
            near = np.abs(mine.astype(np.float64) - theirs) <= bound
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        bad = ~(near | same)
        assert not bad.any(), (
            f"{sample.op} at {np.argwhere(bad)[:3].tolist()}: "
            f"{mine[bad][:5]} instead of {theirs[bad][:5]}"
        )


def reference(sample: Sample) -> tuple[Array, ...] | int:
    try:
        result = sample.op.reference(*sample.inputs)
    except KernelError as error:
        return error.status
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", OPS_UNDER_TEST)
def test_kernels_give_what_the_reference_gives(kernels: Any, name: str) -> None:
    ran = 0
    for sample in OPS[name].samples():
        whole = kernels.whole(sample.op, sample.inputs)
        if whole is None:
            continue
        ran += 1
        want = reference(sample)
        if isinstance(want, int):
            assert whole == want, sample.op
            continue
        assert not isinstance(whole, int), f"{sample.op}: status {whole}"
        check(sample, whole, want)
        pieces = kernels.pieces(sample.op, sample.inputs)
        for a, b in zip(whole, pieces, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{sample.op} in pieces")
    assert ran, f"no sample of {name} has a kernel"


BYTES_OF_FLOATS = {"isnan", "isinf"}  # never as many bytes out as in
IN_PLACE = [
    name for name in OPS_UNDER_TEST if OPS[name].in_place if name not in BYTES_OF_FLOATS
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_output_may_take_the_memory_of_an_input(kernels: Any, name: str) -> None:
    ran = 0
    for sample in OPS[name].samples():
        whole = kernels.whole(sample.op, sample.inputs)
        if not isinstance(whole, list):
            continue
        slots = (s for s in sample.op.in_place if s < len(sample.inputs))
        for slot in slots:
            x = sample.inputs[slot]
            if x is None or x.nbytes != whole[0].nbytes or not x.size:
                continue
            if x.itemsize != whole[0].itemsize or x.size != whole[0].size:
                continue
            ran += 1
            got, *_ = kernels.in_place(sample.op, sample.inputs, slot)
            np.testing.assert_array_equal(got, whole[0], err_msg=repr(sample.op))
    assert ran, f"no sample of {name} fits"


def test_no_kernel_falls_out_of_the_catalogue_or_the_library() -> None:
    named = {
        symbol for entries in KERNELS.values() for e in entries for symbol in e.symbols
    }
    assert named == exported()


def exported() -> set[str]:
    pytest.importorskip("numba", reason="the sources of kernels are Numba code")
    package = "edgewise.kernels.native"
    build = importlib.import_module(f"{package}.build")
    modules = (
        importlib.import_module(f"{package}.{name}") for name in build.kernel_modules()
    )
    symbols = {symbol for module in modules for symbol in module.EXPORTS}
    return {symbol for symbol in symbols if not symbol.startswith("ew_")} - MEASURES


ASK = """
import sys
from edgewise.kernels.catalog.base import COMPLETE, KERNELS, entries
from edgewise.ops import OPS
for name in sys.argv[1:]:
    KERNELS.clear()
    COMPLETE.clear()
    for module in [m for m in sys.modules if m.startswith("edgewise.kernels.catalog.")]:
        if not module.endswith((".base", ".calls", ".strides", ".epilogue")):
            del sys.modules[module]
    print(name, len(entries(OPS[name])))
"""


def test_a_plan_finds_all_kernels_of_an_op_when_it_first_has_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, *OPS_UNDER_TEST],
        check=True,
        capture_output=True,
        text=True,
    )
    found = dict(line.split() for line in done.stdout.splitlines())
    assert found == {name: str(len(KERNELS[name])) for name in OPS_UNDER_TEST}
