"""Which slices and boxes of many to keep: ``size`` of them, as the run finds out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    BOOLS,
    NUMBERS,
    STRINGS,
    may_equal,
    want,
    want_axis,
    wide,
)
from edgewise.types import DType, TensorType


class Unique(Op, name="unique"):
    """The different slices of ``x`` along ``axis``, and where they are.

    Outputs: the slices, in order of their elements or, unless ``ordered``, of their
    first appearance; where each appears first; which one each slice of ``x`` is; how
    often each appears.  In a vector all NaN are one.
    """

    dynamic = True
    size: Dim
    axis: int
    ordered: bool = True

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        want(self, (x,), NUMBERS | BOOLS | STRINGS)
        want_axis(self, self.axis, x.rank)
        shape = (*x.shape[: self.axis], self.size, *x.shape[self.axis + 1 :])
        each = TensorType(DType.I64, (self.size,))
        slices = TensorType(DType.I64, (x.shape[self.axis],))
        return x.with_shape(shape), each, slices, each

    def reference(self, x: Array) -> tuple[Array, ...]:
        # A vector of strings is sorted as it is; slices are compared as numbers.
        seen = x if x.dtype.kind == "O" else wide(x)
        _, first, inverse, counts = np.unique(
            seen,
            return_index=True,
            return_inverse=True,
            return_counts=True,
            axis=self.axis if x.ndim > 1 else None,
        )
        inverse = inverse.reshape(-1)
        if not self.ordered:
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            first, counts, inverse = first[order], counts[order], rank[inverse]
        values = np.take(x, first, axis=self.axis)
        return values, *(np.asarray(a, np.int64) for a in (first, inverse, counts))

    @staticmethod
    def samples() -> Iterator[Sample]:
        twice = np.asarray([[1, 0, 0], [2, 3, 4], [1, 0, 0]], "f4")
        for ordered in (True, False):
            for x, axis, count in (
                (np.asarray([2, 1, 1, 3, 4, 3], "f4"), 0, 4),
                (np.asarray([5, np.nan, 5, np.nan, -np.inf], "f4"), 0, 3),
                (np.zeros(0, "f4"), 0, 0),
                (np.asarray([7, 7, 7], "i8"), 0, 1),
                (np.asarray([2**63 - 1, 2**63 - 2, 2**63 - 1], "i8"), 0, 2),
                (np.asarray([True, False, True]), 0, 2),
                (twice, 0, 2),
                (twice, 1, 3),
            ):
                yield Sample(Unique(count, axis, ordered), (x,))


class NonMaxSuppression(Op, name="non_max_suppression"):
    """Boxes by falling score, without those that overlap a better one too much.

    Inputs: boxes [N, B, 4], scores [N, C, B]; how many boxes a class may keep; the
    overlap (area of the intersection over that of the union) from which on, and the
    score up to which, boxes are dropped, which may be absent.  Output: rows of batch,
    class and box.

    Attributes:
        center: Boxes are [x, y, width, height], not two corners [y, x, y, x].
    """

    dynamic = True
    size: Dim
    center: bool = False

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        most: TensorType,
        overlap: TensorType,
        score: TensorType | None,
    ) -> TensorType:
        want(self, (boxes, scores, overlap, score), frozenset({DType.F32}))
        want(self, (most,), frozenset({DType.I64}))
        pairs = ((0, 0), (1, 2))
        if (
            boxes.rank != 3
            or scores.rank != 3
            or not may_equal(boxes.shape[2], 4)
            or not all(may_equal(boxes.shape[i], scores.shape[j]) for i, j in pairs)
        ):
            raise self.refuse((boxes, scores), "boxes [N, B, 4] and scores [N, C, B]")
        for scalar in (most, overlap, score):
            if scalar is not None and scalar.shape != ():
                raise self.refuse((scalar,), "one number for each limit")
        return TensorType(DType.I64, (self.size, 3))

    def reference(
        self,
        boxes: Array,
        scores: Array,
        most: Array,
        overlap: Array,
        score: Array | None,
    ) -> Array:
        rows = []
        for n, corners in enumerate(_corners(boxes, center=self.center)):
            for c, values in enumerate(scores[n]):
                kept = _kept(corners, values, int(most), overlap, score)
                rows += [(n, c, box) for box in kept]
        return np.asarray(rows, np.int64).reshape(-1, 3)

    @staticmethod
    def samples() -> Iterator[Sample]:
        low = cases.positive(2, 7, 2)
        boxes = np.concatenate((low, low + cases.positive(2, 7, 2, seed=1)), axis=2)
        scores = cases.floats(2, 3, 7)
        half = np.asarray(0.5, "f4")
        every, none = np.asarray(1.0, "f4"), np.asarray(0)
        op = NonMaxSuppression(2 * 3 * 7)
        yield Sample(op, (boxes, scores, np.asarray(7), every, None))
        yield Sample(NonMaxSuppression(0), (boxes, scores, none, half, None))
        yield Sample(NonMaxSuppression(0), (boxes, scores, none - 1, half, half))
        same = np.broadcast_to(np.asarray([1, 1, 0, 0], "f4"), (1, 5, 4)).copy()
        tied = np.full((1, 1, 5), 0.5, "f4")
        for center in (False, True):
            op = NonMaxSuppression(1, center)
            yield Sample(op, (same + center, tied, np.asarray(9), half, None))
            op = NonMaxSuppression(0, center)
            yield Sample(op, (same + center, tied, np.asarray(9), half, half))


def _corners(boxes: Array, *, center: bool) -> Array:
    """Boxes as [low, low, high, high]."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if center:
        first, second = first - second / 2, first + second / 2
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), -1)


def _kept(
    corners: Array, values: Array, most: int, overlap: Array, score: Array | None
) -> list[int]:
    """Boxes of one class, best first; of equal scores the one with the lower index."""
    order = np.argsort(-values, kind="stable")
    if score is not None:
        order = order[values[order] > score]
    kept: list[int] = []
    while len(order) and len(kept) < most:
        best, order = order[0], order[1:]
        kept.append(int(best))
        order = order[_overlaps(corners[best], corners[order]) <= overlap]
    return kept


def _overlaps(box: Array, others: Array) -> Array:
    """Intersection over union, in single precision; 0 where there is no area."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    with np.errstate(all="ignore"):
        common = np.prod(np.maximum(high - low, 0), axis=1)
        areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
        union = np.prod(box[2:] - box[:2]) + areas - common
        return np.where(common > 0, common / union, np.float32(0))
