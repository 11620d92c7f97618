"""Losses and what they do to gradients; numbers are those of PyTorch 2.13."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgewise as ew
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, constant, input_value
from edgewise.types import DType, TensorType
from edgewise_trainer import losses
from edgewise_trainer.autodiff import backward

LOGITS = np.array(
    [[1.0, -0.5, 0.25], [0.0, 2.0, -1.0], [0.5, 0.5, -2.0], [3.0, -1.0, 1.0]]
)
CLASSES, SOME = np.array([0, 2, 1, 0]), np.array([0, 2, -100, 0])
WEIGHT = (0.5, 1.0, 2.0)
SHARES = np.array(
    [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]]
)
A, B = np.array([[0.5, -2.0], [3.0, 0.1]]), np.array([[0.0, 1.0], [1.0, 0.0]])
CASES: list[tuple[losses.Loss, Any, Any, float]] = [
    (losses.CrossEntropy(), LOGITS, CLASSES, 1.1435308),
    (losses.CrossEntropy(weight=WEIGHT), LOGITS, CLASSES, 1.8521290),
    (losses.CrossEntropy(label_smoothing=0.1), LOGITS, CLASSES, 1.1997809),
    (losses.CrossEntropy(), LOGITS, SOME, 1.2802511),
    (
        losses.CrossEntropy(weight=WEIGHT, label_smoothing=0.1),
        LOGITS,
        SOME,
        2.2352400,
    ),
    (losses.MeanSquaredError(), A, B, 3.3150001),
    (losses.MeanAbsoluteError(), A, B, 1.4),
    (losses.Huber(), A, B, 1.0325000),
    (losses.Huber(0.4), A, B, 0.4912500),
    (losses.BinaryCrossEntropy(), A, B, 0.9734973),
    (losses.Hinge(), LOGITS, CLASSES, 0.6041667),
    (losses.Hinge(0.5, power=2), LOGITS, CLASSES, 1.2291667),
    (losses.KLDivergence(), LOGITS, SHARES, 1.5476794),
    (losses.Cosine(), A, B, 0.9853488),
    # Those of pairs are PyTorch's of all six pairs; the last is Hadsell's formula.
    (losses.CosineEmbedding(), LOGITS, CLASSES, 0.1075880),
    (losses.CosineEmbedding(0.3), LOGITS, CLASSES, 0.0575880),
    (losses.CosineEmbedding(-0.5), LOGITS, CLASSES, 0.3346759),
    (losses.Contrastive(), LOGITS, CLASSES, 0.8020833),
    (losses.Contrastive(4.0), LOGITS, CLASSES, 2.1037392),
]


def graph(loss: losses.Loss, output: Any) -> Graph:
    """The loss, and its gradient with respect to the output."""
    type_ = TensorType(DType.F64, np.shape(output))
    x = input_value("x", type_)
    target = input_value("target", losses.target_type(loss, type_))
    value = loss(x, target)
    grads = backward({value: constant(np.asarray(1.0))}, [x])
    return Graph((x, target), (value, grads[x]), ("loss", "grad"))


@pytest.mark.parametrize(("loss", "output", "target", "expected"), CASES)
def test_a_loss_is_pytorchs_and_its_gradient_its_slope(
    loss: losses.Loss, output: Any, target: Any, expected: float
) -> None:
    made = graph(loss, output)

    def at(x: Any) -> dict[str, Any]:
        wanted = target if target.dtype.kind == "f" else target.astype(np.int64)
        return evaluate(made, {"x": x, "target": wanted}, {})[0]

    found = at(output)
    assert found["loss"] == pytest.approx(expected, rel=1e-6)
    for place in np.ndindex(output.shape):
        up, down = output.copy(), output.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        slope = (at(up)["loss"] - at(down)["loss"]) / 2e-6
        assert found["grad"][place] == pytest.approx(slope, abs=1e-6)


def test_losses_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ew.ConfigError, match="label_smoothing"):
        losses.CrossEntropy(label_smoothing=1.5)
    with pytest.raises(ew.ConfigError, match="power"):
        losses.Hinge(power=3)
    with pytest.raises(ew.ConfigError, match="margin"):
        losses.CosineEmbedding(2.0)
    with pytest.raises(ew.ConfigError, match="margin"):
        losses.Contrastive(0.0)
    with pytest.raises(ew.ConfigError, match="want embeddings"):
        losses.Contrastive().target(TensorType(DType.F32, (3,)))
    with pytest.raises(ew.ConfigError, match="want one of cross_entropy"):
        losses.found("crossentropy")
    with pytest.raises(ew.ConfigError, match="a name or a callable"):
        losses.found(3)  # type: ignore[arg-type]  # that is what is tried
    with pytest.raises(ew.ConfigError, match="want \\[N, C"):
        losses.CrossEntropy().target(TensorType(DType.F32, (3,)))
