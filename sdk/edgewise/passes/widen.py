"""Weights of few bits as float32 again: for training around them, for other engines."""

from __future__ import annotations

from edgewise.errors import InternalError
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Module, VariableInfo
from edgewise.ops.index import Gather
from edgewise.ops.narrow import NarrowConv, NarrowLinear
from edgewise.ops.pack_narrow import PackHalves, PackNarrow, WidenPanels
from edgewise.types import TensorType

NARROW = (NarrowLinear, NarrowConv)


def is_narrow(info: VariableInfo) -> bool:
    """Whether a variable is a weight of few bits."""
    return isinstance(info.packing, PackNarrow | PackHalves)


def apart(graph: Graph) -> Graph:
    """The graph with weights of few bits widened by steps of their own."""

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if not isinstance(node.op, NARROW):
            return with_inputs(node, inputs)
        op, (x, w, *epilogue) = node.op, inputs
        if x is None or w is None:
            raise InternalError(f"{node}: a layer without an image or a weight")
        wide = WidenPanels(_reduced(op, x), op.kind, op.block)(w)
        return (op.plain(x, wide, *epilogue, label=node.label),)

    return graph.rebuild(visit)


def _reduced(op: NarrowLinear | NarrowConv, x: Value) -> int:
    channels = x.type.shape[-1]
    if not isinstance(channels, int):
        raise InternalError(f"{x}: channels that only a run knows")
    if isinstance(op, NarrowLinear):
        return channels
    height, width = op.kernel
    return height * width * channels // op.groups


def widened(module: Module) -> Module:
    """The module with float32 weights: what those of few bits stand for."""
    narrow = {key for key, info in module.variables.items() if is_narrow(info)}
    if not narrow:
        return module
    wide = {key: _wide(module.variables[key]) for key in narrow}

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Variable) and node.op.key in narrow:
            return (variable_value(node.op.key, wide[node.op.key].type),)
        weight = _read(node)
        if weight is None or not isinstance(weight.op, Variable):
            return with_inputs(node, inputs)
        if isinstance(node.op, NARROW):
            return (node.op.plain(*inputs, label=node.label),)
        if weight.op.key in narrow:
            # Rows of a table, and behind them their cast, which then changes nothing.
            return (node.op(*inputs, label=node.label),)
        return with_inputs(node, inputs)

    functions = {name: graph.rebuild(visit) for name, graph in module.functions.items()}
    return Module(functions, {**module.variables, **wide}, module.metadata)


def _read(node: Node) -> Value | None:
    """What a node reads that may have few bits."""
    if isinstance(node.op, NARROW):
        return node.inputs[1]
    return node.inputs[0] if isinstance(node.op, Gather) else None


def _wide(info: VariableInfo) -> VariableInfo:
    packing, initial = info.packing, info.initial
    if initial is None:
        raise InternalError(f"{info.key}: a weight without values")
    if isinstance(packing, PackHalves):
        array = packing.unpack(initial, info.logical)
        return VariableInfo(info.key, info.logical, info.role, array)
    if not isinstance(packing, PackNarrow):
        raise InternalError(f"{info.key}: no weight of few bits")
    stored = packing.panels.reference(packing.unpack(initial, info.logical))
    type_ = TensorType(info.logical.dtype, stored.shape)
    return VariableInfo(
        info.key, type_, info.role, stored, info.logical, packing.panels
    )
