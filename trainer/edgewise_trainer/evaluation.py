"""How good a model is: its loss, and how often its class is the right one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgewise.errors import ShapeError
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise_trainer.data import as_target, examples
from edgewise_trainer.form import INFER
from edgewise_trainer.losses import CrossEntropy, Loss, target_type
from edgewise_trainer.step import EVALUATE, LOSS, TARGET, scalar_loss


def evaluated(
    model: Model,
    loss: Loss,
    data: Iterable[tuple[Mapping[str, Array], Array]],
    config: SessionConfig,
) -> dict[str, float]:
    """Mean loss, and accuracy where the target is a class."""
    classes = isinstance(loss, CrossEntropy)
    names = [info.name for info in model.inputs]
    total, right, count = 0.0, 0, 0
    with Session(_with_loss(model, loss), config, function=EVALUATE) as session:
        kind = session.inputs[len(names)].dtype.numpy
        for inputs, target in data:
            wanted = as_target(target, kind)
            value, output = session.run({**inputs, TARGET: wanted}).values()
            here = examples(wanted)
            total, count = total + float(value) * here, count + here
            right += int((output.argmax(axis=1) == wanted).sum()) if classes else 0
    if not count:
        raise ShapeError("data: got no examples to evaluate")
    found = {"loss": total / count}
    return found | ({"accuracy": right / count} if classes else {})


def _with_loss(model: Model, loss: Loss) -> Model:
    """The model with a function that gives its loss and its first output."""
    module = model.module
    graph = module.functions[INFER]
    output = graph.outputs[0]
    target = input_value(TARGET, target_type(loss, output.type))
    value = scalar_loss(loss, output, target)
    names = (LOSS, f"{graph.output_names[0]}")
    inputs = (*graph.inputs, target)
    function = Graph(inputs, (value, output), names, {}, graph.binders)
    return Model(
        Module(
            {**module.functions, EVALUATE: function}, module.variables, module.metadata
        )
    )
