"""What the symbols of a graph are, told from the shapes it is given."""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.dims import Dim, Expr, bind, symbols
from edgewise.errors import ShapeError
from edgewise.ir.graph import Graph, Input
from edgewise.types import TensorType


def solve(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """The symbols in the types of the graph's inputs, when those have ``shapes``.

    Raises:
        ShapeError: A shape does not fit its input's type, or leaves a symbol open.
    """
    types = {
        value.op.key: value.kind
        for value in graph.inputs
        if isinstance(value.op, Input) and isinstance(value.kind, TensorType)
    }
    pairs: list[tuple[Dim, int]] = []
    for key, type_ in types.items():
        pairs += zip(type_.shape, _shape(key, type_, shapes), strict=True)
    found = solved(pairs)
    for key, type_ in types.items():
        for axis, (dim, size) in enumerate(zip(type_.shape, shapes[key], strict=True)):
            if bind(dim, found) != size or min(found.values(), default=0) < 0:
                got = ", ".join(map(str, shapes[key]))
                raise ShapeError(
                    f"input {key!r}: got [{got}]; want {type_}, where axis {axis} is"
                    f" {bind(dim, found)}"
                )
    return found


def _shape(
    key: str, type_: TensorType, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    shape = shapes.get(key)
    if shape is None:
        raise ShapeError(f"input {key!r} is missing; want {type_}")
    if len(shape) != type_.rank:
        raise ShapeError(f"input {key!r}: got {len(shape)} axes; want {type_}")
    return shape


def solved(pairs: list[tuple[Dim, int]]) -> dict[str, int]:
    """Sizes of symbols that stand alone in some dim, once others are known."""
    found: dict[str, int] = {}
    size = -1
    while size != len(found):
        size = len(found)
        for dim, value in pairs:
            name, number = _alone(bind(dim, found), value)
            if name:
                found.setdefault(name, number)
    return found


def _alone(dim: Dim, value: int) -> tuple[str, int]:
    """The symbol of ``factor * symbol + offset``, and its size there."""
    if not isinstance(dim, Expr):
        return "", 0
    names = symbols(dim)
    name = next(iter(names))
    offset = dim.terms.get((), 0)
    factor = dim.terms.get((name,), 0)
    if len(names) > 1 or not factor or len(dim.terms) != 1 + bool(offset):
        return "", 0
    return name, (value - offset) // factor
