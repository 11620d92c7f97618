"""Learning from a teacher, which runs as a part of the step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import Trainer, losses, optimizers

X = np.random.default_rng(2).standard_normal((4, 2, 6, 6)).astype(np.float32)
Y = np.array([0, 2, 1, 0])


def network(
    width: int, batch: int | str = "N", classes: int = 3, name: str = "x"
) -> onnx.ModelProto:
    """Convolution, batch norm, ReLU, pool, linear."""
    rng = np.random.default_rng(width)
    shapes = {"w1": (width, 2, 3, 3), "w2": (classes, width)}
    shapes |= dict.fromkeys(("gamma", "beta", "mean", "var"), (width,))
    tensors = [
        numpy_helper.from_array(rng.uniform(0.1, 1, s).astype(np.float32), key)
        for key, s in shapes.items()
    ]
    node, norm = helper.make_node, ["gamma", "beta", "mean", "var"]
    nodes = [
        node("Conv", [name, "w1"], ["a"], pads=[1] * 4),
        node("BatchNormalization", ["a", *norm], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("GlobalAveragePool", ["c"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("Gemm", ["e", "w2"], ["y"], transB=1),
    ]
    given = helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 2, 6, 6])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, classes])
    graph = helper.make_graph(nodes, "net", [given], [made], tensors)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def logits(proto: onnx.ModelProto) -> np.ndarray:
    with ew.Session(ew.convert(proto)) as session:
        found = session(X)
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("batch", ["N", "M", 1])
def test_the_loss_is_hintons_whatever_the_teacher_calls_its_batch(
    batch: int | str, tmp_path: Path
) -> None:
    ew.convert(network(9, batch)).save(tmp_path / "teacher.ew")
    loss = losses.distillation(tmp_path / "teacher.ew", temperature=3.0, weight=0.7)
    student = ew.convert(network(4))
    one = Trainer(student, loss, optimizers.SGD(0.1), "last:1", threads=1)
    teacher, own = logits(network(9)), logits(network(4))
    soft, student_soft = log_softmax(teacher / 3.0), log_softmax(own / 3.0)
    taught = (np.exp(soft) * (soft - student_soft)).sum(axis=1).mean() * 9.0
    hard = -log_softmax(own)[np.arange(4), Y].mean()
    want = 0.7 * taught + 0.3 * hard
    assert one.evaluate((X, Y))["loss"] == pytest.approx(want, rel=1e-5)
    assert "accuracy" in one.evaluate((X, Y))
    assert one.step(X, Y) == pytest.approx(want, rel=1e-5)


def test_the_teacher_alone_teaches_its_classes() -> None:
    teacher = ew.convert(network(9))
    loss = losses.distillation(teacher, weight=1.0)
    one = Trainer(ew.convert(network(4)), loss, optimizers.Adam(2e-2), threads=1)
    found = [one.step(X, Y) for _ in range(60)]
    assert found[-1] < 0.1 * found[0]
    assert set(one.parameters()) == set(ew.convert(network(4)).parameters())


def test_it_is_saved_with_its_step_and_in_no_checkpoint(tmp_path: Path) -> None:
    loss = losses.distillation(ew.convert(network(9)))
    one = Trainer(ew.convert(network(4)), loss, optimizers.SGD(0.1), threads=1)
    one.step(X, Y)
    one.save(tmp_path / "t.ew")
    two = Trainer(ew.load(tmp_path / "t.ew"), threads=1)
    assert two.step(X, Y) == one.step(X, Y)
    with pytest.raises(ew.CheckpointError, match="cannot hold a Model"):
        one.save_checkpoint(tmp_path / "c.ew")


def test_a_teacher_that_does_not_fit_is_told() -> None:
    student = ew.convert(network(4))
    for proto, error in (
        (network(9, classes=5), "the teacher gives"),
        (network(9, name="z"), "the teacher reads 'z'"),
    ):
        with pytest.raises(ew.ConfigError, match=error):
            Trainer(student, losses.distillation(ew.convert(proto)))
    with pytest.raises(ew.ConfigError, match="temperature"):
        losses.distillation(student, temperature=0.0)
    with pytest.raises(ew.ConfigError, match="weight"):
        losses.distillation(student, weight=2.0)
