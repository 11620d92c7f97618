"""Networks without their weakest channels."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from edgewise.compress.follow import Follower, Layer
from edgewise.compress.weights import logical
from edgewise.errors import ConfigError
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.model import INFER, Model, logical_array, stored_array
from edgewise.ops.conv import Conv
from edgewise.ops.matmul import Linear
from edgewise.ops.shape import Reshape, Slice
from edgewise.passes.lower import lower
from edgewise.types import TensorType

PREPARE = "prepare"


def without_channels(
    model: Model, share: float, norm: str, chosen: Collection[str]
) -> Model:
    """The model without that share of the channels of its layers.

    Channels that an addition holds against each other go together; what the model
    gives back, and what an op may do anything with, stays.

    Raises:
        ConfigError: Nothing can go.
    """
    module = model.module
    others = set(module.functions) - {INFER, PREPARE}
    if others:
        raise ConfigError(
            f"prune: got a model with function {min(others)!r}; want one without"
            " branches, loops and training steps to take channels from"
        )
    graph = _inlined(module)
    follower = Follower(graph, module.variables)
    dropped = _dropped(model, follower, share, norm, chosen)
    if share and not dropped:
        raise ConfigError(f"prune: no layer can lose {share:.0%} of its channels")
    kept = {
        value: tuple(None if c is None else _kept(c, dropped, follower) for c in labels)
        for value, labels in follower.labels.items()
    }
    variables = _shrunk(graph, module.variables, kept)
    smaller = _rebuilt(graph, variables, kept)
    whole, _ = lower(Module({INFER: smaller}, variables, module.metadata))
    return Model(whole)


def _inlined(module: Module) -> Graph:
    """``infer``, with what ``prepare`` computes in it."""
    prepare = module.functions.get(PREPARE)
    derived = {} if prepare is None else prepare.updates

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Variable) and node.op.key in derived:
            return (derived[node.op.key],)
        return with_inputs(node, inputs)

    return module.functions[INFER].rebuild(visit)


def _dropped(
    model: Model, at: Follower, share: float, norm: str, chosen: Collection[str]
) -> set[int]:
    """Roots of the channels that go: in every set of layers the weakest."""
    roots = [at.ties.roots(layer.channels) for layer in at.layers]
    stay = at.ties.pinned
    strength: dict[int, float] = {}
    for layer, own in zip(at.layers, roots, strict=True):
        if layer.weight not in chosen:
            stay |= set(own.tolist())
        sizes = _sizes(model, layer, norm)
        for root, size in zip(own.tolist(), sizes.tolist(), strict=True):
            strength[root] = strength.get(root, 0.0) + size
    dropped: set[int] = set()
    for group in _groups([set(own.tolist()) for own in roots]):
        candidates = sorted(group - stay, key=lambda root: (strength[root], root))
        dropped |= set(candidates[: int(share * len(candidates))])
    return dropped - _last_of(roots, dropped, strength)


def _last_of(
    roots: list[Array], dropped: set[int], strength: Mapping[int, float]
) -> set[int]:
    """The strongest channel of each layer that would lose all."""
    return {
        max(own.tolist(), key=strength.__getitem__)
        for own in roots
        if len(own) and set(own.tolist()) <= dropped
    }


def _sizes(model: Model, layer: Layer, norm: str) -> Array:
    """How strong each channel of a layer is."""
    weight = np.moveaxis(logical(model, layer.weight), layer.axis, 0)
    rows = np.abs(weight.reshape(len(weight), -1), dtype=np.float64)
    return np.asarray((rows if norm == "l1" else np.square(rows)).sum(1))


def _groups(sets: list[set[int]]) -> list[set[int]]:
    """Unions of those that share something."""
    found: list[set[int]] = []
    for own in sets:
        apart = [group for group in found if not group & own]
        met = [group for group in found if group & own]
        found = [*apart, own.union(*met)]
    return found


def _kept(channels: Array, dropped: set[int], at: Follower) -> Array:
    roots = at.ties.roots(channels).tolist()
    return np.array([root not in dropped for root in roots], np.bool_)


Kept = Mapping[Value, "tuple[Array | None, ...]"]


def _shrunk(
    graph: Graph, variables: Mapping[str, VariableInfo], kept: Kept
) -> dict[str, VariableInfo]:
    """Variables without the channels that go; derived ones are made anew."""
    made = {k: i for k, i in variables.items() if i.role is not Role.DERIVED}
    for node in graph.nodes():
        if isinstance(node.op, Variable):
            info = made[node.op.key]
            masks = kept[Value(node)]
            if not all(mask is None or mask.all() for mask in masks):
                made[info.key] = _without(variables[info.key], masks)
    return made


def _without(info: VariableInfo, masks: tuple[Array | None, ...]) -> VariableInfo:
    array = logical_array(info, stored_array(info))
    for axis, mask in enumerate(masks):
        if mask is not None:
            array = array.compress(mask, axis)
    type_ = info.logical.with_shape(array.shape)
    packing, stored = info.packing, np.ascontiguousarray(array)
    if packing is not None:
        stored = np.asarray(packing.reference(array))
    whole = TensorType(type_.dtype, stored.shape)
    return VariableInfo(info.key, whole, info.role, stored, type_, packing, info.coding)


def _rebuilt(graph: Graph, variables: Mapping[str, VariableInfo], kept: Kept) -> Graph:
    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Variable):
            type_ = variables[node.op.key].type
            if type_ == Value(node).type:
                return (Value(node),)
            return (variable_value(node.op.key, type_),)
        op = _smaller(node, kept[Value(node)])
        if op == node.op and inputs == node.inputs:
            return with_inputs(node, inputs)
        return op.node(*inputs, label=node.label)

    return graph.rebuild(visit)


def _smaller(node: Node, masks: tuple[Array | None, ...]) -> Op:
    """The op for what is left: sizes that it names itself."""
    op = node.op
    sizes = [None if mask is None else int(mask.sum()) for mask in masks]
    if isinstance(op, Conv) and sizes[-1] is not None:
        return op.replace(channels=sizes[-1])
    if isinstance(op, Linear) and sizes[-1] is not None:
        return op.replace(columns=sizes[-1])
    if isinstance(op, Reshape | Slice):
        old = op.shape if isinstance(op, Reshape) else op.sizes
        pairs = zip(old, sizes, strict=True)
        new = tuple(full if size is None else size for full, size in pairs)
        return op.replace(**{"shape" if isinstance(op, Reshape) else "sizes": new})
    return op
