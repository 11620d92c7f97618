"""What the factors of a model's layers are, in numbers."""

from __future__ import annotations

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Constant, Value, Variable
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.session import Session


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
            ConfigError: It is computed from inputs.
        """
        if value is None:
            return None
        if isinstance(value.op, Constant):
            return value.op.array
        if not isinstance(value.op, Variable):
            raise ConfigError(f"quantize: {value}: want a variable or a constant")
        initial = self._variables[value.op.key].initial
        return self._derived[value.op.key] if initial is None else initial
