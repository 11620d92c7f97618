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
from edgewise_trainer.form import INFER
from edgewise_trainer.losses import CrossEntropy, Loss, target_type
from edgewise_trainer.resized import resized, takes
from edgewise_trainer.step import EVALUATE, LOSS, TARGET, scalar_loss


def evaluated(
    model: Model,
    loss: Loss,
    data: Iterable[tuple[Mapping[str, Array], Array]],
    config: SessionConfig,
) -> dict[str, float]:
    """Mean loss, and accuracy where the target is a class."""
    classes = isinstance(loss, CrossEntropy)
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


class _Scorer:
    """Losses and first outputs of a model, at all sizes that it works at."""

    def __init__(self, model: Model, loss: Loss, config: SessionConfig) -> None:
        self._module, self._loss, self._config = model.module, loss, config
        self._infer = model.module.functions[INFER]
        self._session: Session | None = None

    def __call__(
        self, inputs: Mapping[str, Array], target: Array
    ) -> tuple[float, Array, Array]:
        """The loss, the output, and the target as the loss takes it."""
        shapes = {name: np.shape(array) for name, array in inputs.items()}
        if not takes(self._infer, shapes):
            self._infer = resized(self._module.functions[INFER], shapes)
            self._session = None
        session = self._session = self._session or self._opened()
        kind = session.inputs[len(self._infer.inputs)].dtype.numpy
        wanted = as_target(target, kind)
        value, output = session.run({**inputs, TARGET: wanted}).values()
        return float(value), output, wanted

    def _opened(self) -> Session:
        """A session of the model with its loss."""
        graph = self._infer
        output = graph.outputs[0]
        target = input_value(TARGET, target_type(self._loss, output.type))
        value = scalar_loss(self._loss, output, target)
        names = (LOSS, f"{graph.output_names[0]}")
        inputs = (*graph.inputs, target)
        function = Graph(inputs, (value, output), names, {}, graph.binders)
        model = Model(self._module.with_function(EVALUATE, function))
        return Session(model, self._config, function=EVALUATE)
