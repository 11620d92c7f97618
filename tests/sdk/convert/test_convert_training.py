"""One step of an optimizer over several tensors, as ONNX's preview has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import ModelFormatError
from edgewise.ir.op import Array

Check = Callable[..., Any]
DOMAIN = "ai.onnx.preview.training"
RATE = np.array(0.1, "f4")


@pytest.fixture(name="step")
def step_fixture(build: Check, module_outputs: Check) -> Check:
    """New tensors and memories from two tensors, their gradients and memories."""

    def step(op: str, turn: int, count: int, *groups: Array, **options: Any) -> Any:
        feeds = {"r": RATE, "t": np.array(turn)}
        feeds |= {f"x{i}": x for i, x in enumerate(groups)}
        results = [f"y{i}" for i in range(count)]
        node = helper.make_node(
            op, [*feeds], results, name="step", domain=DOMAIN, **options
        )
        model = build([node], feeds, results)
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        return list(module_outputs(convert_module(model).module, feeds).values())

    return step


def tensors(count: int) -> list[Array]:
    """Tensors of two shapes by turns, none negative."""
    rng = np.random.default_rng(8)
    return [rng.random((3, 5) if i % 2 else (7,)).astype("f4") for i in range(count)]


@pytest.mark.parametrize("turn", [0, 1, 9])
def test_adam_corrects_averages_that_began_at_zero(step: Check, turn: int) -> None:
    given = tensors(8)
    options = {"norm_coefficient": 0.01, "norm_coefficient_post": 0.02}
    got = step("Adam", turn, 6, *given, alpha=0.8, beta=0.9, epsilon=1e-3, **options)
    for i in range(2):
        x, g, v, h = given[i::2]
        slope = 0.01 * x + g
        mean, square = 0.8 * v + 0.2 * slope, 0.9 * h + 0.1 * slope * slope
        rate = 0.1 * np.sqrt(1 - 0.9**turn) / (1 - 0.8**turn) if turn else 0.1
        moved = (x - rate * mean / (np.sqrt(square) + 1e-3)) * 0.98
        for result, want in zip(got[i::2], (moved, mean, square), strict=True):
            np.testing.assert_allclose(result, want, 1e-5, 1e-6)


def test_adagrad_decays_its_rate(step: Check) -> None:
    given = tensors(6)
    got = step("Adagrad", 3, 4, *given, decay_factor=0.5, epsilon=1e-3)
    for i in range(2):
        x, g, h = given[i::2]
        square = h + g * g
        np.testing.assert_allclose(got[2 + i], square, 1e-6)
        want = x - 0.1 / 2.5 * g / (np.sqrt(square) + 1e-3)
        np.testing.assert_allclose(got[i], want, 1e-5)


@pytest.mark.parametrize("mode", ["standard", "nesterov"])
@pytest.mark.parametrize("turn", [0, 2])
def test_momentum_begins_with_the_whole_gradient(
    step: Check, turn: int, mode: str
) -> None:
    x, g, v = tensors(3)[0], tensors(3)[2], tensors(3)[0]
    options = {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.0, "mode": mode}
    moved, kept = step("Momentum", turn, 2, x, g, v, **options)
    v = 0.9 * v + (0.5 if turn else 1.0) * g
    np.testing.assert_allclose(kept, v, 1e-6)
    way = v if mode == "standard" else g + 0.9 * v
    np.testing.assert_allclose(moved, x - 0.1 * way, 1e-5)


def test_tensors_without_their_gradients_are_refused(step: Check) -> None:
    with pytest.raises(ModelFormatError, match=r"step.*3 tensors are not 4 for each"):
        step("Adam", 1, 3, *tensors(3))


def test_an_unknown_momentum_is_refused(step: Check) -> None:
    options = {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.0, "mode": "heavy"}
    with pytest.raises(ModelFormatError, match=r"step.*'heavy'"):
        step("Momentum", 1, 2, *tensors(3), **options)
