"""Transforms of minimal filtering: their matrices, and code that applies one.

F(m, 3) makes ``m`` sums of three products each by ``m + 2`` multiplications: sums and
weights are values of polynomials at ``m + 1`` points and infinity (Toom-Cook; Winograd,
1980; Lavin and Gray, 2015).  y = A [(G w) * (B x)].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at, store_at
from edgewise.kernels.native.vector import I64, constant, f32x16, fused_multiply_add

Matrix = list[list[float]]
TAPS = 3
# Points whose squares are 1/2 and 2 keep the error of F(4, 3) four times below that of
# the usual 1 and 2: what grows with the powers of one shrinks with those of the other.
POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.5**0.5, -(0.5**0.5), 2.0**0.5, -(2.0**0.5))}


class Matrices(NamedTuple):
    """``outputs`` is A, ``weights`` G, ``inputs`` B."""

    outputs: Matrix
    weights: Matrix
    inputs: Matrix


def matrices(size: int) -> Matrices:
    """Those of F(``size``, 3); the last point is infinity."""
    points = POINTS[size]
    others = [[q for q in points if q != p] for p in points]
    norms = [
        math.prod(p - q for q in rest) for p, rest in zip(points, others, strict=True)
    ]
    outputs = [[*(p**i for p in points), float(i == size - 1)] for i in range(size)]
    weights = [
        [p**i / n for i in range(TAPS)] for p, n in zip(points, norms, strict=True)
    ]
    inputs = [[*_polynomial(rest), 0.0] for rest in others]
    return Matrices(
        outputs, [*weights, [0.0, 0.0, 1.0]], [*inputs, _polynomial(points)]
    )


def _polynomial(roots: Sequence[float]) -> list[float]:
    """Coefficients of the product of all (x - root), the constant first."""
    found = [1.0]
    for root in roots:
        found = [
            a - root * b for a, b in zip([0.0, *found], [*found, 0.0], strict=True)
        ]
    return [_clean(c) for c in found]


def _clean(value: float) -> float:
    """Without the rounding of square roots where they leave a quarter of an integer."""
    near = round(value * 4) / 4
    return near if abs(near - value) < 1e-12 else value


def make_lines(matrix: Matrix):
    """``lines(source, step, target, pace)``: a matrix times vectors of 16 lanes.

    Vectors lie ``step`` bytes apart from ``source`` on; so do results from ``target``.
    """
    arguments = (types.int64,) * 4

    @intrinsic
    def lines(context, source, step, target, pace):
        def generate(cg, builder, _, args):
            source, step, target, pace = args
            given = [
                load_at(builder, _along(builder, source, step, i), f32x16.llvm)
                for i in range(len(matrix[0]))
            ]
            made = _Product(cg, builder).rows(matrix, given)
            for i, value in enumerate(made):
                store_at(builder, value, _along(builder, target, pace, i))
            return cg.get_dummy_value()

        return types.void(*arguments), generate

    return lines


def _along(builder, start, step, count: int):
    return builder.add(start, builder.mul(step, ir.Constant(I64, count)))


class _Product:
    """Emits a product with a constant matrix; what rows share is computed once."""

    def __init__(self, context, builder) -> None:
        self._context, self._builder = context, builder

    def rows(self, matrix: Matrix, given: list) -> list:
        matrix, given = self._pair_columns(matrix, given)
        made: list = [None] * len(matrix)
        for i, row in enumerate(matrix):
            if made[i] is not None:
                continue
            twin = _twin(matrix, i)
            if twin is None:
                made[i] = self._sum(row, given)
                continue
            same = [
                a if a == b else 0.0 for a, b in zip(row, matrix[twin], strict=True)
            ]
            other = [
                a if a != b else 0.0 for a, b in zip(row, matrix[twin], strict=True)
            ]
            factor = next(c for c in reversed(other) if c)
            even = self._sum(same, given)
            odd = self._sum([c / factor for c in other], given)
            made[i] = self._add(factor, odd, even)
            made[twin] = self._add(-factor, odd, even)
        return made

    def _pair_columns(self, matrix: Matrix, given: list) -> tuple[Matrix, list]:
        """Columns that differ in signs only become those of a sum and a difference."""
        columns = [list(column) for column in zip(*matrix, strict=True)]
        given = list(given)
        for j, k in itertools.combinations(range(len(columns)), 2):
            one, two = columns[j], columns[k]
            alike = [abs(a) == abs(b) for a, b in zip(one, two, strict=True)]
            if all(alike) and sum(map(bool, one)) > 1:
                x, y = given[j], given[k]
                given[j], given[k] = self._add(1.0, y, x), self._add(-1.0, y, x)
                columns[k] = [
                    a if a != b else 0.0 for a, b in zip(one, two, strict=True)
                ]
                columns[j] = [
                    a if a == b else 0.0 for a, b in zip(one, two, strict=True)
                ]
        return [list(row) for row in zip(*columns, strict=True)], given

    def _sum(self, row: Sequence[float], given: list):
        total = None
        for factor, value in sorted(
            zip(row, given, strict=True), key=lambda pair: abs(pair[0]) != 1.0
        ):
            if factor:
                total = self._add(factor, value, total)
        return total

    def _add(self, factor: float, value, total):
        """``factor * value + total``; no total is zero."""
        if total is None:
            return value if factor == 1.0 else self._scaled(factor, value)
        if factor == 1.0:
            return self._builder.fadd(total, value)
        if factor == -1.0:
            return self._builder.fsub(total, value)
        scale = constant(f32x16, factor)
        return fused_multiply_add(self._context, self._builder, scale, value, total)

    def _scaled(self, factor: float, value):
        return self._builder.fmul(constant(f32x16, factor), value)


def _twin(matrix: Matrix, i: int) -> int | None:
    """A later row that has the numbers of row ``i``, some of them negated."""
    for j in range(i + 1, len(matrix)):
        pairs = list(zip(matrix[i], matrix[j], strict=True))
        signs = [a == b for a, b in pairs if a]
        if all(abs(a) == abs(b) for a, b in pairs) and 0 < sum(signs) < len(signs):
            return j
    return None
