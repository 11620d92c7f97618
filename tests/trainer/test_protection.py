"""What holds a step back: the numbers of EWC and LwF."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, constant, input_value
from edgewise.types import DType, TensorType
from edgewise_trainer import Trainer, losses, optimizers
from edgewise_trainer.autodiff import backward
from edgewise_trainer.incremental import Lwf
from edgewise_trainer.incremental.classes import as_stored
from edgewise_trainer.incremental.ewc import Anchored, Past, importances
from edgewise_trainer.incremental.lwf import Remembering

RNG = np.random.default_rng(0)
W = RNG.standard_normal((3, 5)).astype(np.float32)
X = RNG.standard_normal((7, 5)).astype(np.float32)
LOSS = 2.763228178024292
GRAD = [
    [0.22167180, 0.02527655, -0.05487973, -0.19206864],
    [0.37470552, -0.20115262, -0.28349277, 0.10993980],
]


def linear() -> ew.Model:
    """``x @ w.T``."""
    node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph([node], "m", [x], [y], [numpy_helper.from_array(W, "w")])
    opset = helper.make_opsetid("", 17)
    proto: onnx.ModelProto = helper.make_model(
        graph, opset_imports=[opset], ir_version=8
    )
    return ew.convert(proto)


def singles(target: np.ndarray) -> list[tuple[dict[str, Any], np.ndarray]]:
    return [({"x": X[i : i + 1]}, target[i : i + 1]) for i in range(len(X))]


def test_importances_are_means_of_squared_gradients() -> None:
    """Of the mean squared error of one example: ``2 / 3 (y - t) x``."""
    target = RNG.standard_normal((7, 3)).astype(np.float32)
    loss = losses.MeanSquaredError()
    found = importances(linear(), loss, "all", singles(target), RNG, 1)
    gap = X @ W.T - target
    want = ((2 / 3 * gap)[:, :, None] * X[:, None, :]) ** 2
    np.testing.assert_allclose(found["w"], want.mean(0), rtol=1e-4, atol=1e-6)


def test_importances_of_classes_are_those_of_what_the_model_says() -> None:
    """``E[p_c (1 - p_c) x ** 2]``, whatever the targets are; 7000 draws."""
    rng = np.random.default_rng(1)
    target = np.zeros(7, np.int64)
    many = singles(target) * 1000
    found = importances(linear(), losses.CrossEntropy(), "all", many, rng, 1)
    logits = X @ W.T
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    want = ((p * (1 - p))[:, :, None] * X[:, None, :] ** 2).mean(0)
    np.testing.assert_allclose(found["w"], want, rtol=0.1, atol=0.01)


def test_the_pull_is_the_gradient_of_the_penalty() -> None:
    """``rate * strength * importance * (w - anchor)`` beside the step of the loss."""
    anchor = {"w": RNG.standard_normal((3, 5)).astype(np.float32)}
    importance = {"w": RNG.random((3, 5)).astype(np.float32)}
    model, y = linear(), np.arange(7) % 3
    plain = Trainer(model, optimizer=optimizers.SGD(0.1), threads=1)
    state = Past(anchor, importance).state(model)
    how = Anchored(optimizers.SGD(0.1), 5.0)
    held = Trainer(model, optimizer=how, threads=1, state=state)
    plain.step(X, y)
    held.step(X, y)
    found = plain.parameters()["w"] - held.parameters()["w"]
    want = 0.1 * 5.0 * importance["w"] * (W - anchor["w"])
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    stored = as_stored(model.module.variables["w"], anchor["w"])
    np.testing.assert_array_equal(held.state()["w/anchor"], stored)


def test_groups_and_bounds_hold_under_the_pull() -> None:
    model, y = linear(), np.arange(7) % 3
    state = Past({"w": W}, {"w": np.ones_like(W)}).state(model)  # no pull at first
    still = optimizers.Group(("w",), rate=0.0)
    grouped = optimizers.Grouped(optimizers.SGD(0.1), (still,))
    trainer = Trainer(model, optimizer=Anchored(grouped, 5.0), threads=1, state=state)
    trainer.step(X, y)
    np.testing.assert_array_equal(trainer.parameters()["w"], W)
    clipped = optimizers.Clipped(optimizers.SGD(1.0), norm=0.01)
    trainer = Trainer(model, optimizer=Anchored(clipped, 5.0), threads=1, state=state)
    trainer.step(X, y)
    length = np.linalg.norm(trainer.parameters()["w"] - W)
    np.testing.assert_allclose(length, 0.01, rtol=1e-3)


def test_old_answers_count_as_pytorch_counts_them() -> None:
    """By PyTorch 2.13, the gradient as well.

    ``cross_entropy(now, y) + 0.7 * 4 * cross_entropy(now[:, [0, 2]] / 2,
    softmax(old / 2))``.
    """
    now = np.array([[1.0, -0.5, 0.25, 2.0], [0.0, 1.5, -1.0, 0.5]], np.float32)
    target = np.array([[3.0, 0.5, 1.0], [1.0, -1.0, 2.0]], np.float32)
    output = input_value("now", TensorType(DType.F32, now.shape))
    loss = Remembering(losses.CrossEntropy(), (0, 2), Lwf(weight=0.7))
    wanted = input_value("target", loss.target(output.type))
    value = loss(output, wanted)
    grads = backward({value: constant(np.ones((), np.float32))}, [output])
    graph = Graph((output, wanted), (value, grads[output]), ("loss", "grad"))
    found, _ = evaluate(graph, {"now": now, "target": target}, {})
    np.testing.assert_allclose(found["loss"], LOSS, rtol=1e-6)
    np.testing.assert_allclose(found["grad"], GRAD, rtol=1e-5, atol=1e-7)
