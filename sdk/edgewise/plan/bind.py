"""Sizes for the symbols of a graph: every op and every type without symbols."""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.dims import Dim
from edgewise.errors import ShapeError
from edgewise.ir.op import Op
from edgewise.plan.flat import ABSENT, Flat
from edgewise.types import TensorType, ValueType


def bind(
    flat: Flat, sizes: Mapping[str, Dim]
) -> tuple[list[Op], list[ValueType], list[int]]:
    """Ops of all nodes, types of all values, bytes of all values, at ``sizes``.

    Only what a symbol reaches is inferred anew.

    Raises:
        ShapeError: A size stays unknown, or the sizes do not fit an op.
    """
    ops = [node.op for node in flat.nodes]
    types = list(flat.types)
    if not flat.static:
        for number, _ in flat.leaves:
            types[number] = types[number].bind(sizes)
        for index, node in enumerate(flat.nodes):
            reads = flat.reads[index]
            if not flat.symbolic[index] and all(
                number == ABSENT or types[number] is flat.types[number]
                for number in reads
            ):
                continue
            op = node.op.bind(sizes) if flat.symbolic[index] else node.op
            ops[index] = op
            inputs = tuple(None if n == ABSENT else types[n] for n in reads)
            try:
                made = op.infer_all(inputs)
            except ShapeError as error:
                raise _with_assumptions(error, flat) from error
            for number, type_ in zip(flat.writes[index], made, strict=True):
                types[number] = type_
    return ops, types, [_bytes(type_) for type_ in types]


def _with_assumptions(error: ShapeError, flat: Flat) -> ShapeError:
    """The error, with what the graph takes for granted, which may be the cause."""
    assumed = dict.fromkeys(filter(None, (n.op.assumption() for n in flat.nodes)))
    if not assumed:
        return error
    return ShapeError(
        f"{error}; the model was converted such that {', '.join(assumed)}"
    )


def _bytes(type_: ValueType) -> int:
    """Bytes in flat memory: none for what Python objects hold."""
    if not isinstance(type_, TensorType):
        return 0
    count = 1
    for size in type_.shape:
        if not isinstance(size, int):
            raise ShapeError(f"{type_}: the size {size} is known neither here nor now")
        count *= size
    return count * type_.dtype.bits // 8
