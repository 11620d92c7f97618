"""The trainer: a model that learns, in the process that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgewise.errors import ShapeError
from edgewise.ir.graph import Graph, Variable
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise_trainer import losses
from edgewise_trainer.form import PREPARE
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD, Optimizer
from edgewise_trainer.selection import Trainable, selected
from edgewise_trainer.step import LOSS, RATE, STEP, TARGET, TRAIN_STEP, training_step

Feed = Mapping[str, Array] | Array


class Trainer:
    """Trains a model on batches.

    Args:
        model: What to train; stays as it is.
        loss: Name of a loss, or one of ``edgewise_trainer.losses``, or a callable that
            makes a scalar of output and target.
        optimizer: How parameters follow their gradients.
        trainable: Which parameters: see ``edgewise_trainer.selection.selected``.
        threads: Threads of a step.
        seed: Of what is random.

    Attributes:
        steps: Optimizer steps done.

    Raises:
        TrainabilityError: An op between the loss and a parameter has no gradient.
    """

    def __init__(
        self,
        model: Model,
        loss: str | Loss = "cross_entropy",
        optimizer: Optimizer | None = None,
        trainable: Trainable = "all",
        *,
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self._model, self._seed = model, seed
        self._loss = losses.named(loss) if isinstance(loss, str) else loss
        self._optimizer = optimizer or SGD(1e-2)
        self.trained = selected(model.module, trainable)
        step = training_step(model.module, self.trained, self._loss, self._optimizer)
        self._session = Session(
            Model(_module(model.module, step.graph, step.states)),
            SessionConfig(threads=threads),
            function=TRAIN_STEP,
        )
        self._inputs = tuple(info.name for info in model.inputs)
        self.steps = 0

    def step(self, inputs: Feed, target: Array) -> float:
        """One step of the optimizer.

        Args:
            inputs: An array for every input of the model, by name; or the array of the
                only one.
            target: What the loss holds the output against.

        Returns:
            The loss before the step.
        """
        feed = dict(self._named(inputs))
        feed[TARGET] = _as(target, self._session.inputs[len(self._inputs)].dtype.numpy)
        feed[RATE] = np.asarray(self._optimizer.lr, np.float32)
        feed[STEP] = np.asarray(self.steps + 1, np.float64)
        loss = self._session.run(feed)[LOSS]
        self.steps += 1
        return float(loss)

    def parameters(self) -> dict[str, Array]:
        """All parameters under their names and in the shapes of the source model."""
        return self.export().parameters()

    def export(self) -> Model:
        """The model as it is now, to run or to save."""
        module = self._model.module
        live = self._session.variables
        variables = {
            key: _with(info, live[key].copy())
            if key in live and info.initial is not None
            else info
            for key, info in module.variables.items()
        }
        return Model(Module(module.functions, variables, module.metadata))

    def _named(self, inputs: Feed) -> Mapping[str, Array]:
        if isinstance(inputs, Mapping):
            return inputs
        if len(self._inputs) != 1:
            raise ShapeError(f"got one array; want a mapping of inputs {self._inputs}")
        return {self._inputs[0]: inputs}


def _module(module: Module, graph: Graph, states: tuple[VariableInfo, ...]) -> Module:
    """The step, and of what is derived only that which it reads."""
    read = {node.op.key for node in graph.nodes() if isinstance(node.op, Variable)}
    functions = {TRAIN_STEP: graph}
    variables = {key: info for key, info in module.variables.items() if key in read} | {
        info.key: info for info in states
    }
    prepare = module.functions.get(PREPARE)
    if prepare is not None:
        kept = {key: value for key, value in prepare.updates.items() if key in read}
        if kept:
            functions[PREPARE] = Graph((), (), (), kept)
            variables |= _behind(functions[PREPARE], module)
    return Module(functions, variables, module.metadata)


def _behind(graph: Graph, module: Module) -> dict[str, VariableInfo]:
    keys = [node.op.key for node in graph.nodes() if isinstance(node.op, Variable)]
    return {key: module.variables[key] for key in keys}


def _with(info: VariableInfo, array: Array) -> VariableInfo:
    return VariableInfo(
        info.key, info.type, info.role, array, info.logical, info.packing
    )


def _as(target: object, dtype: np.dtype[Any]) -> Array:
    array = np.asarray(target)
    if array.dtype.kind in "iu" and dtype.kind == "i":
        return array.astype(dtype, copy=False)
    if array.dtype.kind == "f" and dtype.kind == "f":
        return array.astype(dtype, copy=False)
    raise ShapeError(f"target: got {array.dtype}; want {dtype}")
