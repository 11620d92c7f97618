"""What a model file holds: sections, functions, variables, precision, segments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from edgewise.border import TensorInfo
from edgewise.dims import Dim
from edgewise.format.container import open_file
from edgewise.ir.binders import type_symbols
from edgewise.ir.graph import Constant, Graph, Leaf, Value, Variable
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.plan.flat import Flat
from edgewise.plan.plan import make_plan
from edgewise.plan.stages import Stages, cut
from edgewise.tools.text import cut_text
from edgewise.types import TensorType

LONGEST_SIZE = 32  # characters of one size in a shape


class FunctionReport(NamedTuple):
    """A function: its ops by name, and the variables it assigns."""

    ops: dict[str, int]
    updates: int


class VariableReport(NamedTuple):
    """Variables of one role and element type; ``bytes`` as they lie in memory."""

    role: str
    dtype: str
    tensors: int
    elements: int
    bytes: int


class ConstantReport(NamedTuple):
    """Constants of one element type, in all functions; an array counts once."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


class LayerPrecision(NamedTuple):
    """A layer with a weight: what that is stored as, and what runs in and out."""

    name: str
    op: str
    weights: str
    reads: str
    gives: str


class SegmentReport(NamedTuple):
    """Work that one native call does, or one op that Python does and why.

    Views are in none: they are the same bytes in another shape, and no work.  Stages
    count from 1; one ends where a run finds sizes that the next needs.
    """

    native: bool
    ops: int
    reason: str
    stage: int


class FileReport(NamedTuple):
    """A model file.

    Attributes:
        bytes: Size of the file.
        sections: Bytes of its parts: ``tables`` (graphs, types, names), ``data``
            (weights and constants).
        inputs: What a run takes.
        outputs: What a run gives.
        functions: By name.
        variables: By role and element type.
        constants: By element type.
        layers: Of ``infer``, those with a weight.
        sizes: Values of symbolic sizes that the segments were planned for.
        segments: Of ``infer``.
        views: Ops of ``infer`` that are no work.
        metadata: Free texts.
    """

    bytes: int
    sections: dict[str, int]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    functions: dict[str, FunctionReport]
    variables: tuple[VariableReport, ...]
    constants: tuple[ConstantReport, ...]
    layers: tuple[LayerPrecision, ...]
    sizes: dict[str, int]
    segments: tuple[SegmentReport, ...]
    views: int
    metadata: dict[str, str]

    def figures(self) -> dict[str, object]:
        """For JSON."""
        return self._asdict() | {
            "inputs": [_border(info) for info in self.inputs],
            "outputs": [_border(info) for info in self.outputs],
            "functions": {k: f._asdict() for k, f in self.functions.items()},
            "variables": [v._asdict() for v in self.variables],
            "constants": [c._asdict() for c in self.constants],
            "layers": [layer._asdict() for layer in self.layers],
            "segments": [s._asdict() for s in self.segments],
        }


def report(path: Path, sizes: Mapping[str, int] | None = None) -> FileReport:
    """Look into a file.

    Args:
        path: An ``.ew`` file.
        sizes: Values of symbolic sizes to plan for; 1 where one is missing.
    """
    model = Model.load(path)
    contents = open_file(path)
    total = path.stat().st_size
    infer = model.module.functions["infer"]
    found = cut(infer)
    names = type_symbols([value.kind for value in infer.inputs])
    for stage in found.stages:
        names |= stage.symbols()
    given = {name: (sizes or {}).get(name, 1) for name in sorted(names)}
    return FileReport(
        bytes=total,
        sections={
            "tables": total - len(contents.data),
            "data": len(contents.data),
        },
        inputs=model.inputs,
        outputs=model.outputs,
        functions={k: _function(g) for k, g in model.module.functions.items()},
        variables=_variables(model.module),
        constants=_constants(model.module),
        layers=tuple(_layers(infer)),
        sizes=given,
        segments=tuple(_segments(found, given)),
        views=sum(node.op.view for s in found.stages for node in s.graph.nodes()),
        metadata=dict(model.module.metadata),
    )


def shape_text(info: TensorInfo) -> str:
    """Element type and shape: ``f32[N, 3, 224, 224]``, ``sequence f32[any, 3]``.

    Of a size that takes a long rule to tell, the beginning; ``figures`` has the whole.
    """
    form = "" if info.form == "tensor" else f"{info.form} "
    sizes = (cut_text(str(size), LONGEST_SIZE) for size in info.shape)
    return f"{form}{info.dtype.value}[{', '.join(sizes)}]"


def _border(info: TensorInfo) -> dict[str, object]:
    border: dict[str, object] = {"name": info.name, "dtype": info.dtype.value}
    border["shape"] = list(info.shape)
    if info.form != "tensor":
        border["form"] = info.form
    return border


def _function(graph: Graph) -> FunctionReport:
    nodes = graph.nodes()
    ops = Counter(node.op.name for node in nodes if not isinstance(node.op, Leaf))
    return FunctionReport(dict(ops.most_common()), len(graph.updates))


def _variables(module: Module) -> tuple[VariableReport, ...]:
    groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for info in module.variables.values():
        key = (info.role.value, info.type.dtype.value)
        size = math.prod(info.logical.dims), info.type.bytes
        groups.setdefault(key, []).append(size)
    return tuple(
        VariableReport(*key, len(sizes), *map(sum, zip(*sizes, strict=True)))
        for key, sizes in sorted(groups.items())
    )


def _constants(module: Module) -> tuple[ConstantReport, ...]:
    arrays = {
        id(node.op.array): node
        for graph in module.functions.values()
        for node in graph.nodes()
        if isinstance(node.op, Constant)
    }
    groups: dict[str, list[tuple[int, int]]] = {}
    for node in arrays.values():
        kind = Value(node).type
        size = math.prod(kind.dims), kind.bytes
        groups.setdefault(kind.dtype.value, []).append(size)
    return tuple(
        ConstantReport(dtype, len(sizes), *map(sum, zip(*sizes, strict=True)))
        for dtype, sizes in sorted(groups.items())
    )


def _layers(graph: Graph) -> Iterator[LayerPrecision]:
    """Nodes that multiply a matrix of weights, by the name of that."""
    for node in graph.nodes():
        x, weight = (*node.inputs, None, None)[:2]
        if x is None or weight is None or not isinstance(weight.op, Variable):
            continue
        if weight.type.rank > 1 and isinstance(node.types[0], TensorType):
            kinds = weight.type.dtype, x.type.dtype, node.types[0].dtype
            key, op = weight.op.key, node.op.name
            yield LayerPrecision(key, op, *(kind.value for kind in kinds))


def _segments(found: Stages, sizes: Mapping[str, Dim]) -> Iterator[SegmentReport]:
    for number, stage in enumerate(found.stages, 1):
        for segment in make_plan(Flat(stage.graph), sizes).segments:
            nodes = len(segment.nodes)
            yield SegmentReport(segment.native, nodes, segment.reason, number)
        for action in stage.actions:
            yield SegmentReport(False, 1, action.reason, number)
