"""Outputs of an op by its reference, whatever the element types.

Elements of fewer bits than numpy computes with are widened before and narrowed after.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from operator import not_
from typing import Any

import numpy as np

from edgewise.errors import (
    KERNEL_FAULT,
    EdgewiseError,
    InternalError,
    KernelError,
    ShapeError,
)
from edgewise.ir.binders import MAX_SIZE
from edgewise.ir.fit import described, fits
from edgewise.ir.op import Call, Op
from edgewise.types import DType, TensorType, ValueType


class NoBodies:
    """Where no functions are at hand."""

    limit = MAX_SIZE

    def __call__(self, name: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Refuse."""
        del inputs
        raise InternalError(f"function {name!r} is run where there are none")


NO_BODIES = NoBodies()


def outputs(
    op: Op,
    inputs: Sequence[Any],
    types: tuple[ValueType, ...],
    call: Call = NO_BODIES,
) -> tuple[Any, ...]:
    """Arrays, lists and None, of the declared types.

    Raises:
        ShapeError: Only the run tells what the op gives, and it is not what the model
            declares.
        InternalError: The reference gave something else.
    """
    narrow = not op.objects and not op.narrow and any(map(_is_narrow, inputs))
    if narrow:
        inputs = [_widened(x) if _is_narrow(x) else x for x in inputs]
    results = op.execute(call, *inputs)
    if not isinstance(results, tuple):
        results = (results,)
    if narrow:
        results = tuple(map(_narrowed, results, types))
    held = _held(inputs) if op.holds else frozenset()
    right = (_fits(x, type_, held) for x, type_ in zip(results, types, strict=False))
    if len(results) != len(types) or not all(right):
        given = ", ".join(map(described, results))
        want = ", ".join(map(str, types))
        if op.dynamic:  # what it gives is up to the run; its types are the model's
            raise ShapeError(f"{op.name}: got ({given}); the model says ({want})")
        raise InternalError(f"{op.name}: its reference gave ({given}); want ({want})")
    return tuple(results)


def outputs_of_node(
    op: Op,
    label: str,
    inputs: Sequence[Any],
    types: tuple[ValueType, ...],
    call: Call,
) -> tuple[Any, ...]:
    """``outputs``, whose errors name the node.

    Raises:
        KernelError: The reference stopped; of an exception that is none of ours, too,
            for what a file makes references do must not reach a user as numpy's.
    """
    try:
        return outputs(op, inputs, types, call)
    except MemoryError:
        raise
    except EdgewiseError as error:
        if isinstance(error, KernelError) and not error.node:
            raise KernelError(error.op, label, error.status) from error
        raise
    except Exception as error:  # numpy's, of any kind: a run ends in an error of ours
        raise KernelError(op.name, label, KERNEL_FAULT) from error


def _held(inputs: Sequence[Any]) -> frozenset[int]:
    """What lists among the inputs hold: it was looked at when it got there."""
    lists = [xs for xs in inputs if isinstance(xs, list)]
    return frozenset(map(id, chain.from_iterable(lists)))


def _fits(value: Any, type_: ValueType, held: frozenset[int]) -> bool:
    if held and isinstance(value, list):
        # Without a line of Python for each: a loop may add one thing a turn.
        value = list(compress(value, map(not_, map(held.__contains__, map(id, value)))))
    return fits(value, type_)


def _is_narrow(x: object) -> bool:
    # The kind of all types that numpy has from elsewhere.
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind == "V"


def _widened(x: Any) -> Any:
    dtype = DType.of(x.dtype)
    if dtype.is_float:
        return x.astype(np.float32)
    return x.astype(np.uint8 if dtype.value.startswith("u") else np.int8)


def _narrowed(x: Any, type_: ValueType) -> Any:
    wanted = type_.dtype.numpy if isinstance(type_, TensorType) else None
    if wanted is None or x.dtype == wanted or wanted.kind != "V":
        return x
    with np.errstate(all="ignore"):
        return x.astype(wanted)
