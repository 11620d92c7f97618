"""What the factors of a model's layers are, in numbers."""

from __future__ import annotations

import numpy as np

from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Constant, Graph, Value, Variable
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.session import Session

FACTOR = "factor"


class Factors:
    """Variables of a model, those that ``prepare`` computes among them."""

    def __init__(self, model: Model) -> None:
        self._variables = model.module.variables
        with Session(model) as session:
            self._derived = {
                key: np.array(session.variables[key])
                for key, info in self._variables.items()
                if info.initial is None
            }

    def of(self, value: Value | None) -> Array | None:
        """What a factor of an epilogue is; None where there is none.

        Raises:
            ShapeError: It is computed from inputs.
        """
        if value is None:
            return None
        if isinstance(value.op, Constant):
            return value.op.array
        if isinstance(value.op, Variable):
            return self._known(value.op.key)
        graph = Graph((), (value,), (FACTOR,))
        keys = {n.op.key for n in graph.nodes() if isinstance(n.op, Variable)}
        found, _ = evaluate(graph, {}, {key: self._known(key) for key in keys})
        return np.asarray(found[FACTOR])

    def _known(self, key: str) -> Array:
        initial = self._variables[key].initial
        return self._derived[key] if initial is None else initial
