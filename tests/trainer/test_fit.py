"""Training over data: passes, validation, callbacks, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.errors import ConfigError, EdgewiseError
from edgewise_trainer import (
    EarlyStop,
    Epoch,
    Progress,
    Trainer,
    losses,
    optimizers,
    schedules,
)


def network(seed: int = 0) -> onnx.ModelProto:
    """Two layers over eight numbers, three classes."""
    rng = np.random.default_rng(seed)
    shapes = {"w1": (8, 16), "b1": (16,), "w2": (16, 3), "b2": (3,)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.4, s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w1", "b1"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Gemm", ["b", "w2", "b2"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def examples(count: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.arange(count) % 3
    x = rng.normal(0, 0.3, (count, 8)) + np.eye(3, 8)[y]
    return x.astype(np.float32), y


def trainer(**options: Any) -> Trainer:
    given = {"optimizer": optimizers.AdamW(1e-2), "threads": 1} | options
    return Trainer(ew.convert(network()), **given)


def same(a: Trainer, b: Trainer) -> bool:
    other = b.parameters()
    return all(np.array_equal(v, other[k]) for k, v in a.parameters().items())


def test_fit_learns_and_evaluate_tells() -> None:
    one = trainer()
    before = one.evaluate(examples())
    history = one.fit(examples(), epochs=8, batch_size=16, validation=examples())
    after = one.evaluate(examples())
    assert after["accuracy"] > 0.9 > before["accuracy"]
    assert [epoch.number for epoch in history.epochs] == list(range(1, 9))
    assert history.epochs[-1].validation == after
    assert "epoch 8: loss" in str(history)


def test_what_is_exported_is_what_was_evaluated() -> None:
    one = trainer()
    one.fit(examples(), epochs=2)
    x, y = examples()
    with ew.Session(one.export()) as session:
        accuracy = float((session(x).argmax(1) == y).mean())
    assert accuracy == one.evaluate((x, y))["accuracy"]


def test_a_seed_decides_the_order_and_threads_change_no_bit() -> None:
    first, again, other = (trainer(seed=seed) for seed in (1, 1, 2))
    two = trainer(seed=1, threads=2)
    for one in (first, again, other, two):
        one.fit(examples(), epochs=2, batch_size=16)
    assert same(first, again)
    assert same(first, two)
    assert not same(first, other)


def test_batches_may_come_from_anywhere() -> None:
    x, y = examples()
    one, two = trainer(), trainer()
    one.fit(((x[i : i + 10], y[i : i + 10]) for i in range(0, 90, 10)), epochs=1)
    two.fit([({"x": x[i : i + 10]}, y[i : i + 10]) for i in range(0, 90, 10)])
    assert one.steps == two.steps == 9
    assert same(one, two)


def test_callbacks_see_everything_and_may_end_it() -> None:
    seen: list[Any] = []

    def stop(event: Progress | Epoch) -> bool:
        seen.append(event)
        return isinstance(event, Progress) and event.step == 4

    one = trainer()
    one.fit(examples(), epochs=5, batch_size=45, callbacks=[stop])
    assert one.steps == 4
    assert [type(event) for event in seen[:3]] == [Progress, Progress, Epoch]


def test_a_training_ends_when_the_loss_stops_falling() -> None:
    one = trainer(optimizer=optimizers.SGD(0.0))
    stop = EarlyStop(patience=2)
    history = one.fit(examples(), 50, validation=examples(), callbacks=[stop])
    assert len(history.epochs) == 3


@pytest.mark.parametrize(
    "optimizer",
    [
        optimizers.SGD(0.05, momentum=0.9, nesterov=True),
        optimizers.Adam(schedules.Cosine(1e-2, 20)),
        optimizers.AdamW(schedules.WarmUp(1e-2, 5)),
        optimizers.RMSprop(1e-3, momentum=0.5),
        optimizers.Adagrad(1e-2),
        optimizers.Lion(1e-3),
    ],
)
def test_a_resumed_training_goes_on_bit_for_bit(
    optimizer: optimizers.Optimizer, tmp_path: Path
) -> None:
    one = trainer(optimizer=optimizer, seed=3)

    def stop(event: Progress | Epoch) -> bool:
        return isinstance(event, Progress) and event.step == 8

    one.fit(examples(), epochs=3, batch_size=16, callbacks=[stop])
    one.save_checkpoint(tmp_path / "c.ew")
    two = Trainer.resume(tmp_path / "c.ew", threads=1)
    assert two.steps == 8
    for each in (one, two):
        each.fit(examples(), epochs=2, batch_size=16)
    assert one.steps == two.steps
    assert same(one, two)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    ew.convert(network()).save(tmp_path / "m.ew")
    with pytest.raises(ew.CheckpointError, match="no checkpoint of a trainer"):
        Trainer.resume(tmp_path / "m.ew")
    (tmp_path / "bad.ew").write_bytes(b"no model at all")
    with pytest.raises(ew.CheckpointError, match=r"bad\.ew"):
        Trainer.resume(tmp_path / "bad.ew")
    with pytest.raises(ew.CheckpointError, match="cannot hold a function"):
        trainer(loss=own_loss()).save_checkpoint(tmp_path / "own.ew")


def own_loss() -> Any:
    from edgewise_trainer.losses import MeanSquaredError

    def loss(output: Any, target: Any) -> Any:
        return MeanSquaredError()(output, target)

    return loss


def test_a_function_of_output_and_target_is_a_loss() -> None:
    one = trainer(loss=own_loss(), optimizer=optimizers.SGD(0.1))
    x, _ = examples()
    target = np.zeros((90, 3), np.float32)
    assert one.evaluate((x, target)).keys() == {"loss"}
    before = one.step(x, target)
    assert one.step(x, target) < before


def test_parameters_can_be_set_by_name() -> None:
    one, two = trainer(), trainer()
    one.fit(examples(), epochs=1)
    two.set_parameters(one.parameters())
    assert same(one, two)
    with pytest.raises(ew.ConfigError, match="'w9'"):
        two.set_parameters({"w9": np.zeros(3)})
    with pytest.raises(ew.ShapeError, match="'b2'"):
        two.set_parameters({"b2": np.zeros(4)})


def test_data_that_does_not_fit_is_named() -> None:
    x, y = examples()
    with pytest.raises(ew.ShapeError, match="want 80 targets"):
        trainer().fit((x, y[:80]))
    with pytest.raises(ew.DTypeError, match="target"):
        trainer().step(x, y.astype(np.float32))
    with pytest.raises(ew.DTypeError, match="target"):
        trainer().evaluate((x, y.astype(np.float32)))


def test_data_that_end_after_one_pass_are_refused_for_several() -> None:
    for options in (
        {"data": iter([examples()])},
        {"data": examples(), "validation": iter([examples()])},
    ):
        one = trainer()
        with pytest.raises(ConfigError, match="ends after one pass"):
            one.fit(**options, epochs=2)
        assert one.steps == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: trainer().fit(x, y), r"\(x, y\)"),
        (lambda x, y: trainer().fit((x, y), batch_size=0), "batch_size=0"),
        (lambda _x, _y: trainer(batch_size=0), "batch_size=0"),
        (lambda x, y: trainer().fit(({"z": x}, y)), "'x' is missing; got z$"),
        (lambda x, y: trainer().fit((x, y + 1)), "class 3; .* 0 to 2"),
        (lambda x, y: trainer().step(x, y - 1), "class -1"),
        (lambda x, y: trainer().evaluate((x, y + 1)), "class 3"),
        (lambda x, y: trainer().fit((x, y * 0.5)), "'mse'"),
        (lambda x, y: trainer(loss="mse").fit((x, y)), "astype"),
        (lambda _x, _y: trainer(optimizer="adam"), "optimizer='adam'"),
        (lambda _x, _y: Trainer("model.ew"), "edgewise.load"),  # type: ignore[arg-type]
    ],
)
def test_what_beginners_do_is_told(call: Any, words: str) -> None:
    with pytest.raises(EdgewiseError, match=words):
        call(*examples())


def test_a_class_to_be_ignored_need_not_be_there() -> None:
    x, y = examples()
    one = trainer(loss=losses.CrossEntropy(ignore_index=-1))
    assert np.isfinite(one.step(x, np.where(y == 2, -1, y)))


def test_a_softmax_before_cross_entropy_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = network()
    model.graph.node.append(helper.make_node("Softmax", ["y"], ["p"]))
    model.graph.output[0].name = "p"
    Trainer(ew.convert(model), threads=1)
    assert "ends with Softmax" in caplog.text
