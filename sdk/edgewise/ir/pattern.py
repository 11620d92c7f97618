"""Patterns over values: what a rewrite rule looks for.

``a(Add, a(MatMul, "x", "w", name="product"), "bias")`` matches a sum with a product in
either operand, and captures four values.  A text captures any value (equal texts, equal
values), a number matches a constant of nothing but it, ``None`` an absent input,
and ``...`` at the end whatever inputs follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import EllipsisType
from typing import NamedTuple, TypeAlias

import numpy as np

from edgewise.ir.graph import Node, Value, constant_array
from edgewise.ir.op import Op

# Exporters round the numbers of a formula to float32.
TOLERANCE = 1e-5


class Match(NamedTuple):
    """One way a pattern fits.

    Attributes:
        captures: Values by the names in the pattern.
        nodes: Nodes that the pattern's ops matched, the root first.
    """

    captures: Mapping[str, Value | None]
    nodes: tuple[Node, ...]


class Pattern:
    """An op with patterns for its inputs.

    Attributes:
        ops: Classes of which one must match.
        inputs: What its inputs must match; ``...`` at the end stands for any more.
        name: What its value is captured as; empty where it is not.
    """

    __slots__ = ("inputs", "name", "ops")

    def __init__(
        self,
        ops: tuple[type[Op], ...],
        inputs: tuple[Term, ...],
        name: str,
    ) -> None:
        self.ops, self.inputs, self.name = ops, inputs, name

    def names(self) -> frozenset[str]:
        """Everything the pattern captures."""
        found = {self.name} - {""}
        for term in self.inputs:
            if isinstance(term, str):
                found.add(term)
            elif isinstance(term, Pattern):
                found |= term.names()
        return frozenset(found)

    def matches(self, value: Value) -> Iterator[Match]:
        """Every way the pattern fits ``value``."""
        return _fit(self, value, Match({}, ()))


Term: TypeAlias = "Pattern | str | float | EllipsisType | None"


def a(ops: type[Op] | tuple[type[Op], ...], *inputs: Term, name: str = "") -> Pattern:
    """A value of one of ``ops`` whose inputs match; without inputs, any inputs do."""
    classes = ops if isinstance(ops, tuple) else (ops,)
    return Pattern(classes, inputs or (...,), name)


def _fit(term: Term, value: Value | None, so_far: Match) -> Iterator[Match]:
    if isinstance(term, str):
        yield from _capture(term, value, so_far)
    elif term is None:
        if value is None:
            yield so_far
    elif not isinstance(term, Pattern):
        if isinstance(term, float) and _is_number(value, term):
            yield so_far
    elif value is not None and value.index == 0 and isinstance(value.op, term.ops):
        inner = Match(so_far.captures, (*so_far.nodes, value.node))
        for named in _capture(term.name, value, inner) if term.name else (inner,):
            yield from _fit_inputs(term, value.node, named)


def _capture(name: str, value: Value | None, so_far: Match) -> Iterator[Match]:
    if name not in so_far.captures:
        yield Match({**so_far.captures, name: value}, so_far.nodes)
    elif so_far.captures[name] == value:
        yield so_far


def _fit_inputs(pattern: Pattern, node: Node, so_far: Match) -> Iterator[Match]:
    terms, given = pattern.inputs, node.inputs
    if terms[-1:] == (...,):
        terms = terms[:-1]
        given = given[: len(terms)]
    # Absent inputs at the end need not be written down.
    given = (*given, *(None,) * (len(terms) - len(given)))
    if len(terms) != len(given):
        return
    yield from _fit_all(terms, given, so_far)
    if node.op.commutative and len(terms) == 2 and given[0] != given[1]:
        yield from _fit_all(terms, given[::-1], so_far)


def _fit_all(
    terms: tuple[Term, ...], values: tuple[Value | None, ...], so_far: Match
) -> Iterator[Match]:
    if not terms:
        yield so_far
        return
    for first in _fit(terms[0], values[0], so_far):
        yield from _fit_all(terms[1:], values[1:], first)


def _is_number(value: Value | None, wanted: float) -> bool:
    number = scalar(value)
    return number is not None and bool(np.isclose(number, wanted, TOLERANCE, 0.0))


def scalar(value: Value | None) -> float | None:
    """The number that a constant of one element holds; ``None`` for anything else."""
    array = constant_array(value)
    if array is None or array.size != 1 or array.dtype.kind not in "fiu":
        return None
    return float(array.reshape(()))
