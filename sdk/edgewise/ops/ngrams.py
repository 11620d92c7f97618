"""Counts of n-grams, weighted: what ONNX calls TfIdfVectorizer."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from edgewise.errors import DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.checks import INDICES, STRINGS, want, want_shape
from edgewise.ops.text import texts
from edgewise.types import DType, TensorType

MODES = ("TF", "IDF", "TFIDF")


class CountNgrams(Op, name="count_ngrams"):
    """How often each n-gram of a pool occurs in a row, as ``mode`` says.

    Inputs: rows ``x`` ([C] or [N, C]); the pool, all n-grams of one length behind those
    of the length before; for every n-gram its place in the result, and its weight.
    TF counts; IDF gives the weight of what occurs; TFIDF the count times the weight.

    Attributes:
        starts: Where in the pool the n-grams of length 1, 2, … begin.
        shortest: Least length that counts.
        longest: Largest length that counts.
        skips: Most elements that may be left out between two of an n-gram.
        width: Size of the result's last axis.
        mode: TF, IDF or TFIDF.
    """

    starts: tuple[int, ...]
    shortest: int
    longest: int
    skips: int
    width: int
    mode: str

    def infer(
        self, x: TensorType, pool: TensorType, places: TensorType, weights: TensorType
    ) -> TensorType:
        want(self, (x, pool), INDICES | STRINGS)
        want(self, (places,), frozenset({DType.I64}))
        want(self, (weights,), frozenset({DType.F32}))
        if (x.dtype in STRINGS) != (pool.dtype in STRINGS):
            raise DTypeError(f"{self.name}: got {x} and the pool {pool}; want one kind")
        want_shape(self, "weights", weights, *places.shape)
        in_order = list(self.starts) == sorted(self.starts)
        lengths = 1 <= self.shortest <= self.longest <= len(self.starts)
        if not (x.rank in (1, 2) and pool.rank == places.rank == 1):
            raise self.refuse((x, pool, places), "rows, and vectors beside them")
        if not lengths or not in_order or self.skips < 0 or self.mode not in MODES:
            raise self.refuse((self,), "lengths within the pool, and a mode of ONNX")
        return TensorType(DType.F32, (*x.shape[:-1], self.width))

    def reference(self, x: Array, pool: Array, places: Array, weights: Array) -> Array:
        known = self._pool(pool.tolist())
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).tolist()
        counts = np.zeros((len(rows), self.width), np.float32)
        factors = np.zeros(self.width, np.float32)
        inside = np.all((places >= 0) & (places < self.width))
        if len(known) > len(places) or not inside:
            raise self.refuse((pool.shape, places.shape), "a place for every n-gram")
        factors[places] = weights
        for row, found in zip(rows, counts, strict=True):
            for gram in self._grams(row):
                if gram in known:
                    found[places[known[gram]]] += 1
        if self.mode == "TF":
            result = counts
        elif self.mode == "IDF":
            result = np.where(counts > 0, factors, 0)
        else:
            result = counts * factors
        return result.reshape(*x.shape[:-1], self.width).astype(np.float32)

    def _pool(self, pool: list[Hashable]) -> dict[tuple[Hashable, ...], int]:
        """Every n-gram of the pool and its number; those of other lengths count too."""
        known: dict[tuple[Hashable, ...], int] = {}
        number = 0
        ends = (*self.starts[1:], len(pool))
        for length, (start, end) in enumerate(zip(self.starts, ends, strict=True), 1):
            for at in range(start, end - length + 1, length):
                known[tuple(pool[at : at + length])] = number
                number += 1
        return known

    def _grams(self, row: Sequence[Hashable]) -> Iterator[tuple[Hashable, ...]]:
        for length in range(self.shortest, self.longest + 1):
            # One element leaves nothing out, so no distance may count it twice.
            steps = range(1, 2 if length == 1 else self.skips + 2)
            for step in steps:
                for at in range(len(row) - step * (length - 1)):
                    yield tuple(row[at : at + step * (length - 1) + 1 : step])

    @staticmethod
    def samples() -> Iterator[Sample]:
        pool = np.asarray([2, 3, 5, 4, 5, 6, 7, 8, 6, 7])
        places, weights = np.arange(7), np.arange(7).astype("f4") / 2
        row = np.asarray([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], "i4")
        for mode in MODES:
            for shortest, skips in ((1, 0), (2, 5)):
                op = CountNgrams((0, 4), shortest, 2, skips, 7, mode)
                yield Sample(op, (row.reshape(2, 6), pool, places, weights))
                yield Sample(op, (row, pool, places, weights))
        words = texts(["a", "b", "a"])
        ones = np.ones(2, "f4")
        op = CountNgrams((0,), 1, 1, 0, 2, "TF")
        yield Sample(op, (words, texts(["a", "c"]), np.arange(2), ones))
