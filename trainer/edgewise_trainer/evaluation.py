"""How good a model is: its loss, and how often its class is the right one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from edgewise.errors import ShapeError
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise_trainer.data import as_target, examples
from edgewise_trainer.losses import (
    Loss,
    picks_classes,
    scalar_loss,
    target_type,
    want_classes,
)
from edgewise_trainer.names import EVALUATE, INFER, LOSS, TARGET
from edgewise_trainer.resized import Shapes, resized, takes


def evaluated(
    model: Model,
    loss: Loss | None,
    data: Iterable[tuple[Mapping[str, Array], Array]],
    config: SessionConfig,
) -> dict[str, float]:
    """Mean loss, and accuracy where the target is a class.

    Args:
        model: What runs.
        loss: What it is held against; None: as its function ``evaluate`` says.
        data: Batches.
        config: How it runs.
    """
    classes = picks_classes(loss)
    total, right, count = 0.0, 0, 0
    scorer = _Scorer(model, loss, config)
    for inputs, target in data:
        value, output, wanted = scorer(inputs, target)
        here = examples(wanted)
        total, count = total + value * here, count + here
        right += int((output.argmax(axis=1) == wanted).sum()) if classes else 0
    if not count:
        raise ShapeError("data: got no examples to evaluate")
    found = {"loss": total / count}
    return found | ({"accuracy": right / count} if classes else {})


def scored(graph: Graph, loss: Loss) -> Graph:
    """The function that gives the loss of a model and its first output."""
    output = graph.outputs[0]
    target = input_value(TARGET, target_type(loss, output.type))
    value = scalar_loss(loss, output, target, graph.inputs)
    names = (LOSS, graph.output_names[0])
    return Graph((*graph.inputs, target), (value, output), names, {}, graph.binders)


class _Scorer:
    """Losses and first outputs of a model, at all sizes that it works at.

    Where the loss is not known, the function of the model that computes it runs, at the
    sizes that it declares.
    """

    def __init__(self, model: Model, loss: Loss | None, config: SessionConfig) -> None:
        self._module, self._loss, self._config = model.module, loss, config
        self._graph = self._at({})
        self._session: Session | None = None

    def __call__(
        self, inputs: Mapping[str, Array], target: Array
    ) -> tuple[float, Array, Array]:
        """The loss, the output, and the target as the loss takes it."""
        shapes = {name: np.shape(array) for name, array in inputs.items()}
        if self._loss is not None and not takes(self._graph, shapes):
            self._graph, self._session = self._at(shapes), None
        session = self._session = self._session or self._opened()
        kind = session.inputs[-1].dtype.numpy
        wanted = as_target(target, kind)
        output_type = self._module.functions[INFER].outputs[0].type
        want_classes(self._loss, wanted, output_type)
        value, output = session.run({**inputs, TARGET: wanted}).values()
        return float(value), output, wanted

    def _at(self, shapes: Shapes) -> Graph:
        """The function at some sizes of inputs."""
        functions = self._module.functions
        if self._loss is None:
            return functions[EVALUATE]
        return scored(resized(functions[INFER], shapes), self._loss)

    def _opened(self) -> Session:
        model = Model(self._module.with_function(EVALUATE, self._graph))
        return Session(model, self._config, function=EVALUATE)
