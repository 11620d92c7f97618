"""What core ops do to arrays of sizes, symbols among them."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from edgewise import dims
from edgewise.dims import Call, Dim, Expr
from edgewise.ir.op import Array, Op
from edgewise.ops.create import Arange
from edgewise.ops.index import Gather
from edgewise.ops.shape import Concat, Slice
from edgewise.types import DType, TensorType

Rule: TypeAlias = Callable[..., object]
# How symbols begin that a run binds to values it computed: those may be 0, while the
# sizes of what a caller brings are taken to be 1 or more.
RUN_TIME = "run_"
# Of a term of a size; what goes beyond is no size but arithmetic, left to the run.
LARGEST_FACTOR, MOST_FACTORS = 1 << 31, 6
NARROWEST = 4  # bytes that hold any size


class Unknown(Exception):  # noqa: N818 - not an error: a size that only a run knows
    """The result depends on more than what symbols tell."""


def lower_bound(dim: Dim, least: int = 1) -> int | None:
    """A number that ``dim`` is never below, where sizes of inputs are ``least``."""
    if isinstance(dim, int):
        return dim
    for monomial, factor in dim.terms.items():
        if factor < 0 and len(monomial) == 1 and isinstance(monomial[0], Call):
            # What is taken away is at most one of these, so that may be taken away.
            rest = dim - factor * Expr({monomial: 1})
            ceilings = _ceilings(monomial[0], least)
            bounds = [lower_bound(rest + factor * x, least) for x in ceilings]
            return max((x for x in bounds if x is not None), default=None)
    total = 0
    for monomial, factor in dim.terms.items():
        bounds = [_atom_bound(atom, least) for atom in monomial]
        if monomial and (factor < 0 or any(b is None or b < 0 for b in bounds)):
            return None
        total += factor * math.prod(b for b in bounds if b is not None)
    return total


def _ceilings(call: Call, least: int) -> tuple[Dim, ...]:
    """Simpler sizes that ``call`` is never above."""
    a, b = call.args
    if call.function == "min":
        return a, b
    bound = lower_bound(a, least)
    shrinks = isinstance(b, int) and b > 0 and bound is not None and bound >= 0
    return (a,) if call.function == "floordiv" and shrinks else ()


def _atom_bound(atom: str | Call, least: int) -> int | None:
    if isinstance(atom, str):
        return 0 if atom.startswith(RUN_TIME) else least
    a, b = (lower_bound(arg, least) for arg in atom.args)
    match atom.function:
        case "max":
            return max((x for x in (a, b) if x is not None), default=None)
        case "min" if a is not None and b is not None:
            return min(a, b)
        case "floordiv" if a is not None and isinstance(atom.args[1], int):
            return a // atom.args[1] if atom.args[1] > 0 else None
    return None


def at_least(dim: Dim, other: Dim) -> bool:
    """Whether ``dim >= other`` holds whatever the symbols are."""
    bound = lower_bound(dim - other)
    return bound is not None and bound >= 0


def clamp(dim: Dim, low: Dim, high: Dim) -> Dim:
    """``min(max(dim, low), high)``, short where the order is known."""
    if not at_least(dim, low):
        dim = low if at_least(low, dim) else dims.maximum(dim, low)
    if not at_least(high, dim):
        dim = high if at_least(dim, high) else dims.minimum(dim, high)
    return dim


def objects(items: Any) -> Array:
    """An array of dims."""
    return np.array(items, dtype=object)


def fits(dim: Dim) -> bool:
    """Whether tensors that can be have it within 64 bits: beyond, numbers wrap."""
    if isinstance(dim, Expr):
        return all(
            abs(factor) < (LARGEST_FACTOR if monomial else 1 << 62)
            and len(monomial) <= MOST_FACTORS
            for monomial, factor in dim.terms.items()
        )
    return -(1 << 63) <= dim < 1 << 63


def as_dims(array: Array) -> Array:
    """Python integers in place of numbers; a fraction is beyond shape arithmetic."""
    if array.dtype == object:
        return array
    if array.dtype.kind == "f":
        # An infinity equals its own floor.
        if not np.array_equal(array, np.floor(array)) or np.isinf(array).any():
            raise Unknown
        array = array.astype(np.int64)
    return array.astype(object)


def _never_less(a: Dim, b: Dim) -> bool:
    """Whether ``a >= b`` holds for empty inputs as well.

    A model that asks means to tell them from others, and a size that is taken to be 1
    or more is an error in a run with 0, while an answer would be wrong.
    """
    bound = lower_bound(a - b, 0)
    return bound is not None and bound >= 0


def _equal(a: Dim, b: Dim) -> bool:
    if _never_less(a, b) and _never_less(b, a):
        return True
    if _never_less(a, b + 1) or _never_less(b, a + 1):
        return False
    raise Unknown


def _less(a: Dim, b: Dim) -> bool:
    if _never_less(b, a + 1):
        return True
    if _never_less(a, b):
        return False
    raise Unknown


def quotient(a: Dim, b: Dim) -> Dim:
    """``a / b`` of sizes, rounded towards zero."""
    if b == 0 or not at_least(a, 0) or not at_least(b, 0):
        raise Unknown
    return dims.floordiv(a, b)


def _divide(_op: Op, type_: TensorType, a: Array, b: Array) -> object:
    if not type_.dtype.is_float:
        return np.frompyfunc(quotient, 2, 1)(a, b)
    return np.frompyfunc(_exact_quotient, 2, 1)(a, b)


def _exact_quotient(a: Dim, b: Dim) -> Dim:
    whole = quotient(a, b)
    if whole * b != a:
        raise Unknown
    return whole


def _remainder(a: Dim, b: Dim) -> Dim:
    return a - b * quotient(a, b)


def _pick(condition: bool, a: Dim, b: Dim) -> Dim:
    return a if condition else b


def _pairwise(function: Callable[[Any, Any], Any]) -> Rule:
    vector = np.frompyfunc(function, 2, 1)
    return lambda _op, _type, a, b: vector(a, b)


def _each(function: Callable[[Any], Any]) -> Rule:
    vector = np.frompyfunc(function, 1, 1)
    return lambda _op, _type, a: vector(a)


def _same(_op: Op, _type: TensorType, a: Array) -> object:
    return a


def _cast(_op: Op, type_: TensorType, a: Array) -> object:
    if type_.dtype is DType.BOOL:
        return np.frompyfunc(lambda x: not _equal(x, 0), 1, 1)(a)
    if type_.dtype.is_integer and type_.dtype.numpy.itemsize < NARROWEST:
        raise Unknown  # it may wrap
    return a


def _slice(op: Slice, _type: TensorType, a: Array) -> object:
    if not all(isinstance(x, int) for x in (*op.starts, *op.sizes)):
        raise Unknown
    ranges = zip(op.starts, op.sizes, op.steps, strict=True)
    return a[np.ix_(*(_indices(*each) for each in ranges))]


def _indices(start: Any, size: Any, step: int) -> Array:
    return np.asarray(start + step * np.arange(size))


def _gather(op: Gather, _type: TensorType, a: Array, indices: Array) -> object:
    if not all(isinstance(index, int) for index in indices.flat):
        raise Unknown
    places, size = indices.astype(np.int64), a.shape[op.axis]
    if np.any((places < -size) | (places >= size)):
        raise Unknown  # the run stops there
    return np.take(a, places, op.axis)


def _concat(op: Concat, _type: TensorType, *arrays: Array) -> object:
    return np.concatenate(arrays, op.axis)


def _reshape(_op: Op, type_: TensorType, a: Array) -> object:
    return a.reshape(type_.dims)


def _expand(_op: Op, type_: TensorType, a: Array) -> object:
    return np.broadcast_to(a, type_.dims)


def _arange(op: Arange, type_: TensorType) -> object:
    return [op.start + op.step * i for i in range(type_.dims[0])]


def _reduce(function: Callable[[Any], Any]) -> Rule:
    def reduce(op: Op, type_: TensorType, a: Array) -> object:
        # A vector is the only shape that exporters reduce.
        if a.ndim != 1:
            raise Unknown
        return _reshape(op, type_, objects([function(a.tolist())]))

    return reduce


RULES: dict[str, Rule] = {
    "add": _pairwise(operator.add),
    "sub": _pairwise(operator.sub),
    "mul": _pairwise(operator.mul),
    "div": _divide,
    "mod": _pairwise(_remainder),
    "neg": _each(operator.neg),
    "minimum": _pairwise(dims.minimum),
    "maximum": _pairwise(dims.maximum),
    "floor": _same,
    "ceil": _same,
    "round": _same,
    "cast": _cast,
    "equal": _pairwise(_equal),
    "less": _pairwise(_less),
    "less_equal": _pairwise(lambda a, b: not _less(b, a)),
    "greater": _pairwise(lambda a, b: _less(b, a)),
    "greater_equal": _pairwise(lambda a, b: not _less(a, b)),
    "where": lambda _op, _type, c, a, b: np.frompyfunc(_pick, 3, 1)(c, a, b),
    "slice": _slice,
    "gather": _gather,
    "concat": _concat,
    "reshape": _reshape,
    "expand": _expand,
    "fill": _expand,
    "arange": _arange,
    "reduce_prod": _reduce(dims.product),
    "reduce_sum": _reduce(sum),
    "reduce_max": _reduce(lambda items: functools.reduce(dims.maximum, items)),
    "reduce_min": _reduce(lambda items: functools.reduce(dims.minimum, items)),
}
