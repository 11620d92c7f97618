"""What binders tell: sizes of symbols that only a run knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from edgewise.dims import Dim, bind, symbols
from edgewise.errors import InternalError, ShapeError
from edgewise.ir.graph import Graph, Node
from edgewise.ir.sizes import solved
from edgewise.types import TensorType, ValueType

# No memory holds more elements.
MAX_SIZE = 1 << 44


def type_symbols(types: Sequence[ValueType | None]) -> frozenset[str]:
    """Symbols in the sizes of tensors; those of containers are none of a graph's."""
    dims = (d for t in types if isinstance(t, TensorType) for d in t.shape)
    return frozenset().union(*map(symbols, dims))


def given_by(node: Node, known: Collection[str]) -> frozenset[str]:
    """The symbols that a binder gives sizes, where those of ``known`` have theirs."""
    return frozenset(node.op.gives()) | (type_symbols(node.types) - set(known))


def learn(
    node: Node, values: Sequence[Any], sizes: Mapping[str, int]
) -> dict[str, int]:
    """All sizes that are known when a binder has run.

    Args:
        node: The binder, with its symbols.
        values: Its outputs.
        sizes: What was known before.

    Raises:
        ShapeError: A size is negative, beyond any memory, or not as declared.
    """
    if node.op.gives():
        found = dict(zip(node.op.gives(), values[0].reshape(-1).tolist(), strict=True))
    else:
        found = solved(_pairs(node, values, sizes))
    for name, size in found.items():
        if not 0 <= size <= MAX_SIZE or sizes.get(name, size) != size:
            want = sizes.get(name, f"0 to {MAX_SIZE}")
            raise _misfit(node, f"the size {name} = {size}; want {want}")
    known = {**sizes, **found}
    for dim, size in _pairs(node, values, known):
        if dim != size:
            shapes = ", ".join(str(list(v.shape)) for v in values)
            raise _misfit(node, f"{shapes}; want {', '.join(map(str, node.types))}")
    return known


def _pairs(
    node: Node, values: Sequence[Any], sizes: Mapping[str, int]
) -> list[tuple[Dim, int]]:
    return [
        (bind(dim, sizes), size)
        for type_, value in zip(node.types, values, strict=True)
        if isinstance(type_, TensorType)
        for dim, size in zip(type_.shape, value.shape, strict=True)
    ]


def _misfit(node: Node, what: str) -> ShapeError:
    return ShapeError(f"{node.op.name} (node {node.label!r}): got {what}")


def verify_binders(graph: Graph) -> None:
    """Raise unless every symbol has its size before a node needs it.

    Raises:
        InternalError: A symbol has none, or two, or a binder is no op that binds.
    """
    known = type_symbols([value.kind for value in graph.inputs])
    binders = {value.node for value in graph.binders}
    for node in graph.nodes():
        fresh: frozenset[str] = frozenset()
        if node in binders:
            fresh = given_by(node, known)
            _want_binder(node, known)
        lacking = node.op.symbols() - known - fresh
        if lacking:
            raise InternalError(f"{node}: nothing gives {sorted(lacking)} a size")
        known |= fresh


def _want_binder(node: Node, known: frozenset[str]) -> None:
    names = node.op.gives()
    if not names and not node.op.dynamic:
        raise InternalError(f"{node} is a binder, but gives no symbol its size")
    again = sorted(known.intersection(names))
    if again:
        raise InternalError(f"{node} gives {again[0]} a size, which has one")
    alone = frozenset().union(*map(symbols, filter(_is_plain, _dims(node))))
    hidden = sorted(given_by(node, known) - alone - set(names))
    if hidden:
        raise InternalError(f"{node}: {hidden[0]} stands alone in none of its sizes")


def _dims(node: Node) -> Iterator[Dim]:
    for type_ in node.types:
        if isinstance(type_, TensorType):
            yield from type_.shape


def _is_plain(dim: Dim) -> bool:
    return (
        not isinstance(dim, int) and len(symbols(dim)) == 1 and str(dim) in symbols(dim)
    )
