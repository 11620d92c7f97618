"""A tensor with some of its elements replaced, or joined with others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Shape
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    INDICES,
    fits,
    resolved,
    same_dtype,
    want,
    want_axis,
)
from edgewise.types import TensorType

REDUCTIONS = {
    "none": None,
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def _store(out: Array, places: tuple[Array, ...], updates: Array, how: str) -> Array:
    """Store the updates one after the other: of equal places the last one wins."""
    join = REDUCTIONS[how]
    with np.errstate(all="ignore"):
        if join is None:
            out[places] = updates
        else:
            join.at(out, places, updates)
    return out


class _Scatter(Op):
    """Updates stored at indices, ``reduction`` joining them with what is there."""

    def want_updates(
        self, x: TensorType, indices: TensorType, updates: TensorType, shape: Shape
    ) -> None:
        """Raise unless indices and updates fit ``x``."""
        want(self, (indices,), INDICES)
        same_dtype(self, x, updates)
        if not fits(updates.shape, shape):
            raise self.refuse((x, indices, updates), f"updates {list(shape)}")


class ScatterElements(_Scatter, name="scatter_elements"):
    """Every update stored at its place, moved to the index along ``axis``."""

    axis: int = 0
    reduction: str = "none"

    def infer(
        self, x: TensorType, indices: TensorType, updates: TensorType
    ) -> TensorType:
        self.want_updates(x, indices, updates, indices.shape)
        want_axis(self, self.axis, x.rank)
        if indices.rank != x.rank or self.reduction not in REDUCTIONS:
            raise self.refuse((x, indices), f"equal ranks, one of {list(REDUCTIONS)}")
        for axis, (a, b) in enumerate(zip(indices.shape, x.shape, strict=True)):
            known = isinstance(a, int) and isinstance(b, int)
            if axis != self.axis and known and a > b:  # type: ignore[operator]  # known
                raise self.refuse((x, indices), f"sizes within x but for {self.axis}")
        return x

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        places: list[Array] = list(np.indices(indices.shape, sparse=True))
        places[self.axis] = resolved(self, indices, x.shape[self.axis])
        return _store(x.copy(), tuple(places), updates, self.reduction)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for how in REDUCTIONS:
            for shape, axis, picked in (
                ((7,), 0, (9,)),
                ((3, 5), 0, (7, 5)),
                ((3, 5), 1, (2, 4)),
                ((2, 3, 5), 1, (1, 4, 3)),
                ((3, 5), 1, (3, 0)),
            ):
                size, op = shape[axis], ScatterElements(axis, how)
                indices = cases.whole(*picked, low=-size, high=size)
                updates = cases.floats(*picked, seed=1)
                yield Sample(op, (cases.floats(*shape), indices, updates))
            short = np.asarray([0, 3, -1, 0], np.int32)
            x, updates = cases.whole(5), cases.whole(4, seed=1)
            yield Sample(ScatterElements(0, how), (x, short, updates))


class ScatterNd(_Scatter, name="scatter_nd"):
    """Slices stored by tuples of indices, the last axis of ``indices``."""

    reduction: str = "none"

    def infer(
        self, x: TensorType, indices: TensorType, updates: TensorType
    ) -> TensorType:
        depth = indices.shape[-1] if indices.rank else x.rank + 1
        allowed = self.reduction in REDUCTIONS
        if not isinstance(depth, int) or depth > x.rank or not allowed:
            raise self.refuse(
                (x, indices), f"an index tuple, one of {list(REDUCTIONS)}"
            )
        shape = (*indices.shape[:-1], *x.shape[depth:])
        self.want_updates(x, indices, updates, shape)
        return x

    def reference(self, x: Array, indices: Array, updates: Array) -> Array:
        places = tuple(
            resolved(self, indices[..., j], x.shape[j])
            for j in range(indices.shape[-1])
        )
        return _store(x.copy(), places, updates, self.reduction)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for how in REDUCTIONS:
            for shape, indices in (
                ((7,), [[0], [-1], [3], [3]]),
                ((3, 5), [[0, 4], [-1, -5], [0, 4]]),
                ((3, 5), [[2], [0]]),
                ((2, 3, 5), [[[1, 2], [0, 0]], [[0, -1], [1, 1]]]),
            ):
                array = np.asarray(indices, np.int64)
                part = (*array.shape[:-1], *shape[array.shape[-1] :])
                updates = cases.floats(*part, seed=1)
                yield Sample(ScatterNd(how), (cases.floats(*shape), array, updates))
            x, updates = cases.whole(5), cases.whole(2, seed=1)
            short = np.asarray([[0], [3]], np.int32)
            yield Sample(ScatterNd(how), (x, short, updates))
