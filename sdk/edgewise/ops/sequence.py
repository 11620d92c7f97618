"""Sequences: lists of tensors of one element type, in no flat memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.errors import INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, DTypeError
from edgewise.ir.op import Array, Call, Op, Sample
from edgewise.ops.checks import INDICES, fits, stopped, want, want_axis, want_room
from edgewise.types import (
    ANY,
    DType,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)


class SequenceOp(Op):
    """An op of sequences."""

    objects = holds = True

    @staticmethod
    def samples() -> Iterator[Sample]:
        """None: samples are arrays, and these ops take lists."""
        return iter(())


class SequenceEmpty(SequenceOp, name="sequence_empty"):
    """No tensors, of the element type ``dtype``."""

    dtype: str

    def infer(self) -> SequenceType:
        return SequenceType(Unranked(DType(self.dtype)))

    def reference(self) -> list[Array]:  # type: ignore[override]  # a sequence
        return []


class SequenceConstruct(SequenceOp, name="sequence_construct"):
    """The inputs as a sequence."""

    def infer(self, *xs: TensorType) -> SequenceType:
        if not xs:
            raise self.refuse((), "at least one tensor; sequence_empty makes none")
        element: TensorType | Unranked = _tensor(self, xs[0])
        for x in xs[1:]:
            element = _joined(self, element, _tensor(self, x))
        return SequenceType(element)

    def reference(self, *xs: Array) -> list[Array]:  # type: ignore[override]  # a sequence
        return list(xs)


class SequenceInsert(SequenceOp, name="sequence_insert"):
    """The sequence with ``x`` before ``position``; at the end where that is absent."""

    def infer(
        self, xs: ValueType, x: TensorType, position: TensorType | None = None
    ) -> SequenceType:
        _want_position(self, position)
        element, x = _element(self, xs), _tensor(self, x)
        # An empty sequence knows no shape: the first tensor that is put in tells none.
        return SequenceType(_joined(self, element, x))

    def reference(  # type: ignore[override]  # a sequence
        self, xs: list[Array], x: Array, position: Array | None = None
    ) -> list[Array]:
        place = len(xs) if position is None else int(position)
        if not -len(xs) <= place <= len(xs):
            raise stopped(self, INDEX_OUT_OF_RANGE)
        place += len(xs) if place < 0 else 0
        return [*xs[:place], x, *xs[place:]]


class SequenceErase(SequenceOp, name="sequence_erase"):
    """The sequence without the tensor at ``position``, or without the last."""

    def infer(self, xs: ValueType, position: TensorType | None = None) -> SequenceType:
        _want_position(self, position)
        return SequenceType(_element(self, xs))

    def reference(  # type: ignore[override]  # a sequence
        self, xs: list[Array], position: Array | None = None
    ) -> list[Array]:
        place = _place(self, xs, -1 if position is None else int(position))
        return [*xs[:place], *xs[place + 1 :]]


class SequenceAt(SequenceOp, name="sequence_at"):
    """The tensor at ``position``; ``sizes`` is its shape, fresh symbols as a rule."""

    dynamic = True
    sizes: tuple[Dim, ...]

    def infer(self, xs: ValueType, position: TensorType) -> TensorType:
        _want_position(self, position)
        return _any_of(self, _element(self, xs), self.sizes)

    def reference(self, xs: list[Array], position: Array) -> Array:
        return xs[_place(self, xs, int(position))]


class SequenceLength(SequenceOp, name="sequence_length"):
    """How many tensors there are, as an i64 scalar."""

    def infer(self, xs: ValueType) -> TensorType:
        _element(self, xs)
        return TensorType(DType.I64, ())

    def reference(self, xs: list[Array]) -> Array:
        return np.asarray(len(xs), np.int64)


class SplitToSequence(SequenceOp, name="split_to_sequence"):
    """Parts of ``x`` along ``axis``.

    ``split`` holds their sizes, or one size for all but a shorter last one; where it is
    absent, each has size 1, or loses the axis without ``keepdims``.
    """

    axis: int
    keepdims: bool = True

    def infer(self, x: TensorType, split: TensorType | None = None) -> SequenceType:
        want_axis(self, self.axis, _tensor(self, x).rank)
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        size: tuple[Dim, ...] = (1,) if self.keepdims else ()
        if split is not None:
            want(self, (split,), INDICES)
            if split.rank > 1:
                raise self.refuse((x, split), "split of at most one axis")
            size = (ANY,)
        return SequenceType(x.with_shape((*before, *size, *after)))

    def reference(  # type: ignore[override]  # a sequence
        self, x: Array, split: Array | None = None
    ) -> list[Array]:
        size = x.shape[self.axis]
        if split is None:
            parts = np.split(x, size, self.axis) if size else []
            return parts if self.keepdims else [p.squeeze(self.axis) for p in parts]
        if split.ndim == 0:
            if split < 1:
                raise stopped(self, SHAPE_MISMATCH)
            ends = np.arange(int(split), size, int(split))
            return np.split(x, ends, self.axis) if size else []
        if (split < 0).any() or split.sum() != size:
            raise stopped(self, SHAPE_MISMATCH)
        return np.split(x, np.cumsum(split)[:-1], self.axis) if split.size else []


class ConcatFromSequence(SequenceOp, name="concat_from_sequence"):
    """All tensors along ``axis``, or a new one; ``sizes`` is the whole shape."""

    dynamic = True
    axis: int
    new_axis: bool
    sizes: tuple[Dim, ...]

    def infer(self, xs: ValueType) -> TensorType:
        element = _element(self, xs)
        want_axis(self, self.axis, len(self.sizes))
        return TensorType(element.dtype, self.sizes)

    def execute(self, call: Call, xs: list[Array]) -> Array:
        # One tensor may be there many times: a list takes less than what it becomes.
        want_room(self, sum(x.nbytes for x in xs), call.limit)
        return self.reference(xs)

    def reference(self, xs: list[Array]) -> Array:
        join = np.stack if self.new_axis else np.concatenate
        shapes = {
            x.shape
            if self.new_axis
            else (*x.shape[: self.axis], *x.shape[self.axis + 1 :])
            for x in xs
        }
        if len(shapes) != 1 or len({x.ndim for x in xs}) != 1:
            raise stopped(self, SHAPE_MISMATCH)
        return join(xs, self.axis)


def _tensor(op: Op, x: ValueType | None) -> TensorType:
    if not isinstance(x, TensorType):
        raise DTypeError(f"{op.name}: got {x}; want a tensor")
    return x


def _element(op: Op, xs: ValueType | None) -> TensorType | Unranked:
    if not isinstance(xs, SequenceType):
        raise DTypeError(f"{op.name}: got {xs}; want a sequence")
    return xs.element


def _joined(
    op: Op, a: TensorType | Unranked, b: TensorType | Unranked
) -> TensorType | Unranked:
    """What holds the tensors of both."""
    if a.dtype is not b.dtype:
        raise DTypeError(f"{op.name}: got {a} and {b}; want equal element types")
    if isinstance(a, Unranked) or isinstance(b, Unranked) or a.rank != b.rank:
        return Unranked(a.dtype)
    sizes = (m if m == n else ANY for m, n in zip(a.shape, b.shape, strict=True))
    return TensorType(a.dtype, tuple(sizes))


def _any_of(
    op: Op, element: TensorType | Unranked, sizes: tuple[Dim, ...]
) -> TensorType:
    if isinstance(element, TensorType) and not fits(sizes, element.shape):
        raise op.refuse((element,), f"a shape that {list(sizes)} may be")
    return TensorType(element.dtype, sizes)


def _want_position(op: Op, position: ValueType | None) -> None:
    if position is not None:
        want(op, (_tensor(op, position),), INDICES)
        if _tensor(op, position).rank:
            raise op.refuse((position,), "a scalar position")


def _place(op: Op, xs: list[Array], position: int) -> int:
    if not -len(xs) <= position < len(xs):
        raise stopped(op, INDEX_OUT_OF_RANGE)
    return position % len(xs)
