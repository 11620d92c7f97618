"""Branches and loops: ops that run other functions of the module.

A body sees nothing around it: what it reads from there are inputs of the op, which
hands them on as the last inputs of the body.  Its sizes are its own, told from those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from edgewise.errors import InternalError, ShapeError
from edgewise.ir.op import Array, Call, Sample
from edgewise.ops.declared import Declared
from edgewise.types import DType, TensorType, ValueType, may_agree

Types: TypeAlias = "tuple[ValueType | None, ...]"
Signature: TypeAlias = tuple[tuple[ValueType, ...], tuple[ValueType, ...]]


class Control(Declared):
    """An op that runs functions of the module."""

    dynamic = True

    def reference(self, *inputs: Any) -> Array:
        raise InternalError(f"{self.name} has its meaning from {self.bodies()}")

    @staticmethod
    def samples() -> Iterator[Sample]:
        return iter(())


class If(Control, name="if"):
    """The outputs of one branch or the other, which both take all captures."""

    then_branch: str
    else_branch: str

    def infer(
        self, condition: TensorType, *captures: ValueType | None
    ) -> tuple[ValueType, ...]:
        _want_scalar(self, "condition", condition, DType.BOOL)
        _present(self, captures)
        return self.declared()

    def bodies(self) -> tuple[str, ...]:
        return self.then_branch, self.else_branch

    def signature(self, types: Types) -> Signature:
        return _present(self, types[1:]), self.declared()

    def execute(self, call: Call, condition: Array, *captures: Any) -> tuple[Any, ...]:
        return call(self.then_branch if condition else self.else_branch, captures)


class Loop(Control, name="loop"):
    """Run ``body`` until the condition fails or ``trip`` times, whichever is sooner.

    Inputs: ``trip`` (i64) and ``condition`` (bool), which may both be absent; values
    that go from one turn to the next; captures.  The body takes the turn (i64), the
    condition, the carried values, the captures, and gives the condition, the carried
    values, and a row for every scan.  Outputs: the carried values after the last turn;
    the rows of every scan, stacked.
    """

    body: str
    carried: int
    scans: int

    def infer(
        self,
        trip: TensorType | None,
        condition: TensorType | None,
        *rest: ValueType | None,
    ) -> tuple[ValueType, ...]:
        if trip is not None:
            _want_scalar(self, "trip", trip, DType.I64)
        if condition is not None:
            _want_scalar(self, "condition", condition, DType.BOOL)
        given, types = _present(self, rest), self.declared()
        if not 0 <= self.carried <= len(rest) or self.scans < 0:
            raise self.refuse(rest, f"{self.carried} carried values among the inputs")
        if len(types) != self.carried + self.scans:
            raise self.refuse(types, f"{self.carried} + {self.scans} declared outputs")
        _want_same(self, given[: self.carried], types)
        _rows(self, types[self.carried :], [0] * self.scans)
        return types

    def bodies(self) -> tuple[str, ...]:
        return (self.body,)

    def signature(self, types: Types) -> Signature:
        go, made = TensorType(DType.BOOL, ()), self.declared()
        given = TensorType(DType.I64, ()), go, *_present(self, types[2:])
        rows = _rows(self, made[self.carried :], [0] * self.scans)
        return given, (go, *made[: self.carried], *rows)

    def execute(
        self, call: Call, trip: Array | None, condition: Array | None, *rest: Any
    ) -> tuple[Any, ...]:
        carried, captures = rest[: self.carried], rest[self.carried :]
        count = None if trip is None else int(trip)
        go = np.asarray(True if condition is None else condition)
        rows = Rows(self, call.limit, self.declared()[self.carried :])
        turn = 0
        while go and (count is None or turn < count):
            number = np.asarray(turn, np.int64)
            results = call(self.body, (number, go, *carried, *captures))
            go, carried = results[0], results[1 : 1 + self.carried]
            rows.add(results[1 + self.carried :])
            turn += 1
        return (*carried, *rows.stacked([0] * self.scans, [False] * self.scans))


class Scan(Control, name="scan"):
    """Run ``body`` on every slice of the scanned inputs.

    Inputs: values that go from one turn to the next; ``len(in_axes)`` scanned inputs;
    captures.  The body takes the carried values, a slice of every scanned input, the
    captures, and gives the carried values and a row for every scan.  Outputs: the
    carried values after the last turn; the rows of every scan, stacked along its axis.

    Attributes:
        carried: How many values go from one turn to the next.
        in_axes: The axis that each scanned input is cut along.
        in_reverse: Whether its last slice comes first.
        out_axes: The axis that the rows of each scan are stacked along.
        out_reverse: Whether its last row comes first.
    """

    body: str
    carried: int
    in_axes: tuple[int, ...]
    in_reverse: tuple[bool, ...]
    out_axes: tuple[int, ...]
    out_reverse: tuple[bool, ...]

    def infer(self, *inputs: ValueType | None) -> tuple[ValueType, ...]:
        given, types = _present(self, inputs), self.declared()
        first, last = self.carried, self.carried + len(self.in_axes)
        if first < 0 or not self.in_axes or last > len(inputs):
            raise self.refuse(inputs, f"{first} carried and some scanned inputs")
        if len(types) != self.carried + len(self.out_axes):
            raise self.refuse(types, f"{first} + {len(self.out_axes)} outputs")
        if len(self.in_reverse) != last - first:
            raise self.refuse(inputs, "a direction for every scanned input")
        if len(self.out_reverse) != len(self.out_axes):
            raise self.refuse(types, "a direction for every scan")
        _want_same(self, given[:first], types)
        _rows(self, given[first:last], self.in_axes)
        _rows(self, types[first:], self.out_axes)
        return types

    def bodies(self) -> tuple[str, ...]:
        return (self.body,)

    def signature(self, types: Types) -> Signature:
        given, made = _present(self, types), self.declared()
        first, last = self.carried, self.carried + len(self.in_axes)
        slices = _rows(self, given[first:last], self.in_axes)
        rows = _rows(self, made[first:], self.out_axes)
        return (*given[:first], *slices, *given[last:]), (*made[:first], *rows)

    def execute(self, call: Call, *inputs: Any) -> tuple[Any, ...]:
        first, last = self.carried, self.carried + len(self.in_axes)
        carried, captures = inputs[:first], inputs[last:]
        scanned = [
            np.flip(np.moveaxis(x, axis, 0), 0) if back else np.moveaxis(x, axis, 0)
            for x, axis, back in zip(
                inputs[first:last], self.in_axes, self.in_reverse, strict=True
            )
        ]
        counts = {len(x) for x in scanned}
        if len(counts) > 1:
            raise self.refuse(tuple(sorted(counts)), "scanned inputs of one length")
        rows = Rows(self, call.limit, self.declared()[first:])
        for turn in range(counts.pop()):
            slices = [
                np.ascontiguousarray(x[turn]).reshape(x.shape[1:]) for x in scanned
            ]
            results = call(self.body, (*carried, *slices, *captures))
            carried = results[:first]
            rows.add(results[first:])
        return (*carried, *rows.stacked(self.out_axes, self.out_reverse))


class Rows:
    """The rows of all scans of a loop, turn by turn.

    Args:
        op: Whose they are.
        limit: Bytes that they may take together.
        types: Types of the scans.
    """

    def __init__(self, op: Control, limit: int, types: Sequence[ValueType]) -> None:
        self._op, self._limit, self._types = op, limit, types
        self._rows: list[list[Array]] = [[] for _ in types]
        self._bytes = 0

    def add(self, rows: Sequence[Array]) -> None:
        """The rows of one turn."""
        for kept, row in zip(self._rows, rows, strict=True):
            if kept and row.shape != kept[0].shape:
                shapes = (list(kept[0].shape), list(row.shape))
                raise self._op.refuse(shapes, "rows of one shape")
            kept.append(row)
            self._bytes += row.nbytes
        if self._bytes > self._limit:
            raise ShapeError(
                f"{self._op.name} {self._op.bodies()[0]!r}: its results take more than"
                f" {self._limit} bytes; want a loop that ends sooner"
            )

    def stacked(self, axes: Sequence[int], reverse: Sequence[bool]) -> list[Array]:
        """One array a scan; without a turn, sizes that nothing tells are 0."""
        stacked = []
        for rows, type_, axis, back in zip(
            self._rows, self._types, axes, reverse, strict=True
        ):
            if not isinstance(type_, TensorType):
                raise InternalError(f"a scan cannot give {type_}")
            if rows:
                stacked.append(np.stack(rows[::-1] if back else rows, axis))
                continue
            sizes = [dim if isinstance(dim, int) else 0 for dim in type_.shape]
            sizes[axis] = 0
            stacked.append(np.empty(sizes, type_.dtype.numpy))
        return stacked


def _want_scalar(op: Control, what: str, given: ValueType | None, dtype: DType) -> None:
    if given != TensorType(dtype, ()):
        raise op.refuse((f"{what} {given}",), f"{dtype.value}[]")


def _present(op: Control, given: Types) -> tuple[ValueType, ...]:
    """The types, none of which may be of an input left out."""
    present = tuple(type_ for type_ in given if type_ is not None)
    if len(present) != len(given):
        raise op.refuse(given, "no input left out")
    return present


def _want_same(
    op: Control, given: tuple[ValueType, ...], types: tuple[ValueType, ...]
) -> None:
    """Raise unless carried values stay what they are; without a turn they do."""
    if not all(map(may_agree, given, types[: len(given)])):
        raise op.refuse(given, f"carried values of {types[: len(given)]}")


def _rows(
    op: Control, types: Sequence[ValueType], axes: Sequence[int]
) -> tuple[TensorType, ...]:
    """Types of slices along an axis each."""
    rows = []
    for type_, axis in zip(types, axes, strict=True):
        if not isinstance(type_, TensorType) or not 0 <= axis < type_.rank:
            raise op.refuse((type_,), f"a tensor with an axis {axis}")
        rows.append(type_.with_shape((*type_.shape[:axis], *type_.shape[axis + 1 :])))
    return tuple(rows)
