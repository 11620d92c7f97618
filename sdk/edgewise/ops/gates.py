"""Activations of recurrent cells, by their ONNX names in snake case."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgewise.ir.op import Array
from edgewise.named import NamedTuple
from edgewise.ops import formulas


class Gate(NamedTuple):
    """An activation, and its parameters where the file gives none.

    Attributes:
        apply: The function of x, alpha and beta.
        alpha: Default of alpha; ``None``: it has no such parameter.
        beta: Likewise of beta.
    """

    apply: Callable[[Array, float, float], Array]
    alpha: float | None = None
    beta: float | None = None


GATES: dict[str, Gate] = {
    "tanh": Gate(lambda x, _a, _b: np.tanh(x)),
    "relu": Gate(lambda x, _a, _b: formulas.relu(x)),
    "sigmoid": Gate(lambda x, _a, _b: formulas.sigmoid(x)),
    "affine": Gate(lambda x, a, b: a * x + b, 1.0, 0.0),
    "leaky_relu": Gate(lambda x, a, _b: formulas.leaky_relu(x, a), 0.01),
    "thresholded_relu": Gate(lambda x, a, _b: np.where(x > a, x, 0.0), 1.0),
    "scaled_tanh": Gate(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hard_sigmoid": Gate(formulas.hard_sigmoid, 0.2, 0.5),
    "elu": Gate(lambda x, a, _b: formulas.elu(x, a), 1.0),
    "softsign": Gate(lambda x, _a, _b: formulas.softsign(x)),
    "softplus": Gate(lambda x, _a, _b: formulas.softplus(x)),
}
