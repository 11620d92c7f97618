"""Kernels at their limits: many tasks, foreign indices, division by zero, digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from edgewise import errors
from edgewise.ir.op import OPS, Array, Op
from edgewise.kernels.catalog.base import KERNELS, load_all

RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def op(name: str, *values: object) -> Op:
    return OPS[name](*values)  # type: ignore[arg-type]


MANY_TASKS = [
    (op("add"), (floats(3, 97, 701), floats(701)), 0),
    (op("sub"), (floats(5000), floats(3, 1)), 0),
    (op("mul"), (floats(50, 1, 70), floats(1, 40, 1)), 0),
    (op("less"), (floats(9001), floats(9001)), 0),
    (op("where"), (floats(70, 300) > 0, floats(300), floats(70, 1)), 0),
    (op("relu"), (floats(4096 * 3 + 5),), 0),
    (op("cast", "i8"), (9 * floats(30000),), 0),
    (op("transpose", (1, 0)), (floats(301, 517),), 0),
    (op("transpose", (2, 0, 3, 1)), (floats(3, 35, 33, 37),), 0),
    (op("transpose", (0, 2, 1)), (floats(40, 3, 700),), 0),
    (op("concat", 1), (floats(90, 100), floats(90, 3)), 0),
    (op("slice", (299, 1), (150, 45), (-2, 2)), (floats(300, 100),), 0),
    (op("expand", (60, 100, 5)), (floats(60, 1, 5),), 0),
    (op("pad", (1, 2, 3, 4), "constant", 2.5), (floats(80, 90),), 0),
    (op("pad", (9, 9, 9, 9), "reflect"), (floats(80, 90),), 0),
    (op("gather", 1), (floats(9, 50, 30), RANDOM.integers(-50, 50, (8, 7))), 0),
    (op("softmax", 1), (floats(70, 333),), 1e-6),
    (op("softmax", 1), (floats(5, 70, 33),), 1e-6),
    (op("layer_norm", 1), (floats(70, 333), floats(333), floats(333)), 1e-5),
    (op("group_norm", 4), (floats(3, 33, 33, 36), floats(36), floats(36)), 1e-5),
    (op("scale_shift", 1), (floats(20, 9, 333), floats(9), None), 0),
    (op("max_pool", (3, 3), (2, 2), (1, 1, 1, 1)), (floats(2, 55, 57, 35),), 0),
    (op("average_pool", (3, 3)), (floats(1, 55, 57, 35),), 1e-6),
    (op("reduce_mean", (1, 2)), (floats(2, 60, 60, 35),), 1e-6),
    (op("reduce_sum", (0, 2)), (floats(60, 35, 60),), 1e-4),
    (op("argmax", 1), (floats(70, 333),), 0),
    (op("top_k", 9, 1), (floats(70, 333),), 0),
    (op("cumsum", 1), (floats(70, 333),), 1e-5),
]


@pytest.mark.parametrize(
    ("kernel", "inputs", "bound"), MANY_TASKS, ids=[repr(c[0]) for c in MANY_TASKS]
)
def test_many_tasks_in_any_order_give_the_reference(
    kernels: Any, kernel: Op, inputs: tuple[Array, ...], bound: float
) -> None:
    whole = kernels.whole(kernel, inputs)
    pieces = kernels.pieces(kernel, inputs)
    assert isinstance(whole, list)
    assert isinstance(pieces, list)
    want = kernel.reference(*inputs)
    for a, b, c in zip(
        whole, pieces, want if isinstance(want, tuple) else (want,), strict=True
    ):
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, c, rtol=2e-7, atol=bound)
        else:
            np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("shape", [(70001,), (3, 70001), (70001, 3), (40000, 20)])
@pytest.mark.parametrize("name", ["sum", "max", "l2", "l1"])
def test_a_long_reduction_is_cut_and_stays_exact(
    kernels: Any, name: str, shape: tuple[int, ...]
) -> None:
    x = (1 + floats(*shape) * 1e-6).astype(np.float32)
    kernel = op(f"reduce_{name}", (max(range(len(shape)), key=shape.__getitem__),))
    (got,) = kernels.whole(kernel, (x,))
    # A plain sum of so many ones would be off by a thousandth.
    np.testing.assert_allclose(got, kernel.reference(x), rtol=2e-6)


@pytest.mark.parametrize("name", ["max", "min", "sum"])
@pytest.mark.parametrize("place", [0, 15, 16, 63, 64, 1023, 1024, 70000])
def test_a_reduction_of_any_length_keeps_nan(
    kernels: Any, name: str, place: int
) -> None:
    x = floats(70001)
    x[place] = np.nan
    (got,) = kernels.whole(op(f"reduce_{name}", (0,)), (x,))
    assert np.isnan(got).all()


BEYOND = np.iinfo(np.int64)
BAD_INDEX = [3, -4, BEYOND.max, BEYOND.min]


@pytest.mark.parametrize("index", BAD_INDEX)
@pytest.mark.parametrize(
    "make",
    [
        lambda i: (op("gather", 0), (floats(3, 5), np.asarray([0, i]))),
        lambda i: (op("gather_elements", 0), (floats(3), np.asarray([0, i]))),
        lambda i: (op("gather_nd"), (floats(3, 5), np.asarray([[0, 1], [i, 0]]))),
        lambda i: (
            op("scatter_elements"),
            (floats(3), np.asarray([0, i]), floats(2)),
        ),
        lambda i: (
            op("scatter_nd"),
            (floats(3, 5), np.asarray([[0], [i]]), floats(2, 5)),
        ),
    ],
)
def test_an_index_out_of_range_is_a_status(
    kernels: Any, make: Callable[[int], Any], index: int
) -> None:
    kernel, inputs = make(index)
    assert kernels.whole(kernel, inputs) == errors.INDEX_OUT_OF_RANGE


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
@pytest.mark.parametrize("name", ["div", "mod"])
def test_an_integer_by_zero_is_a_status(kernels: Any, name: str, dtype: str) -> None:
    a, b = np.asarray([1, 2], dtype), np.asarray([1, 0], dtype)
    assert kernels.whole(op(name), (a, b)) == errors.DIVISION_BY_ZERO


# Largest errors in units in the last place; rare functions compute in float64.
ULPS = {
    "exp": 1.2, "log": 2, "erf": 3, "tanh": 3, "sigmoid": 3, "silu": 4, "mish": 4,
    "softplus": 3, "elu": 3, "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1,
    "atan": 1, "sinh": 1, "cosh": 1, "asinh": 1, "acosh": 1, "atanh": 1, "sqrt": 0.5,
    "reciprocal": 0.5,
}  # fmt: skip
# Their formulas are 0 times infinity there; kernels give the limit.
UNDEFINED_BELOW = {"silu", "mish"}
LARGE_ANGLE = {"sin": math.sin, "cos": math.cos, "tan": math.tan}


def spread_floats() -> Array:
    """Floats of every exponent, and many about one."""
    bits = RANDOM.integers(0, 2**32, 40000, dtype=np.uint32).view(np.float32)
    edges = np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38])
    return np.concatenate([bits, 3 * floats(40000), edges.astype(np.float32)])


@pytest.mark.parametrize("name", sorted(ULPS))
def test_a_function_is_within_its_bound_over_all_floats(
    kernels: Any, name: str
) -> None:
    x = spread_floats()
    if name in UNDEFINED_BELOW:
        x = x[x != -np.inf]
    kernel = op(name)
    with np.errstate(all="ignore"):
        want = exact(kernel, name, x.astype(np.float64))
        (got,) = kernels.whole(kernel, (x,))
        rounded = want.astype(np.float32)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - want) / unit
        exact_ = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        # The largest float and infinity are neighbours.
        edge = ~np.isfinite(rounded) & (np.abs(got) > 3.4e38)
    bad = ~(exact_ | edge | (error <= ULPS[name]))
    assert not bad.any(), (x[bad][:4], got[bad][:4], rounded[bad][:4])


def test_gelu_is_within_its_bound_over_all_floats(kernels: Any) -> None:
    x = spread_floats()
    x = x[np.isfinite(x)]
    (got,) = kernels.whole(op("gelu", False), (x,))
    wide = x.astype(np.float64)
    want = wide * special.ndtr(wide)
    assert (np.abs(got - want) <= 2.1e-7 * np.abs(wide) + 1e-45).all()
    assert (got[x < -6] == 0).all()
    np.testing.assert_array_equal(got[x > 6], x[x > 6])


def exact(kernel: Op, name: str, x: Array) -> Array:
    if name in LARGE_ANGLE:
        function = LARGE_ANGLE[name]
        values = [function(v) if math.isfinite(v) else math.nan for v in x.tolist()]
        return np.asarray(values)
    return np.asarray(kernel.reference(x))


# Rare, or no work beside what follows: these run by their references.
BY_REFERENCE = """
after affine_grid bit_cast conv_integer count_ngrams cumprod deform_conv det dft
fold_columns format_number grid_sample look_up matmul_integer max_pool_places
max_roi_pool mel_weights non_max_suppression non_zero one_of pack_halves pack_narrow
pack_quads
permute parse_number
random_normal random_uniform resize_grad cumprod_grad det_grad
read_dims regex_full_match requantize resize roi_align straight_through string_concat
string_normalize string_split trees unique
"""


def test_ops_without_any_kernel_are_known() -> None:
    """A new op without a kernel runs as slow as its reference: that is a decision."""
    load_all()
    leaves = {"input", "variable", "constant"}
    ours = {
        name: op for name, op in OPS.items() if op.__module__.startswith("edgewise")
    }
    missing = {name for name, op in ours.items() if name not in KERNELS} - {
        name for name, op in ours.items() if op.objects
    }
    assert missing - leaves == {*BY_REFERENCE.split()}
