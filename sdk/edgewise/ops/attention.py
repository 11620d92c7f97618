"""Scaled dot-product attention: what every query makes of the keys it looks at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    FLOATS,
    integers,
    may_equal,
    same_dtype,
    want,
    want_broadcast,
    wide,
)
from edgewise.types import TensorType

USUAL = "nqhd,nkhd,nkhe->nqhe"
LETTERS = ("nqhd", "nkhd", "nkhe", "nqhe")


class Attention(Op, name="attention"):
    """``softmax(scale * q k + mask) v`` for every head.

    ``axes`` says what the axes of q, k, v and of the result are: n batch, h head, q
    query, k key, d and e what a product reduces and what it gives; on an axis with a
    digit only that index is read.  A head of k and v may serve several of q.  With
    ``causal``, query i sees the keys up to ``start + i``.  A query that sees nothing
    gives NaN, or zeros where it is ``guarded``.
    """

    scale: float = 1.0
    axes: str = USUAL
    causal: bool = False
    start: Dim = 0
    guarded: bool = False

    def infer(
        self,
        q: TensorType,
        k: TensorType,
        v: TensorType,
        mask: TensorType | None = None,
    ) -> TensorType:
        given = (q, k, v, mask)
        same_dtype(self, *given)
        want(self, (q,), FLOATS)
        forms = self.forms()
        q_sizes, k_sizes, v_sizes = (
            self._sizes(form, type_, given)
            for form, type_ in zip(forms, (q, k, v), strict=False)
        )
        heads, few = q_sizes["h"], k_sizes.pop("h")
        groups = isinstance(heads, int) and isinstance(few, int)
        if groups and (heads % few if few else heads):  # type: ignore[operator]  # both are integers
            raise self.refuse(given, "heads that share those of k and v")
        if not may_equal(few, v_sizes.pop("h")):
            raise self.refuse(given, "as many heads of v as of k")
        sizes = v_sizes | k_sizes | q_sizes
        for found in (k_sizes, v_sizes):
            if not all(may_equal(sizes[letter], found[letter]) for letter in found):
                raise self.refuse(given, f"sizes that fit the axes {self.axes}")
        want_broadcast(self, "mask", mask, tuple(sizes[letter] for letter in "nhqk"))
        return q.with_shape(tuple(sizes[letter] for letter in forms[3]))

    def forms(self) -> tuple[str, ...]:
        """The axes of q, k, v and the result."""
        left, _, result = self.axes.partition("->")
        forms = (*left.split(","), result)
        plain = tuple("".join(filter(str.isalpha, form)) for form in forms)
        if tuple(map(sorted, plain)) != tuple(map(sorted, LETTERS)) or any(
            len(form) > 4 + (place < 3) or not form.isascii() or not form.isalnum()
            for place, form in enumerate(forms)
        ):
            raise self.refuse((self.axes,), f"axes like {USUAL}")
        return forms

    def _sizes(
        self, form: str, type_: TensorType, given: tuple[TensorType | None, ...]
    ) -> dict[str, Dim]:
        if type_.rank != len(form):
            raise self.refuse(given, f"inputs with the axes {self.axes}")
        sizes = dict(zip(form, type_.shape, strict=True))
        for letter in filter(str.isdigit, form):
            size = sizes.pop(letter)
            if isinstance(size, int) and size <= int(letter):
                raise self.refuse(given, f"more than {letter} on the axis of a digit")
        return sizes

    def reference(
        self, q: Array, k: Array, v: Array, mask: Array | None = None
    ) -> Array:
        forms = self.forms()
        left = _arranged(q, forms[0], "nhqd")
        right, values = _arranged(k, forms[1], "nhdk"), _arranged(v, forms[2], "nhke")
        times = (left.shape[1] // right.shape[1]) if right.shape[1] else 1
        right, values = (np.repeat(x, times, axis=1) for x in (right, values))
        with np.errstate(all="ignore"):
            scores = left @ right * self.scale
            scores = scores if mask is None else scores + wide(mask)
            if self.causal:
                scores = np.where(self._visible(*scores.shape[2:]), scores, -np.inf)
            peak = scores.max(axis=3, keepdims=True, initial=-np.inf)
            terms = np.exp(scores - peak)
            weights = terms / terms.sum(axis=3, keepdims=True)
            if self.guarded:
                weights = np.where(peak == -np.inf, 0.0, weights)
            y = weights @ values
        order = ["nhqe".index(letter) for letter in forms[3]]
        return np.asarray(y.transpose(order), q.dtype)

    def _visible(self, queries: int, keys: int) -> Array:
        (start,) = integers(self, (self.start,))
        return np.arange(keys) <= np.arange(queries)[:, None] + start

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        moved = super().cost(inputs, outputs)
        sizes: dict[str, Dim] = {}
        for form, type_ in zip(self.forms(), (*inputs[:3], *outputs), strict=True):
            if type_ is not None:
                sizes |= dict(zip(form, type_.shape, strict=True))
        n, h, q, k, d, e = integers(self, (sizes[letter] for letter in "nhqkde"))
        return Cost(n * h * q * k * (d + e), moved.bytes)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in (
            *((1, 1, 1, 1, 1, 1), (2, 3, 7, 17, 5, 33), (1, 2, 16, 15, 16, 16)),
            *((1, 1, 33, 16, 64, 8), (0, 2, 3, 4, 5, 6), (1, 2, 3, 0, 4, 5)),
            *((1, 2, 0, 3, 4, 5), (1, 1, 3, 4, 0, 5)),
        ):
            yield Sample(Attention(0.3), _operands(*shape))
        yield from _masked()
        yield from _forms()
        yield from _extremes()
        double = _operands(1, 2, 3, 4, 5, 6, dtype="float64")
        yield Sample(Attention(0.3), double)


def _arranged(x: Array, form: str, order: str) -> Array:
    """``x`` in double precision on the axes ``order``."""
    x = x[tuple(int(c) if c.isdigit() else slice(None) for c in form)]
    letters = "".join(filter(str.isalpha, form))
    return wide(x).transpose([letters.index(letter) for letter in order])


def _operands(
    n: int, h: int, q: int, k: int, d: int, e: int, dtype: str = "float32"
) -> tuple[Array, ...]:
    return (
        cases.floats(n, q, h, d, dtype=dtype),
        cases.floats(n, k, h, d, dtype=dtype, seed=1),
        cases.floats(n, k, h, e, dtype=dtype, seed=2),
    )


def _masked() -> Iterator[Sample]:
    operands = _operands(2, 3, 7, 18, 5, 17)
    shapes = ((2, 3, 7, 18), (2, 1, 1, 18), (1, 3, 7, 1), (7, 18), (18,), (1,), ())
    for shape in shapes:
        yield Sample(Attention(1.0), (*operands, cases.floats(*shape, seed=3)))
    hidden = cases.floats(7, 18)
    hidden[0], hidden[1, 3:], hidden[2, 5], hidden[3, :16] = (-np.inf,) * 4
    hidden[4], hidden[5, 2] = -3.4e38, np.nan
    for guarded in (False, True):
        op = Attention(0.5, guarded=guarded)
        yield Sample(op, (*operands, hidden))
        for start in (0, -3, 11):
            yield Sample(op.replace(causal=True, start=start), operands)
        yield Sample(op.replace(causal=True), (*operands, hidden))


def _forms() -> Iterator[Sample]:
    packed = cases.floats(2, 9, 3, 4, 16)
    op = Attention(0.25, "nq0hd,nk1hd,nk2he->nqhe")
    yield Sample(op, (packed, packed, packed))
    packed = cases.floats(9, 2, 4, 2, 8)
    op = Attention(0.25, "qnhd,knh0d,knh1e->qnhe")
    yield Sample(op, (cases.floats(7, 2, 4, 8), packed, packed))
    q, k, v = cases.floats(2, 6, 7, 5), cases.floats(2, 3, 8, 5), cases.floats(2, 3, 8)
    v = np.repeat(v[..., None], 18, axis=3) * cases.floats(18, seed=4)
    yield Sample(Attention(0.5, "nhqd,nhkd,nhke->nhqe"), (q, k, v))
    turned = np.ascontiguousarray(k.transpose(0, 1, 3, 2))
    yield Sample(Attention(0.5, "nhqd,nhdk,nhke->nqhe"), (q, turned, v))


def _extremes() -> Iterator[Sample]:
    q, k, v = _operands(1, 1, 9, 20, 4, 16)
    yield Sample(Attention(100.0), (q, k, v))
    yield Sample(Attention(1.0), (q, k, v * np.float32(1e38)))
    q[0, 1, 0, 2], q[0, 2, 0, 1], q[0, 3] = np.nan, np.inf, 1e30
    yield Sample(Attention(1.0), (q, k, v))
    v[0, 3, 0, 2], v[0, 4, 0, 3] = np.nan, np.inf
    yield Sample(Attention(1.0), (np.zeros_like(q), k, v))
