"""Integer vectors that the graph computes at run time, written like numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.run_time import MOST, dims, integer
from edgewise.dims import Dim, Expr, Shape
from edgewise.ir.graph import Value
from edgewise.ir.op import Op
from edgewise.ops.binary import Add, Div, Maximum, Minimum, Mul, Sub
from edgewise.ops.choose import Cast, Where
from edgewise.ops.index import Gather
from edgewise.ops.logic import Equal, Less
from edgewise.ops.order import Cumsum, TopK
from edgewise.ops.reduce import ReduceProd, ReduceSum
from edgewise.ops.scatter import ScatterElements
from edgewise.ops.shape import Concat, Reshape
from edgewise.types import DType

Term: TypeAlias = "Vector | Dim"


class Vector:
    """An i64 (or bool) vector while an operator is imported; arithmetic makes nodes.

    Attributes:
        value: The vector in the graph.
    """

    def __init__(self, ctx: OpContext, value: Value) -> None:
        self._ctx, self.value = ctx, value

    @classmethod
    def input(cls, ctx: OpContext, index: int) -> Vector:
        """Input ``index``; a scalar is a vector of one."""
        value = ctx[index]
        if value.type.rank == 0:
            value = ctx.emit(Reshape((1,)), value)
        count = value.type.elements
        if value.type.rank != 1 or isinstance(count, Expr) or count > MOST:
            raise ctx.unsupported(
                f"its input {index} ({ctx.node.input[index]!r}) is {value.type}: only a"
                " run knows how many numbers that is",
                "give it a fixed length before export",
            )
        return cls(ctx, integer(ctx, value))

    @classmethod
    def of(cls, ctx: OpContext, sizes: Shape) -> Vector:
        """Sizes and numbers that are known by now, or bound before."""
        return cls(ctx, dims(ctx, sizes))

    @property
    def count(self) -> int:
        """How many elements it has."""
        return self.value.type.dims[0]

    @property
    def known(self) -> list[Dim | None]:
        """Its elements, ``None`` for one that only a run knows."""
        elements = self._ctx.world.sizes.elements(self.value)
        return [None] * self.count if elements is None else elements

    def read(self, given: list[Dim | None] | None = None) -> Shape:
        """Its elements as sizes; the run stops where one is negative."""
        return self._ctx.read(self.value, given)

    def _with(self, op: Op, *others: Term) -> Vector:
        values = [self._ctx_value(other) for other in others]
        return Vector(self._ctx, self._ctx.emit(op, self.value, *values))

    def _ctx_value(self, term: Term) -> Value:
        return term.value if isinstance(term, Vector) else dims(self._ctx, [term])

    def __add__(self, other: Term) -> Vector:
        return self._with(Add(), other)

    def __sub__(self, other: Term) -> Vector:
        return self._with(Sub(), other)

    def __mul__(self, other: Term) -> Vector:
        return self._with(Mul(), other)

    def quotient(self, other: Term) -> Vector:
        """Division towards zero."""
        return self._with(Div(), other)

    def at_least(self, low: Term) -> Vector:
        """The larger of each two."""
        return self._with(Maximum(), low)

    def at_most(self, high: Term) -> Vector:
        """The smaller of each two."""
        return self._with(Minimum(), high)

    def below(self, other: Term) -> Vector:
        """Whether each is less."""
        return self._with(Less(), other)

    def equals(self, other: Term) -> Vector:
        """Whether each two are equal."""
        return self._with(Equal(), other)

    def where(self, then: Term, otherwise: Term) -> Vector:
        """Where this holds ``then``, else ``otherwise``."""
        return self._with(Where(), then, otherwise)

    def counted(self) -> Vector:
        """Truth as 0 and 1."""
        return self.cast(DType.I64)

    def cast(self, dtype: DType) -> Vector:
        """The same bits of whole numbers, as another type."""
        return self._with(Cast(dtype.value))

    def take(self, places: Term) -> Vector:
        """The elements at ``places``."""
        return self._with(Gather(0), places)

    def put(self, places: Vector, numbers: Term) -> Vector:
        """This, with ``numbers`` at ``places``; one place outside ends the run."""
        if not isinstance(numbers, Vector):
            numbers = Vector.of(self._ctx, (numbers,) * places.count)
        return self._with(ScatterElements(0), places, numbers)

    def followed_by(self, other: Vector) -> Vector:
        """Both, one behind the other."""
        return self._with(Concat(0), other)

    def product(self) -> Vector:
        """All multiplied, as a vector of one."""
        return self._with(ReduceProd((0,), True))

    def total(self) -> Vector:
        """All added, as a vector of one."""
        return self._with(ReduceSum((0,), True))

    def running(self) -> Vector:
        """Each added to all before it."""
        return self._with(Cumsum(0, False, False))

    def order(self) -> Vector:
        """The places of its elements from the smallest on."""
        places = self._ctx.emit_all(TopK(self.count, 0, False), self.value)[1]
        return Vector(self._ctx, places)

    def from_front(self, size: Term) -> Vector:
        """Indices that count from the end where they are negative, from the front."""
        return self.below(0).where(self + size, self)


def numbers(ctx: OpContext, *items: int) -> Vector:
    """A constant vector."""
    return Vector(ctx, ctx.constant(np.array(items, np.int64)))
