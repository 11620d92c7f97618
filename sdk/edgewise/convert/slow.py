"""Ops that no kernel takes for nothing but the type of their elements."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

from edgewise.errors import EdgewiseError
from edgewise.ir.binders import type_symbols
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module
from edgewise.kernels.catalog.base import Call, find
from edgewise.plan.bind import bind
from edgewise.plan.flat import ABSENT, Flat
from edgewise.types import DType, TensorType

logger = logging.getLogger(__name__)

SIZES = (1, 64)  # that open sizes are tried with: which, seldom decides about a kernel


def tell(module: Module) -> None:
    """Warn once where kernels would do in float32 what references do as it is."""
    found: Counter[str] = Counter()
    total = 0
    for graph in module.functions.values():
        if any(map(_odd, _types(graph))):  # as hardly any model has
            slow = _slow(graph)
            found.update(dtype.value for dtype in slow)
            total += len(slow)
    if total:
        logger.warning(
            "%d ops run by reference, not by kernels, for their elements (%s); a model"
            " exported in float32 is faster",
            total,
            ", ".join(f"{dtype} {count}" for dtype, count in sorted(found.items())),
        )


def _types(graph: Graph) -> Iterator[object]:
    for node in graph.nodes():
        yield from node.types


def _odd(kind: object) -> bool:
    """Whether it holds fractions, and not in float32."""
    return (
        isinstance(kind, TensorType)
        and kind.dtype.is_float
        and kind.dtype is not DType.F32
    )


def _slow(graph: Graph) -> list[DType]:
    """The odd element type of every op that only it keeps from a kernel."""
    flat = Flat(graph)
    names = type_symbols([kind for node in graph.nodes() for kind in node.types])
    for size in SIZES:
        try:
            return list(_slow_nodes(flat, dict.fromkeys(names, size)))
        except EdgewiseError:  # too small, or too large for what the model slices
            logger.debug("sizes of %d do not fit the model", size)
    return []


def _slow_nodes(flat: Flat, sizes: dict[str, int]) -> Iterator[DType]:
    ops, types, _ = bind(flat, sizes)
    for op, reads, writes in zip(ops, flat.reads, flat.writes, strict=True):
        inputs = [None if n == ABSENT else types[n] for n in reads]
        outputs = [types[n] for n in writes]
        odd = [kind for kind in (*inputs, *outputs) if _odd(kind)]
        if op.view or not odd or any(k and k.is_object for k in (*inputs, *outputs)):
            continue
        call = Call(op, tuple(inputs), tuple(outputs))  # type: ignore[arg-type]  # tensors, as checked
        if find(call) is None and find(_plain(call)) is not None:
            yield odd[0].dtype  # type: ignore[union-attr]  # a tensor, as checked


def _plain(call: Call) -> Call:
    """The same on float32."""

    def plain(kind: TensorType | None) -> TensorType | None:
        return TensorType(DType.F32, kind.shape) if kind and _odd(kind) else kind

    outputs = tuple(kind for kind in map(plain, call.outputs) if kind)
    return call._replace(inputs=tuple(map(plain, call.inputs)), outputs=outputs)
