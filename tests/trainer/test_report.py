"""What a trainer tells before it runs a step."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import Trainer, optimizers


def network(middle: str = "Relu") -> onnx.ModelProto:
    """Two linear layers with something between them; a third that nothing reads."""
    rng = np.random.default_rng(1)
    shapes = {"w1": (7, 33), "b1": (33,), "w2": (33, 3)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w1", "b1"], ["a"], name="first"),
        node(middle, ["a"], ["b"], name="middle"),
        node("MatMul", ["b", "w2"], ["logits"], name="last"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 7])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def test_parameters_are_trained_or_frozen() -> None:
    trainer = Trainer(ew.convert(network()), trainable=["w2"], batch_size=4)
    expected = {"w1": "frozen", "b1": "frozen", "w2": "trained"}
    assert trainer.report.parameters == expected
    layers = {k: v for k, v in trainer.report.ops.items() if k.startswith("Linear")}
    assert list(layers.values()) == ["not needed", "gradient"]
    assert "Linear last" in layers
    assert not trainer.report.problem


def test_what_has_no_gradient_is_told_and_not_raised() -> None:
    report = Trainer.explain(ew.convert(network("Round")))
    expected = {"w1": "unreachable", "b1": "unreachable", "w2": "trained"}
    assert report.parameters == expected
    assert report.ops["Round middle"] == "none"
    assert "Round 'middle'" in report.problem
    assert report.peak_bytes is None
    with pytest.raises(ew.TrainabilityError, match="Round 'middle'"):
        Trainer(ew.convert(network("Round")))


def test_the_table_has_a_row_for_each_parameter_and_kind_of_op() -> None:
    lines = str(Trainer.explain(ew.convert(network()), batch_size=64)).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["w1", "b1", "w2"]
    assert lines[0].split() == ["w1", "[7,", "33]", "trained"]
    assert ["Linear", "2", "gradient"] in [line.split() for line in lines]
    assert any(line.startswith("a step of batch 64: ") for line in lines)


def test_larger_batches_and_more_memory_of_the_optimizer_take_more() -> None:
    model = ew.convert(network())

    def peak(optimizer: optimizers.Optimizer, batch: int) -> int:
        found = Trainer.explain(model, optimizer=optimizer, batch_size=batch)
        assert found.seconds is not None
        assert found.seconds > 0.0
        return found.peak_bytes or 0

    plain, adam = optimizers.SGD(0.1), optimizers.Adam(0.1)
    assert 0 < peak(plain, 1) < peak(plain, 4096)
    assert peak(plain, 4096) < peak(adam, 4096)


def test_frozen_layers_keep_nothing() -> None:
    model = ew.convert(network())
    whole = Trainer.explain(model, batch_size=65536).peak_bytes
    last = Trainer.explain(model, "last:1", batch_size=65536).peak_bytes
    assert whole is not None
    assert last is not None
    assert last < 0.8 * whole


def test_a_step_runs_on_the_plan_that_was_reported() -> None:
    trainer = Trainer(ew.convert(network()), batch_size=8, threads=1)
    arena = trainer.report.peak_bytes
    held = trainer.memory.arena_bytes
    trainer.step(np.ones((8, 7), np.float32), np.arange(8) % 3)
    assert trainer.memory.arena_bytes == held
    assert arena is not None
    assert arena > held > 0
