"""Sizes that only a run knows, as tensors of a graph in ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.dims import Call, Dim, Expr
from edgewise.errors import InternalError
from edgewise.ir.graph import Value
from edgewise.types import TensorType

if TYPE_CHECKING:  # a writer has one of these
    from edgewise.convert.to_onnx.writer import Writer

_PLAIN = {"max": "Max", "min": "Min"}


class Sizes:
    """Writes sizes as vectors of one whole number."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._sources: dict[str, Callable[[], str]] = {}
        self._known: dict[Dim, str] = {}

    def read_shape(self, value: Value) -> None:
        """Symbols that are sizes of a value."""
        if not isinstance(value.kind, TensorType):
            return
        for axis, dim in enumerate(value.kind.shape):
            if isinstance(dim, Expr):
                self._sources.setdefault(str(dim), self._axis(value, axis))

    def _axis(self, value: Value, axis: int) -> Callable[[], str]:
        def found() -> str:
            name = self._writer.name(value)
            return self._writer.emit("Shape", name, start=axis, end=axis + 1)

        return found

    def read_vector(self, name: str, symbols: Sequence[str]) -> None:
        """Symbols that are elements of a vector, or a scalar."""
        for place, key in enumerate(symbols):
            self._sources.setdefault(key, self._element(name, place))

    def _element(self, name: str, place: int) -> Callable[[], str]:
        def found() -> str:
            flat = self._writer.emit("Reshape", name, self._whole(-1))
            ends = (self._whole(place), self._whole(place + 1))
            return self._writer.emit("Slice", flat, *ends)

        return found

    def vector(self, dims: Sequence[Dim]) -> str:
        """Sizes as a vector."""
        if all(isinstance(dim, int) for dim in dims):
            return self._writer.constant(np.asarray(dims, np.int64))
        parts = [self.one(dim) for dim in dims]
        return parts[0] if len(parts) == 1 else self._emit("Concat", *parts, axis=0)

    def scalar(self, dim: Dim) -> str:
        """A size as a scalar."""
        if isinstance(dim, int):
            return self._writer.constant(np.asarray(dim, np.int64))
        empty = self._writer.constant(np.zeros(0, np.int64))
        return self._emit("Reshape", self.one(dim), empty)

    def one(self, dim: Dim) -> str:
        """A size as a vector of one."""
        if isinstance(dim, int):
            return self._whole(dim)
        if dim not in self._known:
            source = self._sources.get(str(dim))
            self._known[dim] = source() if source else self._sum(dim)
        return self._known[dim]

    def _sum(self, dim: Expr) -> str:
        terms = []
        for monomial, factor in dim.terms.items():
            parts = [self._atom(atom) for atom in monomial]
            if factor != 1 or not parts:
                parts.append(self._whole(factor))
            terms.append(reduce(lambda a, b: self._emit("Mul", a, b), parts))
        return reduce(lambda a, b: self._emit("Add", a, b), terms)

    def _atom(self, atom: str | Call) -> str:
        if isinstance(atom, str):
            source = self._sources.get(atom)
            if source is None:
                raise InternalError(f"nothing says what {atom} is")
            symbol = Expr({(atom,): 1})
            if symbol not in self._known:
                self._known[symbol] = source()
            return self._known[symbol]
        a, b = map(self.one, atom.args)
        if atom.function in _PLAIN:
            return self._emit(_PLAIN[atom.function], a, b)
        rest = self._emit("Mod", a, b)  # has the sign of b, as rounding down wants it
        if atom.function == "mod":
            return rest
        return self._emit("Div", self._emit("Sub", a, rest), b)

    def _whole(self, number: int) -> str:
        return self._writer.constant(np.asarray([number], np.int64))

    def _emit(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self._writer.emit(op, *inputs, **attributes)
