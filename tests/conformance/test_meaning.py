"""What references do with values that are easy to get wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgewise.dims import symbol
from edgewise.errors import DTypeError, InternalError, KernelError
from edgewise.ir.op import OPS, Op
from edgewise.ops import (
    AveragePool,
    Cast,
    Clip,
    Div,
    Erf,
    Gather,
    Gelu,
    LayerNorm,
    Linear,
    LogSoftmax,
    MaxPool,
    Mod,
    OneHot,
    Pad,
    Pow,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    Round,
    Softmax,
    Softplus,
    TopK,
)
from edgewise.ops.epilogue import NAMES, Activation, activate, code
from edgewise.types import DType, TensorType

N, M = symbol("N"), symbol("M")
NAN, INF = np.nan, np.inf


def f32(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.asarray(values, np.float32)


def type_of(*shape: object, dtype: DType = DType.F32) -> TensorType:
    return TensorType(dtype, shape)  # type: ignore[arg-type]  # ints and symbols


PROPAGATES = [
    "relu",
    "sigmoid",
    "tanh",
    "clip",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "softplus",
    "softsign",
    "mish",
    "silu",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "neg",
    "abs",
    "sqrt",
    "exp",
    "log",
    "sign",
    "floor",
    "round",
]


@pytest.mark.parametrize("name", PROPAGATES)
def test_nan_goes_through(name: str) -> None:
    result = OPS[name]().reference(f32(NAN, 0.5))
    assert isinstance(result, np.ndarray)
    assert np.isnan(result[0])
    assert not np.isnan(result[1])


def test_nan_is_above_no_threshold() -> None:
    result = OPS["thresholded_relu"]().reference(f32(NAN, 2))
    np.testing.assert_array_equal(result, f32(0, 2))


@pytest.mark.parametrize("name", ["minimum", "maximum", "add", "mul"])
def test_nan_on_either_side_wins(name: str) -> None:
    op = OPS[name]()
    assert np.isnan(op.reference(f32(NAN, 1), f32(1, NAN))).all()


def test_comparisons_with_nan_are_false() -> None:
    x = f32(NAN)
    for name in ("equal", "less", "less_equal", "greater", "greater_equal"):
        assert not OPS[name]().reference(x, x)


def test_a_half_is_rounded_to_the_even_number() -> None:
    result = Round().reference(f32(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5))
    np.testing.assert_array_equal(result, [-2, -2, -0.0, 0, 2, 2])
    assert np.signbit(result[2])


def test_integer_division_truncates_and_never_traps() -> None:
    low = np.iinfo(np.int32).min
    a = np.asarray([7, -7, 7, -7, low, low], "i4")
    b = np.asarray([2, 2, -2, -2, -1, 1], "i4")
    np.testing.assert_array_equal(Div().reference(a, b), [3, -3, -3, 3, low, low])
    np.testing.assert_array_equal(Mod().reference(a, b), [1, 1, -1, -1, 0, 0])
    np.testing.assert_array_equal(Mod(fmod=True).reference(a, b)[:4], [1, -1, 1, -1])


@pytest.mark.parametrize("op", [Div(), Mod(), Mod(fmod=True)])
def test_integers_by_zero_stop_the_run(op: Op) -> None:
    with pytest.raises(KernelError, match="division by zero"):
        op.reference(np.asarray([1, 2]), np.asarray([1, 0]))
    assert np.isnan(op.reference(f32(0), f32(0)))


def test_integer_powers_below_zero_are_truncated() -> None:
    a, b = np.asarray([2, -1, -1, 1, 3]), np.asarray([-1, -3, -2, -5, 3])
    np.testing.assert_array_equal(Pow().reference(a, b), [0, -1, 1, 1, 27])
    with pytest.raises(KernelError, match="zero"):
        Pow().reference(np.asarray([0]), np.asarray([-1]))


def test_a_cast_holds_what_does_not_fit() -> None:
    x = f32(-1.9, 1.9, 300, -300, NAN, INF, -INF, 3e38)
    np.testing.assert_array_equal(
        Cast("u8").reference(x), [0, 1, 255, 0, 0, 255, 0, 255]
    )
    top = np.iinfo(np.int64)
    np.testing.assert_array_equal(
        Cast("i64").reference(x),
        [-1, 1, 300, -300, 0, top.max, top.min, top.max],
    )
    np.testing.assert_array_equal(Cast("bool").reference(f32(0, -0.0, 0.1, NAN)),
                                  [False, False, True, True])  # fmt: skip
    np.testing.assert_array_equal(Cast("i8").reference(np.asarray([300, -1])), [44, -1])


def test_a_cast_to_nothing_known_is_refused() -> None:
    with pytest.raises(DTypeError, match="f31"):
        Cast("f31").infer(type_of(3))


def test_clip_of_integers_stays_inside_the_bounds() -> None:
    x = np.arange(-3, 4, dtype=np.int32)
    np.testing.assert_array_equal(
        Clip(-1.5, 2.5).reference(x), [-1, -1, -1, 0, 1, 2, 2]
    )
    np.testing.assert_array_equal(Clip().reference(x), x)


def test_softmax_and_its_kin_stay_finite_far_from_zero() -> None:
    x = f32(1e30, 1e30, -1e30)
    np.testing.assert_allclose(Softmax(0).reference(x), [0.5, 0.5, 0])
    assert LogSoftmax(0).reference(f32(1000, 0))[1] == -1000
    assert Softplus().reference(f32(1000))[0] == 1000
    assert Softplus().reference(f32(-50))[0] == pytest.approx(math.exp(-50))
    assert ReduceLogSumExp((0,)).reference(f32(1000, 1000))[0] == pytest.approx(
        1000 + math.log(2)
    )
    assert ReduceLogSumExp((0,)).reference(f32(-INF, -INF))[0] == -INF
    assert ReduceLogSumExp((0,)).reference(f32(INF, 1))[0] == INF


def test_layer_norm_keeps_its_accuracy_far_from_zero() -> None:
    x = np.random.default_rng(0).standard_normal(64).astype("f4")
    far = x + np.float32(4096)
    got = LayerNorm(0).reference(far)
    exact = far.astype("f8") - far.astype("f8").mean()
    exact /= np.sqrt((exact**2).mean() + 1e-5)
    np.testing.assert_allclose(got, exact, atol=1e-6)


def test_erf_and_gelu_are_exact_in_both_tails() -> None:
    x = f32(-5, -0.3, 0, 1e-20, 2)
    want = [math.erf(float(v)) for v in x]
    np.testing.assert_allclose(Erf().reference(x), want, rtol=1e-7)
    want = [0.5 * float(v) * math.erfc(-float(v) / math.sqrt(2)) for v in x]
    np.testing.assert_allclose(Gelu().reference(x), want, rtol=1e-6, atol=1e-12)


def test_padding_never_wins_a_pool_and_nan_does() -> None:
    x = np.full((1, 2, 2, 1), -5, "f4")
    op = MaxPool((3, 3), pads=(1, 1, 1, 1))
    np.testing.assert_array_equal(op.reference(x), x)
    assert MaxPool((3, 3), pads=(1, 1, 1, 1)).reference(x.astype("i1")).max() == -5
    x[0, 0, 0, 0] = NAN
    assert np.isnan(op.reference(x)).all()
    counted = AveragePool((3, 3), pads=(1, 1, 1, 1), count_include_pad=True)
    x[...] = 9
    np.testing.assert_allclose(counted.reference(x), np.full_like(x, 4))


def test_reductions_of_nothing_have_their_neutral_element() -> None:
    empty = np.zeros((2, 0), "f4")
    assert (ReduceMax((1,)).reference(empty) == -INF).all()
    assert (ReduceMin((1,)).reference(empty) == INF).all()
    assert np.isnan(ReduceMean((1,)).reference(empty)).all()
    low = np.iinfo(np.int32).min
    assert (ReduceMax((1,)).reference(empty.astype("i4")) == low).all()


def test_sums_do_not_lose_small_terms() -> None:
    x = np.full(100_001, 0.1, "f4")
    x[0] = 1e6
    total = OPS["reduce_sum"]((0,)).reference(x)
    assert isinstance(total, np.ndarray)
    assert total[0] == np.float32(x.astype("f8").sum())


def test_equal_elements_keep_their_order_in_top_k() -> None:
    _, indices = TopK(3, 0).reference(f32(1, 2, 2, 2))
    np.testing.assert_array_equal(indices, [1, 2, 3])
    values, _ = TopK(2, 0).reference(f32(1, NAN, INF))
    assert np.isnan(values[0])
    assert values[1] == INF


@pytest.mark.parametrize("index", [3, -4, 2**40])
def test_an_index_out_of_range_stops_the_run(index: int) -> None:
    with pytest.raises(KernelError, match="out of range"):
        Gather(0).reference(f32(1, 2, 3), np.asarray(index))
    hot = OneHot(3, 0).reference(np.asarray(index), f32(0, 1))
    assert not hot.any()


def test_padding_mirrors_what_cropping_leaves() -> None:
    x = np.arange(5, dtype="f4")
    np.testing.assert_array_equal(
        Pad((-1, 2), "reflect").reference(x), [1, 2, 3, 4, 3, 2]
    )
    np.testing.assert_array_equal(Pad((-1, 2), "wrap").reference(x), [1, 2, 3, 4, 1, 2])
    np.testing.assert_array_equal(Pad((2, 0), "edge").reference(x)[:3], [0, 0, 0])


@pytest.mark.parametrize("name", NAMES)
def test_every_epilogue_activation_is_the_op_of_its_name(name: str) -> None:
    x = np.linspace(-6, 6, 49)
    alpha, beta = (-1.0, 2.0) if name == "clip" else (0.3, 0.4)
    got = activate(name, x, alpha, beta)
    if name == "none":
        want = x
    elif name == "gelu_tanh":
        want = Gelu(approximate=True).reference(x)
    else:
        cls = OPS[name]
        values = (alpha, beta)[: len(cls.fields)] if name != "gelu" else ()
        want = cls(*values).reference(x)
    np.testing.assert_allclose(got, want, rtol=1e-15)
    assert Activation[name.upper()] is code(name)


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(InternalError, match="swoosh"):
        Linear(3, "swoosh").infer(type_of(2, 5), type_of(1, 5, 16))


def test_codes_of_activations_never_change() -> None:
    assert [member.value for member in Activation] == list(range(14))
    assert NAMES[:4] == ("none", "relu", "clip", "leaky_relu")
