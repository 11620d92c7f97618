"""Low-rank adapters: what they change, what stays, and how they are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import Trainer, optimizers

SHAPES = {"w1": (20, 3, 3, 3), "b1": (20,), "w2": (20, 1, 3, 3), "w3": (12, 10, 1, 1)}
SHAPES |= {"w4": (5, 108), "b4": (5,)}
WEIGHTS = ("w1", "w2", "w3", "w4")


def network() -> onnx.ModelProto:
    """A convolution, a depthwise one, one in two groups, and a linear layer."""
    rng = np.random.default_rng(1)
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), name)
        for name, s in SHAPES.items()
    ]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4, strides=[2, 2]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], pads=[1] * 4, group=20),
        node("Conv", ["c", "w3"], ["d"], group=2),
        node("Flatten", ["d"], ["e"]),
        node("Gemm", ["e", "w4", "b4"], ["logits"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 6, 6])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 5])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.standard_normal((6, 3, 6, 6)).astype(np.float32), np.arange(6) % 5


def lora(rank: int = 2) -> Trainer:
    optimizer, trainable = optimizers.AdamW(1e-2), f"lora:{rank}"
    return Trainer(ew.convert(network()), "cross_entropy", optimizer, trainable)


def test_nothing_changes_before_the_first_step() -> None:
    trainer, before = lora(), ew.convert(network()).parameters()
    after = trainer.parameters()
    assert trainer.trained == WEIGHTS
    assert all(np.array_equal(after[name], before[name]) for name in before)
    plain = Trainer(ew.convert(network()), optimizer=optimizers.SGD(0.0))
    assert trainer.step(*batch()) == pytest.approx(plain.step(*batch()), abs=1e-6)


def test_each_weight_changes_by_a_matrix_of_the_rank_and_nothing_else() -> None:
    trainer, before = lora(2), ew.convert(network()).parameters()
    losses = [trainer.step(*batch()) for _ in range(12)]
    assert losses[-1] < 0.9 * losses[0]
    after = trainer.parameters()
    for name, value in after.items():
        change = (value.astype(np.float64) - before[name]).reshape(len(value), -1)
        if name not in WEIGHTS:
            assert not change.any()
            continue
        spread = np.linalg.svd(change, compute_uv=False)
        assert spread[1] > 0.0
        assert spread[2] < 1e-4 * spread[0]


def test_the_first_step_is_the_gradient_seen_through_the_first_factor() -> None:
    """``dB = A' dW``: with a step of B alone the weight follows ``-A A' dW``."""
    rate = optimizers.SGD(1.0)
    trainer = Trainer(ew.convert(network()), "cross_entropy", rate, "lora:3")
    plain = Trainer(ew.convert(network()), "cross_entropy", rate, ["w4"])
    before = trainer.parameters()["w4"]
    trainer.step(*batch())
    plain.step(*batch())
    change = trainer.parameters()["w4"] - before
    whole = plain.parameters()["w4"] - before
    states = trainer.state()
    a = states["w4/lora_a"]
    np.testing.assert_allclose(change.T, a @ (a.T @ whole.T), rtol=1e-4, atol=1e-6)


def test_a_merged_export_gives_what_the_trainer_trains() -> None:
    trainer, (x, y) = lora(), batch()
    for _ in range(3):
        trainer.step(x, y)
    merged = trainer.evaluate((x, y))["loss"]
    assert merged == pytest.approx(trainer.step(x, y), rel=1e-5)


def test_values_that_are_set_come_back_to_the_bit() -> None:
    trainer = lora()
    trainer.step(*batch())
    before = trainer.parameters()
    trainer.step(*batch())
    trainer.set_parameters(before)
    after = trainer.parameters()
    assert all(np.array_equal(after[name], before[name]) for name in before)


def test_a_checkpoint_keeps_the_factors_apart(tmp_path: Path) -> None:
    trainer = lora()
    trainer.step(*batch())
    trainer.save_checkpoint(tmp_path / "c.ew")
    again = Trainer.resume(tmp_path / "c.ew")
    assert [trainer.step(*batch()) for _ in range(3)] == [
        again.step(*batch()) for _ in range(3)
    ]
    new, old = again.parameters(), trainer.parameters()
    assert all(np.array_equal(new[name], old[name]) for name in old)


def test_a_rank_is_a_whole_number_from_1_on() -> None:
    with pytest.raises(ew.ConfigError, match="lora:0"):
        lora(0)
