"""Learning one task after another: what must stay, stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import optimizers
from edgewise_trainer.incremental import (
    DriftDetector,
    Ewc,
    IncrementalLearner,
    Lwf,
    Replay,
)
from edgewise_trainer.incremental.report import Gate

CLASSES = 6


def network(classes: int = CLASSES, seed: int = 0) -> onnx.ModelProto:
    """Two layers over twelve numbers."""
    rng = np.random.default_rng(seed)
    shapes = {"w1": (12, 24), "b1": (24,), "w2": (classes, 24), "b2": (classes,)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w1", "b1"], ["a"]),
        node("Relu", ["a"], ["hidden"]),
        node("Gemm", ["hidden", "w2", "b2"], ["logits"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 12])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", classes])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def examples(*kinds: int, count: int = 40, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.array(kinds), count)
    x = rng.normal(0, 0.25, (len(y), 12)) + np.eye(12)[y % 12]
    return x.astype(np.float32), y


def learner(method: Any = "replay", classes: int = CLASSES, **options: Any) -> Any:
    given = {"optimizer": optimizers.AdamW(1e-2), "threads": 1} | options
    return IncrementalLearner(ew.convert(network(classes)), method, **given)


def taught(one: Any, *tasks: tuple[int, ...]) -> Any:
    for task in tasks:
        assert one.learn(examples(*task), epochs=6, batch_size=16).accepted
    return one


TASKS = ((0, 1), (2, 3), (4, 5))


def test_replay_keeps_what_is_lost_without() -> None:
    everything = examples(*range(CLASSES), seed=2)
    kept = taught(learner("replay"), *TASKS).evaluate(everything)["accuracy"]
    lost = taught(learner("none"), *TASKS).evaluate(everything)["accuracy"]
    assert kept > 0.9
    assert kept > lost + 0.2


def test_a_class_is_no_answer_before_it_was_seen() -> None:
    one = taught(learner(), (0, 1))
    assert one.classes == (0, 1)
    with ew.Session(one.export()) as session:
        answers = session(examples(*range(CLASSES))[0]).argmax(1)
    assert set(answers) == {0, 1}


def test_new_classes_join_the_head() -> None:
    one = taught(learner(classes=3), (0, 1, 2))
    old = one.trainer.parameters()
    report = one.learn(examples(3, 4), epochs=8, batch_size=16)
    assert report.accepted
    assert one.classes == (0, 1, 2, 3, 4)
    assert one.trainer.parameters()["w2"].shape == (5, 24)
    assert old["w2"].shape == (3, 24)
    assert one.evaluate(examples(*range(5), seed=2))["accuracy"] > 0.9
    with ew.Session(one.export()) as session:
        assert session(examples(0)[0]).shape == (40, 5)


@pytest.mark.parametrize("method", ["ewc", "lwf", "replay+ewc+lwf"])
def test_the_head_grows_with_every_method(method: str) -> None:
    one = taught(learner(method, classes=2), (0, 1), (2,), (3, 4))
    assert one.trainer.parameters()["b2"].shape == (5,)
    assert np.isfinite(one.evaluate(examples(*range(5)))["loss"])


def test_a_head_that_cannot_grow_is_named() -> None:
    proto = network(2)
    proto.graph.node.append(helper.make_node("Softmax", ["logits"], ["p"], axis=1))
    proto.graph.output[0].name = "p"
    one = IncrementalLearner(ew.convert(proto), "none")
    with pytest.raises(ew.ConfigError, match="ends with a linear layer"):
        one.learn(examples(0, 2))


def rotated(data: tuple[Any, Any]) -> tuple[Any, Any]:
    """The same classes seen through other numbers."""
    return np.roll(data[0], 3, axis=1), data[1]


@pytest.mark.parametrize(
    ("method", "more"),
    [(Ewc(strength=30.0), 0.1), (Lwf(weight=1.0), 0.05), (Replay(), 0.2)],
)
def test_a_first_domain_is_kept_better_than_without(method: Any, more: float) -> None:
    first, second = examples(*range(CLASSES)), rotated(examples(*range(CLASSES)))
    kept = []
    for chosen in ("none", method):
        one = learner(chosen)
        one.learn(first, epochs=6, batch_size=16)
        one.learn(second, epochs=4, batch_size=16)
        kept.append(one.evaluate(first)["accuracy"])
        assert one.evaluate(second)["accuracy"] > 0.5
    assert kept[1] > kept[0] + more


def test_an_update_that_harms_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    everything = examples(*range(CLASSES))
    one = learner(keep=everything, store=tmp_path / "m.db")
    assert one.learn(everything, epochs=6, batch_size=16).accepted
    before, held = one.trainer.parameters(), one.replay.classes
    x, y = everything
    report = one.learn((x, (y + 1) % CLASSES), epochs=6, batch_size=16)
    assert not report.accepted
    assert "keep-set" in report.reason
    assert report.after["accuracy"] < report.before["accuracy"]
    after = one.trainer.parameters()
    assert all(np.array_equal(before[key], after[key]) for key in before)
    assert one.replay.classes == held
    assert one.forgetting().shape == (1, 1)


def test_small_harms_do_not_add_up() -> None:
    """The measure is the best so far, not the last."""
    gate = Gate(0.02)
    gate.note({"loss": 1.0, "accuracy": 0.90})
    assert not gate.refusal({"loss": 1.0, "accuracy": 0.885})
    gate.note({"loss": 1.0, "accuracy": 0.885})
    assert gate.refusal({"loss": 1.0, "accuracy": 0.87})
    regression = Gate(0.1)
    regression.note({"loss": 2.0})
    assert not regression.refusal({"loss": 2.1})
    assert regression.refusal({"loss": 2.3})
    assert "diverged" in regression.refusal({"loss": float("nan")})


def test_a_training_that_diverges_is_refused() -> None:
    one = learner("none", optimizer=optimizers.SGD(1e30))
    before = one.trainer.parameters()
    with np.errstate(all="ignore"):
        report = one.learn(examples(0, 1), epochs=3)
    assert not report.accepted
    assert "diverged" in report.reason
    assert np.array_equal(before["w1"], one.trainer.parameters()["w1"])


def test_forgetting_is_told_task_by_task() -> None:
    matrix = taught(learner("none"), *TASKS).forgetting()
    assert matrix.shape == (3, 3)
    assert np.isnan(matrix[np.triu_indices(3, 1)]).all()
    assert (np.diag(matrix) > 0.9).all()
    assert matrix[2, 0] < matrix[0, 0]


@pytest.mark.parametrize("cut", ["hidden", "last:1"])
def test_features_are_replayed_behind_a_cut(cut: str) -> None:
    one = learner(cut=cut)
    before = ew.convert(network()).parameters()
    taught(one, *TASKS)
    exported = one.export().parameters()
    np.testing.assert_array_equal(exported["w1"], before["w1"])
    assert not np.array_equal(exported["w2"], before["w2"])
    assert one.replay.everything()[0]["features"].shape[1:] == (24,)
    assert one.evaluate(examples(*range(CLASSES), seed=2))["accuracy"] > 0.75
    with ew.Session(one.export()) as session:
        x, y = examples(*range(CLASSES), seed=2)
        score = float((session(x).argmax(1) == y).mean())
    assert score == one.evaluate((x, y))["accuracy"]


def test_a_cut_that_is_no_tensor_is_named() -> None:
    with pytest.raises(ew.ConfigError, match="hidden"):
        learner(cut="nowhere")
    with pytest.raises(ew.ConfigError, match="K from 1 to 2"):
        learner(cut="last:3")


def test_what_goes_past_a_cut_is_refused() -> None:
    proto = network()
    proto.graph.node.insert(2, helper.make_node("Gemm", ["x", "w1"], ["c"]))
    proto.graph.node.insert(3, helper.make_node("Add", ["hidden", "c"], ["sum"]))
    proto.graph.node[4].input[0] = "sum"
    with pytest.raises(ew.ConfigError, match="'x' goes past it"):
        IncrementalLearner(ew.convert(proto), cut="hidden")


OPTIONS = [
    ("replay", {}),
    ("replay+ewc+lwf", {}),
    ("replay", {"cut": "last:1"}),
    ("none", {"keep": examples(*range(CLASSES)), "max_drop": 1.0}),
]


@pytest.mark.parametrize(("method", "options"), OPTIONS)
def test_a_learner_goes_on_bit_for_bit(
    tmp_path: Path, method: str, options: dict[str, Any]
) -> None:
    one = taught(learner(method, **options), *TASKS[:2])
    one.save(tmp_path / "l.ew")
    two = IncrementalLearner.resume(tmp_path / "l.ew", threads=1)
    assert len(two.replay) == len(one.replay)
    assert two.classes == one.classes
    taught(one, TASKS[2])
    taught(two, TASKS[2])
    a, b = one.export().parameters(), two.export().parameters()
    assert all(np.array_equal(a[key], b[key]) for key in a)
    np.testing.assert_array_equal(one.forgetting(), two.forgetting())


def test_a_learner_with_a_store_is_resumed_with_it(tmp_path: Path) -> None:
    one = taught(learner(store=tmp_path / "m.db"), *TASKS[:2])
    one.save(tmp_path / "l.ew")
    one.close()
    with pytest.raises(ew.ConfigError, match="store"):
        IncrementalLearner.resume(tmp_path / "l.ew")
    two = IncrementalLearner.resume(tmp_path / "l.ew", store=tmp_path / "m.db")
    assert two.replay.classes == one.replay.classes
    taught(two, TASKS[2])


def test_other_files_are_no_learners(tmp_path: Path) -> None:
    one = learner("none")
    one.trainer.save_checkpoint(tmp_path / "c.ew")
    with pytest.raises(ew.CheckpointError, match="not of an incremental learner"):
        IncrementalLearner.resume(tmp_path / "c.ew")
    one.save(tmp_path / "l.ew")
    data = (tmp_path / "l.ew").read_bytes()
    (tmp_path / "l.ew").write_bytes(data[:-400])
    with pytest.raises(ew.CheckpointError):
        IncrementalLearner.resume(tmp_path / "l.ew")


def test_what_the_trainer_is_taught_stays() -> None:
    one = learner("none", known="all")
    data = examples(*range(CLASSES))
    one.trainer.fit(data, epochs=6, batch_size=16)
    assert one.evaluate(data)["accuracy"] > 0.9
    one.learn(data, epochs=1)
    assert one.evaluate(data)["accuracy"] > 0.9


def test_one_thread_and_two_learn_the_same_bits() -> None:
    ends = [
        taught(learner("replay+ewc", threads=threads), *TASKS).export().parameters()
        for threads in (1, 2)
    ]
    assert all(np.array_equal(ends[0][key], ends[1][key]) for key in ends[0])


def test_drift_is_told_when_inputs_change() -> None:
    one = taught(learner(), tuple(range(CLASSES)))
    x, y = examples(*range(CLASSES), seed=3)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    assert not any(one.watch(x[i : i + 20]) for i in range(0, 240, 20))
    assert any(one.watch(0.3 * x[i : i + 20]) for i in range(0, 240, 20))
    one.learn((x, y))
    assert not one.drift.drifted
    assert not one.watch(x, y)


def test_a_detector_waits_for_a_rise() -> None:
    rng = np.random.default_rng(0)
    calm, risen = rng.normal(1.0, 0.1, 2000), rng.normal(1.2, 0.1, 100)
    detector = DriftDetector()
    assert not any(map(detector.update, calm))
    assert any(map(detector.update, risen))
    detector.reset()
    assert not detector.drifted
    assert detector.update(float("nan"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "magic"}, "'none', or of replay"),
        ({"method": (Ewc(), Ewc())}, "once"),
        ({"method": "ewc", "trainable": "lora:2"}, "factors"),
        ({"method": "lwf", "loss": "mse"}, "cross_entropy"),
        ({"method": "none", "store": "m.db"}, "replay"),
        ({"method": "none", "known": "some"}, "'all'"),
        ({"method": "none", "max_drop": -1.0}, "from 0 on"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ew.ConfigError, match=message):
        learner(**given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Replay(policy="luck"),
        lambda: Replay(share=0.0),
        lambda: Ewc(strength=-1.0),
        lambda: Ewc(examples=0),
        lambda: Lwf(temperature=0.0),
        lambda: DriftDetector(threshold=0.0),
    ],
)
def test_methods_check_what_they_are_given(make: Callable[[], object]) -> None:
    with pytest.raises(ew.ConfigError):
        make()


def test_data_that_ends_after_one_pass_is_refused() -> None:
    batches = [examples(0, 1), examples(2, 3)]
    with pytest.raises(ew.ConfigError, match="one pass"):
        learner().learn(iter(batches))
    one = learner()
    assert one.learn(batches, epochs=2).accepted
    assert one.classes == (0, 1, 2, 3)


def test_a_regression_is_learned_without_classes() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 12)).astype(np.float32)
    y = (x[:, :CLASSES] * 0.5).astype(np.float32)
    one = learner("replay", loss="mse")
    report = one.learn((x, y), epochs=8)
    assert report.accepted
    assert report.after["loss"] < report.before["loss"]
    assert one.classes == ()
    assert len(one.replay) == 64
    assert one.forgetting().shape == (1, 1)


def test_what_a_model_knows_already_is_remembered() -> None:
    everything = examples(*range(CLASSES))
    one = learner("none", known="all")
    one.trainer.fit(everything, epochs=8, batch_size=16)
    model, (x, y) = one.export(), examples(0, 1)
    news = np.roll(x, CLASSES, axis=1), y  # what no class looks like
    kept = []
    for method in ("none", "replay", "ewc"):
        how = optimizers.AdamW(1e-2)
        two = IncrementalLearner(model, method, optimizer=how, threads=1)
        two.remember(examples(*range(CLASSES), count=10))
        assert two.classes == tuple(range(CLASSES))
        assert len(two.replay) == (60 if method == "replay" else 0)
        assert str(two.learn(news, epochs=12)).startswith("learned")
        kept.append(two.evaluate(everything)["accuracy"])
    assert kept[1] > kept[0] + 0.1
    assert kept[2] > kept[0]


def test_a_hinge_has_classes_as_well() -> None:
    one = taught(learner("replay", loss="hinge"), *TASKS)
    assert one.classes == tuple(range(CLASSES))
    assert one.evaluate(examples(*range(CLASSES), seed=2))["accuracy"] > 0.85
    assert not one.watch(*examples(0))
