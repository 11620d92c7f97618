"""Back to ONNX: a module as a model of operators that every engine knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx
from onnx import helper

from edgewise.convert.to_onnx import (
    activation,  # noqa: F401 - importing them is registering what they write
    arrange,  # noqa: F401
    attention,  # noqa: F401
    byte_between,  # noqa: F401
    byte_products,  # noqa: F401
    control,  # noqa: F401
    elementwise,  # noqa: F401
    image,  # noqa: F401
    index,  # noqa: F401
    lists,  # noqa: F401
    norm,  # noqa: F401
    products,  # noqa: F401
    quantize,  # noqa: F401
    recurrent,  # noqa: F401
    reduce,  # noqa: F401
    spatial,  # noqa: F401
)
from edgewise.convert.to_onnx.kinds import value_info
from edgewise.convert.to_onnx.writer import ML, Tensors, Writer
from edgewise.format.versions import EDGEWISE_VERSION
from edgewise.ir.graph import Graph, Inputs, Node, Value, Variable, with_inputs
from edgewise.ir.module import Module, Role
from edgewise.model import Model, logical_array, stored_array
from edgewise.passes.widen import widened

__all__ = ["to_onnx"]

OPSET, ML_OPSET, IR_VERSION = 21, 4, 10
STORED = (Role.PARAMETER, Role.STATISTIC)


def to_onnx(model: Model) -> onnx.ModelProto:
    """The model in ONNX, parameters under their names and in their shapes.

    Raises:
        UnsupportedOpError: It has an op that ONNX lacks.
    """
    module = widened(model.module)
    graph = _inlined(module)
    names = {value: value.node.label for value in graph.inputs}
    keys = [k for k, info in module.variables.items() if info.role in STORED]
    tensors = Tensors([*names.values(), *keys, *graph.output_names])
    for key in keys:
        info = module.variables[key]
        tensors.keep(key, logical_array(info, stored_array(info)))
    writer = Writer(module, tensors)
    found = writer.write(graph, names)
    outputs = dict(zip(graph.output_names, found, strict=True))
    _name_outputs(writer, outputs)
    nodes = needed([*tensors.fixed, *writer.nodes], outputs)
    read = set(keys).union(*map(inputs_of, nodes))
    proto = helper.make_graph(
        nodes,
        "edgewise",
        [value_info(value.node.label, value.kind) for value in graph.inputs],
        [
            value_info(name, value.kind)
            for name, value in zip(graph.output_names, graph.outputs, strict=True)
        ],
        [tensor for key, tensor in tensors.stored.items() if key in read],
    )
    return _model(proto, tensors, module)


def _model(graph: onnx.GraphProto, tensors: Tensors, module: Module) -> onnx.ModelProto:
    versions = {"": OPSET, ML: ML_OPSET}
    model: onnx.ModelProto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(d, versions[d]) for d in tensors.domains],
        ir_version=IR_VERSION,
        producer_name="edgewise",
        producer_version=EDGEWISE_VERSION,
    )
    own = {k: v for k, v in module.metadata.items() if not k.startswith("edgewise.")}
    helper.set_model_props(model, own)
    return model


def _inlined(module: Module) -> Graph:
    """``infer``, with what ``prepare`` would compute computed where it is read."""
    graph, prepare = module.functions["infer"], module.functions.get("prepare")
    if prepare is None:
        return graph
    derived = prepare.updates

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Variable) and node.op.key in derived:
            return (derived[node.op.key],)
        return with_inputs(node, inputs)

    return graph.rebuild(visit)


def needed(
    nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]
) -> list[onnx.NodeProto]:
    """Nodes without those that nothing reads."""
    read, kept = set(outputs), []
    for node in reversed(nodes):
        if not read.isdisjoint(node.output):
            kept.append(node)
            read |= inputs_of(node)
    return kept[::-1]


def inputs_of(node: onnx.NodeProto) -> set[str]:
    """Names that a node reads, those that its bodies read included."""
    found = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.update(item.name for item in attribute.g.output)
            found = found.union(*map(inputs_of, attribute.g.node))
    return found


def _name_outputs(writer: Writer, outputs: dict[str, str]) -> None:
    """Give what the graph returns the names of its outputs."""
    made = {name for node in writer.nodes for name in node.output}
    new: dict[str, str] = {}
    for name, value in outputs.items():
        if value in made and value not in new:
            new[value] = name
        else:
            writer.nodes.append(helper.make_node("Identity", [value], [name]))
    for node in writer.nodes:
        _rename(node, new)


def _rename(node: onnx.NodeProto, new: dict[str, str]) -> None:
    for names in (node.input, node.output):
        for place, name in enumerate(names):
            names[place] = new.get(name, name)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                _rename(inner, new)
            for info in attribute.g.output:
                info.name = new.get(info.name, info.name)
