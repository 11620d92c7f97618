"""A module to tables, and the bytes that go beside them."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.errors import InternalError
from edgewise.format._generated import schema
from edgewise.format.arrays import Buffer
from edgewise.format.pool import Pool
from edgewise.format.versions import (
    BINDERS,
    CODED,
    CONTAINERS,
    EDGEWISE_VERSION,
    FORMAT_VERSION,
    LINEAGE,
)
from edgewise.ir.graph import Graph, Input, Leaf, Node, Value
from edgewise.ir.module import Module


class Flat(NamedTuple):
    """What is written: tables, and the bytes of each segment."""

    model: schema.Model
    payloads: tuple[Buffer, ...]


def flatten(module: Module) -> Flat:
    """The tables of a module; equal modules give equal tables."""
    pool, metadata = Pool(module), module.metadata
    functions = tuple(
        _function(name, graph, pool) for name, graph in module.functions.items()
    )
    lineage = {LINEAGE[key]: metadata[key] for key in LINEAGE if metadata.get(key)}
    entries = tuple(
        schema.Entry(key=key, value=value)
        for key, value in metadata.items()
        if LINEAGE.get(key) not in lineage
    )
    model = schema.Model(
        format_version=FORMAT_VERSION,
        features=_features(functions, pool),
        min_version=EDGEWISE_VERSION,
        producer=f"edgewise {EDGEWISE_VERSION}",
        metadata=entries,
        lineage=schema.Lineage(**lineage) if lineage else None,
        segments=tuple(pool.segments),
        types=tuple(pool.types),
        tensors=tuple(pool.tensors),
        ops=tuple(pool.ops),
        functions=functions,
    )
    return Flat(model, tuple(pool.payloads))


def _features(functions: tuple[schema.Function, ...], pool: Pool) -> tuple[str, ...]:
    """What a reader must know lest it misread the file."""
    found = []
    if any(function.binders for function in functions):
        found.append(BINDERS)
    if any(type_.form for type_ in pool.types):
        found.append(CONTAINERS)
    if any(tensor.coded for tensor in pool.tensors):
        found.append(CODED)
    return tuple(found)


def _function(name: str, graph: Graph, pool: Pool) -> schema.Function:
    nodes = graph.nodes()
    ids = {value: index for index, value in enumerate(graph.inputs)}
    leaves: dict[int, int] = {}  # number of a tensor -> id of its value
    for node in nodes:
        if isinstance(node.op, Leaf) and not isinstance(node.op, Input):
            number = pool.leaf(node)
            ids[Value(node)] = leaves.setdefault(
                number, len(graph.inputs) + len(leaves)
            )
    end, tables = len(graph.inputs) + len(leaves), []
    for node in nodes:
        if isinstance(node.op, Input) and Value(node) not in ids:
            raise InternalError(f"{node} is read but is no input of {name!r}")
        if isinstance(node.op, Leaf):
            continue
        tables.append(_node(node, ids, pool))
        for index in range(len(node.types)):
            ids[Value(node, index)] = end + index
        end += len(node.types)
    return schema.Function(
        name=name,
        inputs=tuple(
            schema.Port(name=_key(value), type=pool.type(value.kind))
            for value in graph.inputs
        ),
        tensors=tuple(leaves),
        nodes=tuple(tables),
        outputs=tuple(
            schema.Result(name=name, value=ids[value])
            for name, value in zip(graph.output_names, graph.outputs, strict=True)
        ),
        updates=tuple(
            schema.Update(tensor=pool.variable(key), value=ids[value])
            for key, value in graph.updates.items()
        ),
        binders=tuple(ids[value] for value in graph.binders),
    )


def _node(node: Node, ids: dict[Value, int], pool: Pool) -> schema.Node:
    # A file holds no types: what the reader infers must be what the graph has.
    types = node.op.infer_all(tuple(None if v is None else v.kind for v in node.inputs))
    if types != node.types:
        raise InternalError(f"{node} has types {node.types}, infers {types}")
    return schema.Node(
        op=pool.op(node.op),
        inputs=tuple(-1 if v is None else ids[v] for v in node.inputs),
        outputs=len(types),
        label=node.label,
    )


def _key(value: Value) -> str:
    if not isinstance(value.op, Input):
        raise InternalError(f"{value} is given as an input, but is computed")
    return value.op.key
