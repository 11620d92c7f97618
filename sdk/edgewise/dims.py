"""Sizes that may be unknown until run time: integers, symbols and their arithmetic.

A ``Dim`` is an ``int`` or an ``Expr``.  An ``Expr`` is a polynomial with whole
coefficients over atoms; an atom is a symbol (``N``) or an operation that a polynomial
cannot hold (``floordiv(T + 1, 2)``).  Equal expressions are equal objects by value, so
``2*T + T == 3*T`` and a shape may be compared with ``==``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from edgewise.errors import ShapeError

MAX_TERMS = 64
MAX_DEGREE = 16  # symbols that one term multiplies
MAX_CALLS = 16  # operations within operations
NAME = r"[A-Za-z_]\w*"

Atom: TypeAlias = "str | Call"
Monomial: TypeAlias = tuple[Atom, ...]


class Call:
    """An operation on dims that stays unevaluated: floordiv, mod, max or min."""

    __slots__ = ("args", "depth", "function")

    def __init__(self, function: str, args: tuple[Dim, ...]) -> None:
        self.function, self.args = function, args
        self.depth = 1 + max(map(_depth, args), default=0)
        if self.depth > MAX_CALLS:
            raise ShapeError(f"a symbolic size nests more than {MAX_CALLS} deep")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Call)
            and self.function == other.function
            and self.args == other.args
        )

    def __hash__(self) -> int:
        return hash((self.function, self.args))

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


class Expr:
    """A polynomial over atoms that is not a plain integer."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = dict(sorted(terms.items(), key=lambda item: _order(item[0])))
        self._hash = hash(tuple(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim) -> Dim:
        total = dict(self.terms)
        for monomial, factor in _terms(other).items():
            total[monomial] = total.get(monomial, 0) + factor
        return _normal(total)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _normal({monomial: -factor for monomial, factor in self.terms.items()})

    def __sub__(self, other: Dim) -> Dim:
        return self + (-other)

    def __rsub__(self, other: Dim) -> Dim:
        return -self + other

    def __mul__(self, other: Dim) -> Dim:
        product: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in _terms(other).items():
                if len(left) + len(right) > MAX_DEGREE:
                    raise ShapeError(
                        f"a symbolic size multiplies more than {MAX_DEGREE} symbols"
                    )
                key = tuple(sorted(left + right, key=str))
                product[key] = product.get(key, 0) + a * b
        return _normal(product)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floordiv(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return mod(self, other)

    def __str__(self) -> str:
        parts = []
        for monomial, factor in self.terms.items():
            text = "*".join(map(str, monomial))
            if not monomial:
                text = str(factor)
            elif factor != 1:
                text = f"{factor}*{text}"
            parts.append(text)
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


Dim: TypeAlias = int | Expr
Shape: TypeAlias = tuple[Dim, ...]


def _depth(dim: Dim) -> int:
    """How deep operations nest in it."""
    if isinstance(dim, int):
        return 0
    atoms = (atom for monomial in dim.terms for atom in monomial)
    return max((a.depth for a in atoms if isinstance(a, Call)), default=0)


def _order(monomial: Monomial) -> tuple[int, str]:
    return (-len(monomial), "*".join(map(str, monomial)))


def _terms(dim: Dim) -> Mapping[Monomial, int]:
    return dim.terms if isinstance(dim, Expr) else {(): dim}


def _normal(terms: dict[Monomial, int]) -> Dim:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    if len(kept) > MAX_TERMS:
        raise ShapeError(f"a symbolic size has more than {MAX_TERMS} terms")
    return Expr(kept)


def _divide_exactly(dim: Expr, by: Dim) -> Dim | None:
    divisor = _terms(by)
    if len(divisor) != 1:
        return 1 if dim == by else None
    ((monomial, factor),) = divisor.items()
    quotient: dict[Monomial, int] = {}
    for left, a in dim.terms.items():
        rest = list(left)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if a % factor:
            return None
        quotient[tuple(rest)] = a // factor
    return _normal(quotient)


def floordiv(a: Dim, b: Dim) -> Dim:
    """``a // b`` rounded down; exact wherever the terms divide."""
    if b == 0:
        raise ShapeError(f"a size is divided by zero: {a} // 0")
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if a == 0:
        return 0
    if isinstance(a, Expr):
        exact = _divide_exactly(a, b)
        if exact is not None:
            return exact
    return Expr({(Call("floordiv", (a, b)),): 1})


def mod(a: Dim, b: Dim) -> Dim:
    """``a - b * (a // b)``."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return a % b
    quotient = floordiv(a, b)
    return a - b * quotient


def ceildiv(a: Dim, b: Dim) -> Dim:
    """``a / b`` rounded up."""
    return -floordiv(-a, b)


def _extreme(function: str, pick: Callable[[int, int], int], a: Dim, b: Dim) -> Dim:
    difference = a - b
    if isinstance(difference, int):
        return a if pick(difference, 0) == difference else b
    return Expr({(Call(function, tuple(sorted((a, b), key=str))),): 1})


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger size."""
    return _extreme("max", max, a, b)


def minimum(a: Dim, b: Dim) -> Dim:
    """The smaller size."""
    return _extreme("min", min, a, b)


def symbol(name: str) -> Expr:
    """A size called ``name``, unknown until run time."""
    if not re.fullmatch(NAME, name, re.ASCII):
        raise ShapeError(f"{name!r} cannot name a size: want letters, digits and _")
    return Expr({(name,): 1})


def product(dims: Iterable[Dim]) -> Dim:
    """Number of elements of a shape."""
    return math.prod(dims, start=1)


FUNCTIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": floordiv,
    "mod": mod,
    "max": maximum,
    "min": minimum,
}


def symbols(dim: Dim) -> frozenset[str]:
    """Names of the symbols in ``dim``."""
    if isinstance(dim, int):
        return frozenset()
    found: set[str] = set()
    for monomial in dim.terms:
        for atom in monomial:
            found |= (
                {atom}
                if isinstance(atom, str)
                else set().union(*map(symbols, atom.args))
            )
    return frozenset(found)


def bind(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """``dim`` with the symbols in ``values`` replaced."""
    if isinstance(dim, int):
        return dim
    if len(dim.terms) == 1:  # most are a symbol alone: nothing to add up
        ((monomial, factor),) = dim.terms.items()
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], str):
            return values.get(monomial[0], dim)
    total: Dim = 0
    for monomial, factor in dim.terms.items():
        term: Dim = factor
        for atom in monomial:
            term = term * _bind_atom(atom, values)
        total = total + term
    return total


def _bind_atom(atom: Atom, values: Mapping[str, Dim]) -> Dim:
    if isinstance(atom, str):
        return values.get(atom, Expr({(atom,): 1}))
    a, b = (bind(arg, values) for arg in atom.args)
    return FUNCTIONS[atom.function](a, b)
