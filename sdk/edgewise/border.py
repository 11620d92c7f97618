"""What goes into a function and comes out of it, as its caller sees it."""

from __future__ import annotations

from edgewise.dtype import DType
from edgewise.ir.graph import Graph
from edgewise.named import NamedTuple
from edgewise.types import OptionalType, SequenceType, Unranked, ValueType


class TensorInfo(NamedTuple):
    """An input or an output of a model.

    Attributes:
        name: Its name in the source model.
        dtype: Its element type.
        shape: Its sizes; a text (``N``, ``2*T + 1``) where only a run knows.
        form: ``tensor``; or ``sequence``, ``optional`` or ``optional sequence``, of
            which the rest then says what it holds.
    """

    name: str
    dtype: DType
    shape: tuple[int | str, ...]
    form: str = "tensor"


def inputs_of(graph: Graph) -> tuple[TensorInfo, ...]:
    """What a run takes."""
    return tuple(_info(value.node.label, value.kind) for value in graph.inputs)


def outputs_of(graph: Graph) -> tuple[TensorInfo, ...]:
    """What a run gives."""
    pairs = zip(graph.output_names, graph.outputs, strict=True)
    return tuple(_info(name, value.kind) for name, value in pairs)


def _info(name: str, type_: ValueType) -> TensorInfo:
    forms = []
    held: ValueType | Unranked = type_
    while isinstance(held, OptionalType | SequenceType):
        forms.append("optional" if isinstance(held, OptionalType) else "sequence")
        held = held.element
    sizes = () if isinstance(held, Unranked) else held.shape
    shape = tuple(dim if isinstance(dim, int) else str(dim) for dim in sizes)
    return TensorInfo(name, held.dtype, shape, " ".join(forms) or "tensor")
