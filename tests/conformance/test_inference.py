"""What inference makes of unknown sizes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.dims import maximum, symbol
from edgewise.errors import DTypeError, InternalError, ShapeError
from edgewise.ir.graph import input_value
from edgewise.ir.op import OPS, Op
from edgewise.ops import (
    Add,
    Arange,
    Conv,
    Expand,
    Linear,
    MaxPool,
    Pad,
    Reshape,
    Slice,
    Softmax,
    TopK,
)
from edgewise.types import DType, TensorType

N, M = symbol("N"), symbol("M")
NAN, INF = np.nan, np.inf


def f32(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.asarray(values, np.float32)


def type_of(*shape: object, dtype: DType = DType.F32) -> TensorType:
    return TensorType(dtype, shape)  # type: ignore[arg-type]  # ints and symbols


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ((N, 3), (3,), (N, 3)),
        ((N, 1), (1, M), (N, M)),
        ((N,), (4,), (4,)),
        ((1,), (N,), (N,)),
        ((N,), (0,), (0,)),
        ((N,), (M,), (maximum(N, M),)),
        ((), (N, 2), (N, 2)),
        ((2 * N,), (N + N,), (2 * N,)),
    ],
)
def test_broadcasting_of_unknown_sizes(
    a: tuple[object, ...], b: tuple[object, ...], want: tuple[object, ...]
) -> None:
    assert Add().infer(type_of(*a), type_of(*b)).shape == want
    assert Add().infer(type_of(*b), type_of(*a)).shape == want


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (Add(), ((3,), (4,))),
        (OPS["matmul"](), ((2, 3), (4, 5))),
        (OPS["matmul"](), ((3,), (3, 5))),
        (Linear(5), ((2, 3), (1, 4, 16))),
        (Linear(17), ((2, 3), (1, 3, 16))),
        (Linear(5), ((2, 3), (1, 3, 16), (6,))),
        (Linear(5), ((2, 3), (1, 3, 16), None, None, (3, 5))),
        (Conv(5, (3, 3)), ((1, 2, 5, 3), (1, 27, 16))),
        (Conv(5, (3, 3), groups=2), ((1, 5, 5, 4), (2, 18, 16))),
        (Conv(5, (3, 3), pads=(-1, 0, 0, 0)), ((1, 5, 5, 3), (1, 27, 16))),
        (Conv(5, (3, 3), strides=(0, 1)), ((1, 5, 5, 3), (1, 27, 16))),
        (MaxPool((3,)), ((1, 5, 5, 3),)),
        (Reshape((4,)), ((3,),)),
        (Slice((2,), (3,), (1,)), ((4,),)),
        (Slice((0,), (2,), (-1,)), ((4,),)),
        (Pad((-3, 0)), ((2,),)),
        (Pad((1, 0), "reflect"), ((0,),)),
        (Expand((4,)), ((3,),)),
        (Softmax(-1), ((3,),)),
        (TopK(4, 0), ((3,),)),
        (OPS["argmax"](0), ((0,),)),
        (OPS["concat"](0), ((2, 3), (2, 4))),
        (OPS["concat"](0), ()),
        (OPS["transpose"]((0, 0)), ((2, 3),)),
        (OPS["gather_elements"](0), ((2, 3), (2, 4))),
        (OPS["reduce_sum"]((0, 0)), ((2, 3),)),
        (OPS["gru"](5), ((4, 2, 3), (1, 4, 16), (1, 5, 16))),
        (OPS["gru"](5, "sideways"), ((4, 2, 3), (1, 3, 16), (1, 5, 16))),
        (Arange(0, -1), ()),
    ],
)
def test_shapes_that_do_not_fit_name_the_op(
    op: Op, shapes: tuple[tuple[int, ...] | None, ...]
) -> None:
    last_is_index = op.name == "gather_elements"
    types = [None if s is None else type_of(*s) for s in shapes]
    if last_is_index and types[-1] is not None:
        types[-1] = types[-1].with_dtype(DType.I64)
    with pytest.raises(ShapeError, match=f"^{op.name}: "):
        op.infer_all(tuple(types))


def test_mixed_element_types_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"^add: .*equal element types"):
        Add().infer(type_of(3), type_of(3, dtype=DType.F64))
    with pytest.raises(DTypeError, match=r"^relu: "):
        OPS["relu"]()(input_value("x", type_of(3, dtype=DType.BOOL)))


def test_a_reference_with_open_sizes_is_our_bug() -> None:
    with pytest.raises(InternalError, match="not bound"):
        Reshape((N,)).reference(f32(1))


def test_convolution_sizes_are_symbolic() -> None:
    op = Conv(5, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    result = op.infer(type_of(1, N, 2 * N, 3), type_of(1, 27, 16))
    assert result.bind({"N": 7}).dims == (1, 4, 7, 5)
