"""What a trainer must refuse in one clear error, before anything changes."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.module import Module
from edgewise_trainer import Trainer, checkpoint, losses, optimizers, schedules
from edgewise_trainer.incremental import IncrementalLearner
from edgewise_trainer.incremental.memory import ReplayMemory

NAN, INF = math.nan, math.inf
X = np.random.default_rng(2).standard_normal((6, 1, 8, 8)).astype(np.float32)
Y = np.arange(6) % 3


@pytest.fixture(scope="module")
def model() -> ew.Model:
    """A convolution, a pool over all that it gives, and a linear layer."""
    rng = np.random.default_rng(1)
    shapes = {"w1": (4, 1, 3, 3), "b1": (4,), "w3": (3, 4), "b3": (3,)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "w3", "b3"], ["logits"], transB=1),
    ]
    sizes = ["N", 1, 8, 8]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    return ew.convert(proto)


NO_NUMBERS: tuple[Any, ...] = ("a", None, NAN, INF, -1, 1e300, 1j, [1], True)
OPTIONS: dict[str, Callable[[Any], object]] = {
    "lr": optimizers.SGD,
    "weight_decay": lambda x: optimizers.SGD(0.1, weight_decay=x),
    "momentum": lambda x: optimizers.SGD(0.1, momentum=x),
    "betas": lambda x: optimizers.Adam(betas=(x, 0.9)),
    "both": lambda x: optimizers.Adam(betas=x),
    "eps": lambda x: optimizers.Adam(eps=x),
    "alpha": lambda x: optimizers.RMSprop(alpha=x),
    "decay": lambda x: optimizers.Averaged(optimizers.SGD(0.1), decay=x),
    "rate": lambda x: optimizers.Group(("*",), rate=x),
    "around": optimizers.Clipped,
    "constant": schedules.Constant,
    "floor": lambda x: schedules.Cosine(0.1, 10, x),
    "gamma": lambda x: schedules.Steps(0.1, 10, x),
    "steps": lambda x: schedules.Cosine(0.1, x),
    "then": lambda x: schedules.WarmUp(x, 3),
    "divisor": lambda x: schedules.OneCycle(0.1, 10, start_divisor=x),
    "smoothing": lambda x: losses.CrossEntropy(label_smoothing=x),
    "delta": losses.Huber,
    "margin": losses.Contrastive,
}


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_is_no_such_number_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ew.ConfigError, match="want"):
        OPTIONS[name](value)


@pytest.mark.parametrize("value", ["a", NAN, INF, None, -1.0])
def test_a_schedule_that_gives_no_rate_is_refused_at_its_step(
    model: ew.Model, value: Any
) -> None:
    trainer = Trainer(model, optimizer=optimizers.SGD(lambda step: value), threads=1)
    with pytest.raises(ew.ConfigError, match="lr after 0 steps"):
        trainer.step(X, Y)


WRONG: list[dict[str, Any]] = [
    {"optimizer": "adam"},
    {"optimizer": optimizers.SGD},
    {"loss": losses.CrossEntropy},
    {"loss": lambda output, target: 3},
    {"trainable": 5},
    {"trainable": [None]},
    {"trainable": "last:" + "9" * 5000},
    {"batch_size": 0},
    {"batch_size": -1},
    {"batch_size": 1.5},
    {"seed": -1},
    {"seed": None},
    {"memory_budget": "9" * 400 + "GB"},
]


@pytest.mark.parametrize("options", WRONG, ids=lambda found: str(found)[:40])
def test_a_trainer_refuses_options_of_another_kind(
    model: ew.Model, options: dict[str, Any]
) -> None:
    with pytest.raises(ew.ConfigError):
        Trainer(model, threads=1, **options)


@pytest.mark.parametrize("size", [0, -1, "x", INF])
def test_batches_of_no_size_are_refused(model: ew.Model, size: Any) -> None:
    trainer = Trainer(model, threads=1)
    with pytest.raises(ew.ConfigError, match="batch_size"):
        trainer.fit((X, Y), 1, size)
    with pytest.raises(ew.ConfigError, match="batch_size"):
        trainer.evaluate((X, Y), size)
    with pytest.raises(ew.ConfigError, match="epochs"):
        trainer.fit((X, Y), -1)
    with pytest.raises(ew.ConfigError, match="callbacks"):
        trainer.fit((X, Y), callbacks=[3])  # type: ignore[list-item]  # on purpose


RAGGED = [[1], [2, 3]]
DATA: list[Any] = [
    (RAGGED, [1, 2]),
    (X, RAGGED),
    ((X, Y), (X[:3], Y[:3])),
    (X[:0], Y[:0]),
    (3, 1),
    (None, Y),
    [],
    [(X[:0], Y[:0])],
    None,
]


@pytest.mark.parametrize("place", range(len(DATA)))
def test_data_that_are_no_examples_are_refused_and_change_nothing(
    model: ew.Model, place: int
) -> None:
    trainer = Trainer(model, threads=1)
    with pytest.raises(ew.EdgewiseError):
        trainer.fit(DATA[place])
    assert trainer.steps == 0


def test_a_generator_that_has_ended_trains_no_pass(model: ew.Model) -> None:
    trainer, once = Trainer(model, threads=1), ((X, Y) for _ in range(2))
    trainer.fit(once)
    with pytest.raises(ew.ShapeError, match="no batches"):
        trainer.fit(once)
    assert (trainer.steps, trainer.epochs) == (2, 1)


@pytest.mark.parametrize("loss", ["cross_entropy", "hinge"])
@pytest.mark.parametrize("wrong", [-1, -3, 3, 2**40])
def test_a_class_that_there_is_not_is_refused_and_changes_nothing(
    model: ew.Model, loss: str, wrong: int
) -> None:
    trainer, before = Trainer(model, loss, threads=1), model.parameters()
    with pytest.raises(ew.EdgewiseError, match=str(wrong)):
        trainer.step(X, np.append(Y[:5], wrong))
    after = trainer.parameters()
    assert all(np.array_equal(after[key], before[key]) for key in before)


def test_a_batch_in_which_nothing_counts_moves_nothing(model: ew.Model) -> None:
    trainer, before = Trainer(model, threads=1), model.parameters()
    assert math.isnan(trainer.step(X, np.full(6, -100)))
    after = trainer.parameters()
    assert all(np.array_equal(after[key], before[key]) for key in before)


@pytest.mark.parametrize(
    "values",
    [
        {"w1": "abc"},
        {"b1": [1e300] * 4},
        {"b1": [[1], [2, 3]]},
        {"b1": np.zeros(4, complex)},
        None,
    ],
)
def test_values_that_no_parameter_holds_are_refused(
    model: ew.Model, values: Any
) -> None:
    with pytest.raises(ew.EdgewiseError):
        Trainer(model, threads=1).set_parameters(values)


def test_targets_beyond_their_type_are_refused(model: ew.Model) -> None:
    with pytest.raises(ew.DTypeError, match="1e\\+300"):
        Trainer(model, "mse", threads=1).step(X, np.full((6, 3), 1e300))
    with pytest.raises(ew.EdgewiseError, match="18446744073709551615"):
        Trainer(model, threads=1).step(X, np.full(6, 2**64 - 1, np.uint64))


def test_threads_that_share_a_trainer_take_turns(model: ew.Model) -> None:
    trainer, failed = Trainer(model, threads=1), []

    def learn(size: int) -> None:
        for _ in range(5):
            try:
                trainer.step(np.zeros((6, 1, size, size), np.float32), Y)
            except ew.EdgewiseError as error:
                failed.append(error)

    workers = [threading.Thread(target=learn, args=(size,)) for size in (8, 9, 8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed
    assert trainer.steps == 15


@pytest.fixture(scope="module")
def saved(model: ew.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "t.ew"
    optimizer = optimizers.AdamW(schedules.Cosine(0.01, 50))
    trainer = Trainer(model, optimizer=optimizer, threads=1)
    trainer.step(X, Y)
    trainer.save(path)
    return path


def altered(path: Path, **facts: Any) -> ew.Model:
    module = ew.load(path).module
    known = json.loads(module.metadata[checkpoint.KEY]) | facts
    metadata = {**module.metadata, checkpoint.KEY: json.dumps(known)}
    return ew.Model(Module(module.functions, module.variables, metadata))


ODD: list[Any] = ["x", -1, 1.5, INF, [1], {"kind": "SGD", "lr": "x"}]
ODD += [{"kind": "Cosine", "rate": 0.1, "steps": 3}]
FACTS = ["loss", "optimizer", "batch_size", "seed", "steps", "epoch", "batch"]


@pytest.mark.parametrize("value", ODD, ids=str)
@pytest.mark.parametrize("name", [*FACTS, "memory_budget", "trainable"])
def test_a_checkpoint_of_odd_facts_is_one_error(
    saved: Path, name: str, value: Any
) -> None:
    if (name, value) == ("trainable", "x"):
        pytest.skip("a name like any other; the step is in the file")
    with pytest.raises(ew.CheckpointError):
        Trainer(altered(saved, **{name: value}), threads=1)


TASKS: list[dict[str, Any]] = [
    {"states": []},
    {"unreached": [1]},
    {"trained": [[]]},
    {"adapters": [["w1", "w1", "w1"]]},
    {"adapters": [["w1", "zz", "w1"]]},
]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_a_step_without_what_it_reads_is_one_error(
    saved: Path, task: dict[str, Any]
) -> None:
    known = json.loads(ew.load(saved).module.metadata[checkpoint.KEY])["task"]
    with pytest.raises(ew.CheckpointError):
        Trainer(altered(saved, task=known | task), threads=1)


def test_a_checkpoint_that_lost_a_state_is_no_checkpoint(saved: Path) -> None:
    module = ew.load(saved).module
    variables = {k: v for k, v in module.variables.items() if k != "b1/mean"}
    functions = {"infer": module.functions["infer"]}
    facts = json.loads(module.metadata[checkpoint.KEY])
    del facts["task"]
    metadata = {**module.metadata, checkpoint.KEY: json.dumps(facts)}
    with pytest.raises(ew.CheckpointError, match="b1/mean"):
        Trainer(ew.Model(Module(functions, variables, metadata)), threads=1)


def test_a_state_of_another_shape_is_refused(model: ew.Model) -> None:
    with pytest.raises(ew.CheckpointError, match="b1/momentum"):
        Trainer(
            model,
            optimizer=optimizers.SGD(0.1, momentum=0.9),
            state={"b1/momentum": np.zeros(5, np.float32)},
        )


def test_a_loss_and_a_schedule_of_one_name_are_told_apart(
    model: ew.Model, tmp_path: Path
) -> None:
    optimizer = optimizers.SGD(schedules.Cosine(0.1, 10))
    trainer = Trainer(model, "cosine", optimizer, threads=1)
    target = np.ones((6, 3), np.float32)
    trainer.step(X, target)
    trainer.save_checkpoint(tmp_path / "c.ew")
    again = Trainer.resume(tmp_path / "c.ew", threads=1)
    assert again.step(X, target) == trainer.step(X, target)


def test_a_learner_learns_in_another_thread(model: ew.Model, tmp_path: Path) -> None:
    learner, found = IncrementalLearner(model, store=tmp_path / "s", threads=1), []
    worker = threading.Thread(target=lambda: found.append(learner.learn((X, Y))))
    worker.start()
    worker.join()
    learner.close()
    assert found[0].accepted


def test_examples_of_which_some_do_not_count_come_back(
    model: ew.Model, tmp_path: Path
) -> None:
    with_store = {"store": tmp_path / "s", "threads": 1}
    first = IncrementalLearner(model, **with_store)  # type: ignore[arg-type]
    first.learn((X, np.append(Y[:5], -100)))
    first.close()
    second = IncrementalLearner(model, **with_store)  # type: ignore[arg-type]
    assert second.classes == (0, 1, 2)
    assert second.learn((X, Y)).accepted
    second.close()


def test_a_class_that_would_take_all_memory_is_refused(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="want class numbers below"):
        IncrementalLearner(model, threads=1).learn((X, np.append(Y[:5], 10**9)))


@pytest.mark.parametrize("size", [-1, None, "x", 10**30])
def test_a_memory_of_no_size_is_refused(size: Any) -> None:
    with pytest.raises(ew.ConfigError, match="replay_bytes"):
        ReplayMemory(size, "balanced").add({"x": X}, Y)


@pytest.mark.parametrize(
    "array",
    [np.array(["a"] * 6, object), np.float32(3), X[:2], np.full((6, 2), 1e300)],
)
def test_what_a_memory_cannot_hold_is_refused(array: Any) -> None:
    with pytest.raises(ew.EdgewiseError, match="replay"):
        ReplayMemory(10_000, "balanced").add({"x": array}, Y)


def test_replayed_images_of_another_size_are_refused(model: ew.Model) -> None:
    learner = IncrementalLearner(model, threads=1)
    learner.learn((X, Y))
    with pytest.raises(ew.ShapeError, match="it holds"):
        learner.learn((np.zeros((6, 1, 9, 9), np.float32), Y))


DAMAGE = [
    """UPDATE memory SET seen = '{"0": 1e400}'""",
    """UPDATE memory SET seen = '{"0": -5}'""",
    "UPDATE memory SET turn = 'x'",
    "UPDATE block SET id = id + 5",
    "UPDATE block SET records = 'text'",
    """UPDATE memory SET codec = '[["x", "U5", [1]], ["target", "int64", []]]'""",
    """UPDATE memory SET codec = '[["target", "int64", []]]'""",
    """UPDATE memory SET codec = '[["x", "f4", [1e400]], ["target", "i8", []]]'""",
    "UPDATE memory SET codec = replace(hex(zeroblob(50000)), '0', '[')",
    "UPDATE memory SET seen = replace(hex(zeroblob(50000)), '0', '[')",
]


@pytest.mark.parametrize("statement", DAMAGE, ids=lambda text: str(text)[:60])
def test_a_damaged_store_is_one_error(
    model: ew.Model, tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "s"
    learner = IncrementalLearner(model, store=path, threads=1)
    learner.learn((X, Y))
    learner.close()
    file = sqlite3.connect(path)
    file.execute(statement)
    file.commit()
    file.close()
    with pytest.raises(ew.CheckpointError):
        IncrementalLearner(model, store=path, threads=1)


def test_what_a_full_disk_refused_is_written_later(tmp_path: Path) -> None:
    memory = ReplayMemory(200_000, "balanced", tmp_path / "s")
    memory.add({"x": X}, Y)
    many, classes = np.concatenate([X] * 20), np.concatenate([Y] * 20)
    assert memory._store is not None
    (pages,) = memory._store._file.execute("PRAGMA page_count").fetchone()
    memory._store._file.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ew.CheckpointError, match="full"):
        memory.add({"x": many}, classes)
    memory._store._file.execute("PRAGMA max_page_count = 1000")
    memory.add({"x": X}, Y)
    memory.close()
    again = ReplayMemory(200_000, "balanced", tmp_path / "s")
    assert len(again) == len(memory) == 132
    np.testing.assert_array_equal(again.everything()[1], memory.everything()[1])
    again.close()


def test_of_two_that_begin_a_store_the_second_is_told(tmp_path: Path) -> None:
    first, second = (ReplayMemory(9_000, "balanced", tmp_path / "s") for _ in "ab")
    first.add({"x": X}, Y)
    with pytest.raises(ew.CheckpointError, match="another learner"):
        second.add({"x": X}, Y)
    first.close()
    second.close()
