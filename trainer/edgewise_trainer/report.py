"""What can be trained, and what that will take: told before a step is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from edgewise.ir.graph import Graph, Leaf, Node, Value, Variable, input_value
from edgewise.ir.module import Module
from edgewise.types import TensorType
from edgewise_trainer.autodiff.rule import has_gradient, onnx_name
from edgewise_trainer.form import dependent, trainable_form
from edgewise_trainer.losses import Loss, target_type
from edgewise_trainer.prediction import Prediction
from edgewise_trainer.selection import candidates
from edgewise_trainer.step import LOSS, TARGET, scalar_loss
from edgewise_trainer.task import Aim

TRAINED, FROZEN, UNREACHABLE = "trained", "frozen", "unreachable"
GRADIENT, NONE, NOT_NEEDED = "gradient", "none", "not needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainabilityReport:
    """What a trainer will do, and what it will take.

    Attributes:
        parameters: ``"trained"``, ``"frozen"`` or ``"unreachable"`` (to be trained, but
            the loss does not depend on it, or has no gradient) of every parameter.
        ops: ``"gradient"``, ``"none"`` or ``"not needed"`` (no trained parameter comes
            before it) of every op between inputs and loss, by kind and name.
        batch_size: What the predictions are for.
        peak_bytes: By how much the process will grow at most, from before the model was
            loaded, batches aside; None where only a run knows.
        seconds: Time of a step, roughly; None where only a run knows.
        problem: Why it cannot be trained; empty where it can.
        notes: What is done to keep to a budget of memory, and what that changes.
    """

    parameters: Mapping[str, str]
    ops: Mapping[str, str]
    batch_size: int
    peak_bytes: int | None
    seconds: float | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    shapes: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """A table of parameters, ops and what a step takes."""
        rows = [
            (name, self.shapes.get(name, ""), state)
            for name, state in self.parameters.items()
        ]
        rows += [("", "", ""), *_kinds(self.ops)]
        widths = [max(len(row[j]) for row in rows) for j in range(2)]
        lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in rows]
        return "\n".join((*lines, "", *self._totals()))

    def _totals(self) -> list[str]:
        states = Counter(self.parameters.values())
        counts = ", ".join(f"{number} {state}" for state, number in states.items())
        lines = [f"parameters: {counts}"]
        if self.peak_bytes is not None and self.seconds is not None:
            lines.append(
                f"a step of batch {self.batch_size}: {self.peak_bytes / 2**20:.1f} MiB"
                f" at the peak, about {_duration(self.seconds)}"
            )
        return [*lines, *self.notes, *([self.problem] if self.problem else [])]


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
    named = {a.weight: a.a.key for a in aim.adapters}
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
    value = scalar_loss(loss, output, target)
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


def _kinds(ops: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """How many ops of each kind; those without a gradient one by one."""
    counts = Counter((n.split()[0], s) for n, s in ops.items() if s != NONE)
    rows = [(kind, str(number), state) for (kind, state), number in counts.items()]
    return rows + [(name, "1", NONE) for name, state in ops.items() if state == NONE]


def _shapes(module: Module) -> dict[str, str]:
    infos = module.variables
    return {key: str(list(infos[key].logical.shape)) for key in candidates(module)}


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2g} ms"
