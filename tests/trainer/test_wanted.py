"""What a trainer must refuse in one clear error, before anything changes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trainer.small import X, Y, small

import edgewise as ew
from edgewise_trainer import Trainer, losses, optimizers, schedules

NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module")
def model() -> ew.Model:
    return small()


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
