"""The trainer over small models of every kind of layer."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import Trainer, optimizers

RNG = np.random.default_rng(0)


def network(activation: str = "Relu") -> onnx.ModelProto:
    """Two convolutions, a pool and a linear layer."""
    shapes = {"w1": (4, 1, 3, 3), "b1": (4,), "w2": (8, 4, 3, 3), "b2": (8,)}
    shapes |= {"w3": (3, 32), "b3": (3,)}
    rng = np.random.default_rng(1)
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4),
        node(activation, ["a"], ["b"]),
        node("Conv", ["b", "w2", "b2"], ["c"], pads=[1] * 4, strides=[2, 2]),
        node(activation, ["c"], ["d"]),
        node("AveragePool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["e"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["logits"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 8, 8])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((6, 1, 8, 8)).astype(np.float32)
    return x, np.arange(6) % 3


@pytest.mark.parametrize("activation", ["Relu", "HardSwish", "Sigmoid", "Softplus"])
def test_the_loss_falls_on_the_batch_that_is_trained(activation: str) -> None:
    model = ew.convert(network(activation))
    trainer = Trainer(model, optimizer=optimizers.Adam(1e-2), threads=1)
    x, y = batch()
    found = [trainer.step({"x": x}, y) for _ in range(12)]
    assert found[-1] < 0.9 * found[0]
    assert trainer.steps == 12


@pytest.mark.parametrize(
    ("trainable", "expected"),
    [
        ("all", {"w1", "b1", "w2", "b2", "w3", "b3"}),
        ("last:1", {"w3", "b3"}),
        ("last:2", {"w2", "b2", "w3", "b3"}),
        ("bias", {"b1", "b2", "b3"}),
        (["w2", "b*"], {"w2", "b1", "b2", "b3"}),
    ],
)
def test_what_is_not_trained_does_not_move_by_a_bit(
    trainable: str | list[str], expected: set[str]
) -> None:
    model = ew.convert(network())
    before = model.parameters()
    optimizer = optimizers.SGD(0.1)
    trainer = Trainer(model, optimizer=optimizer, trainable=trainable, threads=1)
    trainer.step(*batch())
    after = trainer.parameters()
    moved = {name for name in after if not np.array_equal(after[name], before[name])}
    assert moved == expected


def test_a_step_is_the_difference_quotient_of_the_loss() -> None:
    """The whole chain at once, in single precision: layouts, packing and epilogues."""
    model, (x, y) = ew.convert(network("Sigmoid")), batch()
    before = model.parameters()
    trainer = Trainer(model, optimizer=optimizers.SGD(1.0), threads=1)
    loss = trainer.step(x, y)
    step = {name: before[name] - value for name, value in trainer.parameters().items()}
    squares = sum(float((grad.astype(np.float64) ** 2).sum()) for grad in step.values())
    small = 1e-2 / squares**0.5
    again = Trainer(ew.convert(network("Sigmoid")), optimizer=optimizers.SGD(small))
    again.step(x, y)
    fallen = loss - again.step(x, y)
    assert fallen == pytest.approx(small * squares, rel=0.03)


def test_a_model_that_was_trained_is_exported_and_runs() -> None:
    model, (x, y) = ew.convert(network()), batch()
    trainer = Trainer(model, optimizer=optimizers.SGD(0.1), threads=1)
    trainer.step(x, y)
    with ew.Session(trainer.export()) as new, ew.Session(model) as old:
        assert not np.array_equal(new(x), old(x))


def test_an_op_without_a_gradient_is_named_before_training() -> None:
    proto = network()
    proto.graph.node[1].op_type = "Round"
    with pytest.raises(ew.TrainabilityError, match="Round"):
        Trainer(ew.convert(proto))
    Trainer(ew.convert(proto), trainable="last:1")


def test_a_step_frees_what_it_kept_as_it_goes_back() -> None:
    """Each layer more costs what it keeps, not its gradients on top."""
    sizes = {}
    for depth in (8, 16):
        trainer = Trainer(ew.convert(stack(depth)), loss="mse")
        x = np.ones((512, 64), np.float32)
        trainer.step(x, x)
        sizes[depth] = trainer.memory.arena_bytes
    assert sizes[16] - sizes[8] <= 8 * (512 * 64 * 4 + 3 * 64 * 64 * 4)


def stack(depth: int) -> onnx.ModelProto:
    """Square layers, each with a ReLU behind it; declared in a shuffled order."""
    rng = np.random.default_rng(1)
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.1, (64, 64)).astype("f4"), f"w{i}")
        for i in rng.permutation(depth)
    ]
    nodes = []
    for i in range(depth):
        given = f"r{i - 1}" if i else "x"
        nodes.append(helper.make_node("MatMul", [given, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])
    y = helper.make_tensor_value_info(f"r{depth - 1}", TensorProto.FLOAT, ["N", 64])
    graph = helper.make_graph(nodes, "stack", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


@pytest.mark.parametrize("trainable", ["all", "last:1", "lora:2"])
def test_a_trainer_that_begins_anew_does_the_same_again(trainable: str) -> None:
    x = RNG.standard_normal((16, 1, 8, 8)).astype(np.float32)
    y = np.arange(16) % 3
    optimizer = optimizers.Adam(1e-2)
    trainer = Trainer(ew.convert(network()), None, optimizer, trainable)
    first, ends = trainer.parameters(), []
    for _ in range(2):
        trainer.fit((x, y), epochs=2, batch_size=5)
        ends.append(trainer.parameters())
        trainer.restart(first)
    assert trainer.steps == 0
    for name, value in ends[0].items():
        np.testing.assert_array_equal(value, ends[1][name])
    assert any((first[name] != value).any() for name, value in ends[0].items())
