"""Four steps of every optimizer; numbers are those of PyTorch 2.13, where it has it."""

from __future__ import annotations

import numpy as np
import pytest

import edgewise as ew
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, constant, input_value, variable_value
from edgewise.ops import Add, Mul
from edgewise.types import DType, TensorType
from edgewise_trainer import optimizers
from edgewise_trainer.update import Clock

START = np.array([1.0, -2.0, 0.5])
VECTOR, NUMBER = TensorType(DType.F64, (3,)), TensorType(DType.F64, ())
SLOPE = np.array([0.1, 0.2, -0.3])


def stepped(optimizer: optimizers.Optimizer, steps: int = 4) -> np.ndarray:
    """A parameter p after steps down the slope of ``p ** 3 / 3 + SLOPE p``."""
    p = variable_value("p", VECTOR)
    clock = Clock(
        input_value("rate", TensorType(DType.F64, ())), input_value("step", NUMBER)
    )
    slots = {name: variable_value(name, VECTOR) for name in optimizer.slots}
    grad = Add()(Mul()(p, p), constant(SLOPE))
    new, changed = optimizer.update(p, grad, slots, clock)
    graph = Graph(tuple(clock), (), (), {"p": new, **changed})
    values = {"p": START, **{name: np.zeros(3) for name in slots}}
    for number in range(steps):
        feeds = {"rate": np.asarray(0.05), "step": np.asarray(float(number + 1))}
        values |= evaluate(graph, feeds, values)[1]
    return values["p"]


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (optimizers.SGD(0.05), [0.8091186, -3.1736345, 0.5092708]),
        (
            optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1),
            [0.5321125, -4.5387979, 0.5],
        ),
        (
            optimizers.SGD(0.05, momentum=0.9, nesterov=True),
            [0.4803483, -7.1698017, 0.5262414],
        ),
        (
            optimizers.Adam(0.05, weight_decay=0.1),
            [0.8014787, -2.2004128, None],
        ),
        (
            optimizers.AdamW(0.05, weight_decay=0.1),
            [0.7834049, -2.1591470, 0.5636595],
        ),
        (optimizers.RMSprop(0.05), [0.1828080, -3.6415679, 0.5451365]),
        (
            optimizers.RMSprop(0.05, momentum=0.5),
            [-0.3289860, -4.6589041, 0.3642826],
        ),
        (optimizers.Adagrad(0.05), [0.8670361, -2.1423421, 0.5477206]),
    ],
)
def test_an_optimizer_goes_where_pytorchs_goes(
    optimizer: optimizers.Optimizer, expected: list[float | None]
) -> None:
    found = stepped(optimizer)
    # Adam divides rounding by rounding where the gradient is 0: nothing to compare.
    pairs = [(a, b) for a, b in zip(found, expected, strict=True) if b is not None]
    for got, want in pairs:
        assert got == pytest.approx(want, rel=2e-6)


def test_lion_steps_by_the_sign_of_a_mean_and_decays() -> None:
    found = stepped(optimizers.Lion(0.05, weight_decay=0.1), steps=1)
    grad = START**2 + SLOPE
    np.testing.assert_allclose(found, START - 0.05 * (np.sign(grad) + 0.1 * START))


def test_optimizers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ew.ConfigError, match="lr"):
        optimizers.SGD(-1.0)
    with pytest.raises(ew.ConfigError, match="nesterov"):
        optimizers.SGD(0.1, nesterov=True)
    with pytest.raises(ew.ConfigError, match="betas"):
        optimizers.AdamW(betas=(0.9, 1.0))
    with pytest.raises(ew.ConfigError, match="weight_decay"):
        optimizers.Adam(weight_decay=-0.1)
