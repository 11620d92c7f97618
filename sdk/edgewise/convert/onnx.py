"""ONNX model to module: inputs, nodes, outputs, and the functions that came of them."""

from __future__ import annotations

from edgewise.convert.assume import Assumptions, first_that_fits
from edgewise.convert.config import ConvertConfig
from edgewise.convert.inputs import graph_inputs
from edgewise.convert.nodes import Nodes
from edgewise.convert.scope import Growing, Scope
from edgewise.convert.source import Parsed, Source, opset, read, versions
from edgewise.ir.bodies import reachable
from edgewise.ir.module import Module


def import_module(source: Source, config: ConvertConfig | None = None) -> Module:
    """The model as a module of core ops, before any pass."""
    parsed, wanted = read(source), config or ConvertConfig()
    return first_that_fits(lambda assumed: _imported(parsed, wanted, assumed))


def _imported(parsed: Parsed, config: ConvertConfig, assumed: Assumptions) -> Module:
    graph = parsed.model.graph
    nodes = Nodes(parsed, config, assumed)
    world = nodes.world
    growing = Growing(world.symbols)
    scope = Scope(growing, versions(parsed, parsed.model.opset_import))
    weights = world.weights.of(graph)
    scope.update(weights, weights.values())
    for value in graph_inputs(parsed, config, weights, world.symbols):
        name = value.node.label
        growing.inputs[name] = scope.values[name] = value
    nodes.add(scope, graph.node)
    names = tuple(item.name for item in graph.output)
    if not names or len(set(names)) != len(names):
        raise parsed.error(
            f"its outputs are {list(names)}; want one or more, all named"
        )
    outputs = tuple(nodes.output(scope, name) for name in names)
    infer = growing.graph(tuple(growing.inputs.values()), outputs, names)
    made = {"infer": infer, **world.functions}
    # A body that was imported again, for wider types, left those within it behind.
    functions = {name: made[name] for name in reachable(made, ["infer"])}
    used = world.weights.used(list(functions.values()))
    return Module(functions, used, _metadata(parsed))


def _metadata(parsed: Parsed) -> dict[str, str]:
    model = parsed.model
    own = {"edgewise.onnx.opset": str(opset(parsed))}
    if model.producer_name:
        own["edgewise.onnx.producer"] = model.producer_name
    return {item.key: item.value for item in model.metadata_props} | own
