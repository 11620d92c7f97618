"""What training needs of activations: a gradient on its way back through one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, same_dtype, want, want_shape, wide
from edgewise.ops.derivatives import derivative
from edgewise.ops.epilogue import NAMES, code, parameters
from edgewise.types import TensorType


class ActivationGrad(Op, name="activation_grad"):
    """``dy`` times the derivative at ``x`` of an activation of epilogues.

    For ``relu``, ``clip`` and ``leaky_relu`` (of a slope above 0) ``x`` may as well be
    what the activation made: the derivative there is the same.
    """

    in_place = (0,)
    activation: str
    alpha: float = 0.0
    beta: float = 0.0

    def infer(self, dy: TensorType, x: TensorType) -> TensorType:
        same_dtype(self, dy, x)
        want(self, (x,), FLOATS)
        want_shape(self, "dy", dy, *x.shape)
        code(self.activation)
        return x

    def reference(self, dy: Array, x: Array) -> Array:
        slope = derivative(self.activation, wide(x), self.alpha, self.beta)
        with np.errstate(all="ignore"):
            return np.asarray(wide(dy) * slope, x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for name in NAMES:
            op = ActivationGrad(name, *parameters(name))
            for shape in ((0,), (7,), (3, 33)):
                x = 3 * cases.floats(*shape, seed=1)
                yield Sample(op, (cases.floats(*shape), x))
            double = cases.floats(5, dtype="float64")
            yield Sample(op, (double, double + 0.5))
