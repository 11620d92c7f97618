"""The report of what is to be trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from edgewise.ir.graph import Graph, Leaf, Node, Value, Variable, input_value
from edgewise.ir.module import Module
from edgewise.types import TensorType
from edgewise_trainer.autodiff.rule import has_gradient, onnx_name
from edgewise_trainer.form import dependent, trainable_form
from edgewise_trainer.losses import Loss, scalar_loss, target_type
from edgewise_trainer.make import Aim
from edgewise_trainer.names import LOSS, TARGET
from edgewise_trainer.prediction import Prediction
from edgewise_trainer.report import (
    FROZEN,
    GRADIENT,
    NONE,
    NOT_NEEDED,
    TRAINED,
    UNREACHABLE,
    TrainabilityReport,
)
from edgewise_trainer.selection import candidates


def report(
    aim: Aim,
    loss: Loss,
    batch_size: int,
    prediction: Prediction | None,
    problem: str = "",
    notes: tuple[str, ...] = (),
) -> TrainabilityReport:
    """The report of what is to be trained."""
    graph = _to_loss(aim, loss)
    ops = _ops(graph, aim.keys)
    lost = _behind_none(graph, ops)
    named = {own.weight: own.infos[0].key for own in aim.adapters}
    read = {n.op.key: n for n in graph.nodes() if isinstance(n.op, Variable)}
    return TrainabilityReport(
        parameters=_parameters(aim, named, read, lost),
        ops=_labelled(ops),
        batch_size=batch_size,
        peak_bytes=prediction.peak_bytes if prediction else None,
        seconds=prediction.seconds if prediction else None,
        problem=problem,
        notes=notes,
        shapes=_shapes(aim.module),
    )


def _to_loss(aim: Aim, loss: Loss) -> Graph:
    form = trainable_form(aim.module, aim.keys)
    output = form.graph.outputs[0]
    target = input_value(TARGET, target_type(loss, output.type))
    value = scalar_loss(loss, output, target, form.graph.inputs)
    # What a batch norm takes away again is read all the same.
    return Graph((), (value, *form.absorbed.values()), (LOSS, *form.absorbed))


def _ops(graph: Graph, keys: Collection[str]) -> dict[Node, str]:
    depends = dependent(graph, keys)
    found = {}
    for node in graph.nodes():
        if isinstance(node.op, Leaf):
            continue
        passes = node in depends and any(map(_is_real, _outputs(node)))
        state = GRADIENT if has_gradient(type(node.op)) else NONE
        found[node] = state if passes else NOT_NEEDED
    return found


def _outputs(node: Node) -> list[Value]:
    return [Value(node, index) for index in range(len(node.types))]


def _is_real(value: Value) -> bool:
    return isinstance(value.kind, TensorType) and value.kind.dtype.is_float


def _behind_none(graph: Graph, ops: Mapping[Node, str]) -> set[Node]:
    """Nodes of which some way to the loss leads through an op without a gradient."""
    found: set[Node] = set()
    for node in reversed(graph.nodes()):
        if node in found or ops.get(node) == NONE:
            found |= {value.node for value in node.inputs if value is not None}
    return found


def _parameters(
    aim: Aim, named: Mapping[str, str], read: Mapping[str, Node], lost: set[Node]
) -> dict[str, str]:
    found = dict.fromkeys(candidates(aim.module), FROZEN)
    for name in aim.trained:
        node = read.get(named.get(name, name))
        found[name] = UNREACHABLE if node is None or node in lost else TRAINED
    return found


def _labelled(ops: Mapping[Node, str]) -> dict[str, str]:
    """Ops by kind and name; those of one name have numbers."""
    found: dict[str, str] = {}
    for node, state in ops.items():
        name = f"{onnx_name(node.op)} {node.label}".rstrip()
        unique, count = name, 1
        while unique in found:
            count += 1
            unique = f"{name} ({count})"
        found[unique] = state
    return found


def _shapes(module: Module) -> dict[str, str]:
    infos = module.variables
    return {key: str(list(infos[key].logical.shape)) for key in candidates(module)}
