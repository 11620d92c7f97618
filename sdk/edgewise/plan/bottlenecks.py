"""Inverted bottlenecks made one step where an image between their steps is large.

The three convolutions stay nodes of the graph; the last does the work of all, and what
the others make is never whole.  It pays where that would go out to memory and come
back: what fits the caches of a core is as well computed step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgewise.ir.op import Op
from edgewise.kernels.catalog.base import Binding
from edgewise.named import NamedTuple
from edgewise.plan.flat import ABSENT, Flat
from edgewise.plan.parts import NO_WORK, Find, bind_kernel
from edgewise.types import DType, TensorType, ValueType

LARGE = 1 << 20  # bytes: the second cache of most cores, or more
FILTER, PRODUCT = "depthwise_conv", "conv"
KERNELS = {FILTER: "depthwise_f32", PRODUCT: "product_f32"}
RESIDUAL = 4  # the slot of it in each of the three


class Merged(NamedTuple):
    """A graph with bottlenecks in the place of their last nodes.

    Attributes:
        flat: The graph; nodes whose work others do read nothing.
        ops: Its ops.
        bindings: Its kernels.
        gone: Values that are never whole.
    """

    flat: Flat
    ops: list[Op]
    bindings: list[Binding | None]
    gone: frozenset[int]


def merge(
    flat: Flat,
    ops: list[Op],
    types: Sequence[ValueType],
    bindings: list[Binding | None],
    find: Find,
    inside: Mapping[int, object],
) -> Merged:
    """Merge all that are worth it.

    Args:
        flat: The graph.
        ops: Its ops at these sizes.
        types: Types of its values.
        bindings: Kernels of its nodes.
        find: Which kernels take a call.
        inside: Values that lie in others.
    """
    filters = [n for n, op in enumerate(ops) if op.name == FILTER]
    merged = Merged(flat, ops, bindings, frozenset())
    if filters:
        search = _Search(flat, ops, types, bindings, inside)
        for index in filters:
            chain = search.chain(index)
            if chain is not None:
                merged = _merged(merged, types, find, chain)
    return merged


class _Search:
    """Finds the nodes around a depthwise convolution that make a bottleneck."""

    def __init__(
        self,
        flat: Flat,
        ops: Sequence[Op],
        types: Sequence[ValueType],
        bindings: Sequence[Binding | None],
        inside: Mapping[int, object],
    ) -> None:
        self._flat, self._ops, self._types = flat, ops, types
        self._bindings, self._inside = bindings, inside
        self._makers = {n: i for i, made in enumerate(flat.writes) for n in made}
        self._readers: dict[int, list[int]] = {}
        for index, reads in enumerate(flat.reads):
            for number in reads:
                self._readers.setdefault(number, []).append(index)
        for number in (*flat.outputs, *flat.updates.values()):
            self._readers.setdefault(number, []).append(ABSENT)

    def chain(self, index: int) -> tuple[int, ...] | None:
        """The nodes of the bottleneck around ``index``, in order; ``None``: none."""
        last = self._only_reader(self._flat.writes[index][0])
        if last == ABSENT or not self._is(last, PRODUCT):
            return None
        if not self._is(index, FILTER) or self._has_residual(index):
            return None
        x = self._flat.reads[index][0]
        first = self._makers.get(x, ABSENT)
        if first != ABSENT and self._only_reader(x) == index:
            plain = self._is(first, PRODUCT) and not self._has_residual(first)
            if plain and self._bytes(x) > LARGE:
                return (first, index, last)
        narrows = self._bytes(self._flat.writes[last][0]) < self._bytes(x)
        if narrows and self._bytes(self._flat.writes[index][0]) > LARGE:
            return (index, last)
        return None

    def _only_reader(self, number: int) -> int:
        readers = self._readers.get(number, [])
        return readers[0] if len(readers) == 1 else ABSENT

    def _is(self, index: int, name: str) -> bool:
        """Whether the usual kernel does a node, on values that lie in one piece."""
        binding = self._bindings[index]
        if self._ops[index].name != name or binding is None:
            return False
        if [launch.symbol for launch in binding.launches] != [KERNELS[name]]:
            return False
        values = (*self._flat.reads[index], *self._flat.writes[index])
        return not any(number in self._inside for number in values)

    def _has_residual(self, index: int) -> bool:
        reads = self._flat.reads[index]
        return len(reads) > RESIDUAL and reads[RESIDUAL] != ABSENT

    def _bytes(self, number: int) -> int:
        type_ = self._types[number]
        flat = isinstance(type_, TensorType) and type_.dtype is DType.F32
        return type_.bytes if flat else 0


def _merged(
    merged: Merged, types: Sequence[ValueType], find: Find, chain: tuple[int, ...]
) -> Merged:
    """With one more bottleneck, if a kernel takes it."""
    flat, last = merged.flat, chain[-1]
    reads = list(flat.reads)
    first, *rest = (_filled(flat.reads[index], RESIDUAL + 1) for index in chain)
    expand = first[:RESIDUAL] if len(chain) > len(KERNELS) else (first[0], *_ABSENT)
    filters = rest[0] if len(chain) > len(KERNELS) else first
    reads[last] = (*expand, *filters[1:RESIDUAL], *rest[-1][1:])
    for index in chain[:-1]:
        reads[index] = ()
    ops, bindings = list(merged.ops), list(merged.bindings)
    ops[last] = _op([merged.ops[index] for index in chain])
    flat = flat.reading(reads)
    binding = bind_kernel(flat, types, last, ops[last], find)
    if binding is None:
        return merged
    for index in chain[:-1]:
        bindings[index] = NO_WORK
    bindings[last] = binding
    gone = (flat.writes[index][0] for index in chain[:-1])
    return Merged(flat, ops, bindings, merged.gone.union(gone))


_ABSENT = (ABSENT,) * 3


def _filled(reads: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*reads, *(ABSENT,) * (count - len(reads)))


def _op(parts: Sequence[Op]) -> Op:
    """The op that is all of ``parts``."""
    from edgewise.ops.bottleneck import merged  # noqa: PLC0415 - few models need it

    return merged(*parts)
