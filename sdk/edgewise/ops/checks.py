"""What ops share when they infer: broadcasting, sizes that fit, element types."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from edgewise.dims import Dim, Expr, Shape, maximum
from edgewise.errors import (
    INDEX_OUT_OF_RANGE,
    DTypeError,
    InternalError,
    KernelError,
    ShapeError,
)
from edgewise.ir.op import Array, Op
from edgewise.types import DType, TensorType

FLOATS = frozenset(dtype for dtype in DType if dtype.is_float)
INTEGERS = frozenset(dtype for dtype in DType if dtype.is_integer)
NUMBERS = FLOATS | INTEGERS
BOOLS = frozenset({DType.BOOL})
INDICES = frozenset({DType.I64, DType.I32})
STRINGS = frozenset({DType.STRING})


def want(op: Op, types: Iterable[TensorType | None], allowed: frozenset[DType]) -> None:
    """Raise ``DTypeError`` unless the elements of every given type are ``allowed``."""
    for type_ in types:
        if type_ is not None and type_.dtype not in allowed:
            names = ", ".join(sorted(dtype.value for dtype in allowed))
            raise DTypeError(f"{op.name}: got {type_}; want elements of {names}")


def same_dtype(op: Op, *types: TensorType | None) -> None:
    """Raise ``DTypeError`` unless all given types have equal elements."""
    given = [type_ for type_ in types if type_ is not None]
    if any(type_.dtype is not given[0].dtype for type_ in given):
        got = ", ".join(map(str, given))
        raise DTypeError(f"{op.name}: got ({got}); want equal element types")


def may_equal(a: Dim, b: Dim) -> bool:
    """Whether the sizes are equal or one of them is known only at run time."""
    return a == b or isinstance(a, Expr) or isinstance(b, Expr)


def fits(given: Shape, wanted: Shape) -> bool:
    """Whether two shapes may be the same."""
    return len(given) == len(wanted) and all(map(may_equal, given, wanted))


def want_shape(op: Op, what: str, given: TensorType | None, *wanted: Dim) -> None:
    """Raise ``ShapeError`` unless ``given`` is absent or may have the wanted shape."""
    if given is not None and not fits(given.shape, wanted):
        shape = ", ".join(map(str, wanted))
        raise ShapeError(f"{op.name}: got {what} {given}; want the shape [{shape}]")


def want_axis(op: Op, axis: int, rank: int) -> None:
    """Raise ``ShapeError`` unless ``axis`` counts an axis from the front."""
    if not 0 <= axis < rank:
        raise ShapeError(f"{op.name}: got axis {axis}; want 0 to {rank - 1}")


def _common(a: Dim, b: Dim) -> Dim | None:
    if b in (a, 1):
        return a
    if a == 1:
        return b
    if isinstance(a, int):
        return a if isinstance(b, Expr) else None
    return b if isinstance(b, int) else maximum(a, b)


def broadcast(op: Op, *shapes: Shape) -> Shape:
    """The numpy shape of ``shapes`` together.

    An unknown size against a known one other than 1 takes the known one; two unknown
    sizes give the larger, which is right whether they are equal or one of them is 1.
    """
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result:
            continue
        rank = max(len(result), len(shape))
        a = (1,) * (rank - len(result)) + result
        b = (1,) * (rank - len(shape)) + shape
        merged = tuple(map(_common, a, b))
        if None in merged:
            raise op.refuse(tuple(map(list, shapes)), "shapes that broadcast")
        result = tuple(dim for dim in merged if dim is not None)
    return result


def want_broadcast(op: Op, what: str, given: TensorType | None, shape: Shape) -> None:
    """Raise ``ShapeError`` unless ``given`` is absent or broadcasts to ``shape``."""
    if given is None:
        return
    tail = shape[len(shape) - len(given.shape) :]
    if len(given.shape) > len(shape) or not all(
        a == 1 or may_equal(a, b) for a, b in zip(given.shape, tail, strict=True)
    ):
        raise op.refuse((f"{what} {given}",), f"what broadcasts to {list(shape)}")


def integers(op: Op, dims: Iterable[Dim]) -> tuple[int, ...]:
    """The dims as plain integers, for a reference that runs."""
    sizes = tuple(dims)
    if any(isinstance(dim, Expr) for dim in sizes):
        raise InternalError(f"{op} runs with sizes that are not bound yet")
    return tuple(int(dim) for dim in sizes)  # type: ignore[arg-type]  # checked above


def wide(x: Array) -> Array:
    """Floats in double precision; anything else as it is."""
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


def resolved(op: Op, indices: Array, size: int) -> Array:
    """The indices counted from the front; one out of range stops the run."""
    if np.any((indices < -size) | (indices >= size)):
        raise stopped(op, INDEX_OUT_OF_RANGE)
    return np.asarray(np.where(indices < 0, indices + size, indices), np.int64)


def want_room(op: Op, needed: int, limit: int) -> None:
    """Raise ``ShapeError`` where what an op would make takes more than ``limit``."""
    if needed > limit:
        raise ShapeError(
            f"{op.name}: its results take {needed} bytes; want at most {limit}, the"
            " session's memory_limit"
        )


def stopped(op: Op, status: int) -> KernelError:
    """The error of a run that meets values its op is not defined for."""
    return KernelError(op.name, "", status)
