"""Weights that keep to their coding while they are trained, and training for bytes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.sdk.compress.conftest import network, outputs
from tests.sdk.quant.test_between import network as network_between

import edgewise as ew
from edgewise import compress
from edgewise.ir.module import Coding
from edgewise_trainer import Trainer, optimizers

WEIGHTS = ("w1", "w2", "w3", "w4", "w5")
OPTIMIZERS = [
    optimizers.SGD(0.05, momentum=0.9, weight_decay=0.01),
    optimizers.AdamW(5e-3),
]


@pytest.fixture(scope="module")
def model() -> ew.Model:
    return ew.convert(network())


def data(count: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((count, 3, 13, 16)).astype(np.float32)
    return x, rng.integers(0, 10, count)


def trained(model: ew.Model, epochs: int = 2, **options: object) -> Trainer:
    trainer = Trainer(model, **options)  # type: ignore[arg-type]  # as tests have them
    trainer.fit(data(), epochs=epochs, batch_size=8)
    return trainer


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_zeros_stay_zeros(model: ew.Model, optimizer: optimizers.Optimizer) -> None:
    pruned = compress.prune(model, 0.8)
    before = pruned.parameters()
    after = trained(pruned, optimizer=optimizer).export().parameters()
    for key in WEIGHTS:
        np.testing.assert_array_equal(after[key] == 0, before[key] == 0)
        assert (after[key] != before[key]).any()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_who_shares_a_value_goes_on_sharing_it(
    model: ew.Model, optimizer: optimizers.Optimizer
) -> None:
    few = compress.cluster(compress.prune(model, 0.5), 16)
    before = few.parameters()
    after = trained(few, optimizer=optimizer).export().parameters()
    for key in WEIGHTS:
        _, first = np.unique(before[key], return_inverse=True)
        values = np.zeros(first.max() + 1, np.float32)
        values[first] = after[key].reshape(first.shape)
        np.testing.assert_array_equal(values[first].ravel(), after[key].ravel())
        np.testing.assert_array_equal(after[key] == 0, before[key] == 0)
        assert (after[key] != before[key]).any()


def test_values_move_by_the_sum_of_the_gradients_of_those_that_share_them(
    model: ew.Model,
) -> None:
    few = compress.cluster(model, 4)
    x, y = data()
    steps = {}
    for name, source in (("few", few), ("plain", _plain(few))):
        trainer = Trainer(source, optimizer=optimizers.SGD(0.1), trainable=["w4"])
        trainer.step(x, y)
        steps[name] = trainer.parameters()["w4"] - few.parameters()["w4"]
    weight = few.parameters()["w4"]
    for value in np.unique(weight):
        own = weight == value
        want = steps["plain"][own].sum(dtype=np.float64)
        np.testing.assert_allclose(steps["few"][own], want, rtol=1e-4, atol=1e-6)


def _plain(model: ew.Model) -> ew.Model:
    changes = {key: model.parameters()[key] for key in WEIGHTS}
    return compress.weights.with_weights(model, changes, Coding.PLAIN)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_signs_change_and_stay_signs(
    model: ew.Model, tmp_path: Path, optimizer: optimizers.Optimizer
) -> None:
    binary = compress.binarize(model)
    fast = dataclasses.replace(optimizer, lr=0.05)
    made = trained(binary, 6, optimizer=fast).export()
    before, after = binary.parameters(), made.parameters()
    for key in WEIGHTS[1:]:
        rows = np.abs(after[key].reshape(len(after[key]), -1))
        np.testing.assert_array_equal(rows, np.broadcast_to(rows[:, :1], rows.shape))
    flipped = np.sign(before["w5"]) != np.sign(after["w5"])
    assert 0 < flipped.mean() < 0.5
    plain, coded = tmp_path / "plain.ew", tmp_path / "coded.ew"
    model.save(plain)
    made.save(coded)
    assert coded.stat().st_size < 0.35 * plain.stat().st_size


@pytest.mark.parametrize(
    "made",
    [
        lambda m: compress.prune(m, 0.8),
        lambda m: compress.cluster(m, 16),
        compress.binarize,
        lambda m: m,
    ],
    ids=["pruned", "clustered", "binary", "for bytes"],
)
def test_a_checkpoint_goes_on_bit_for_bit(
    model: ew.Model, tmp_path: Path, made: object
) -> None:
    source = made(model)  # type: ignore[operator]  # one of the above
    options = {} if source is not model else {"quantize": ew.QuantizeConfig()}
    one = trained(source, 1, optimizer=optimizers.AdamW(5e-3), **options)
    one.save_checkpoint(tmp_path / "c.ew")
    one.save(tmp_path / "s.ew")
    others = [Trainer.resume(tmp_path / "c.ew"), Trainer(ew.load(tmp_path / "s.ew"))]
    one.fit(data(), epochs=1, batch_size=8)
    want = one.export()
    for other in others:
        other.fit(data(), epochs=1, batch_size=8)
        found = other.export()
        for key, array in want.parameters().items():
            np.testing.assert_array_equal(found.parameters()[key], array)
        x, _ = data()
        np.testing.assert_array_equal(outputs(found, x), outputs(want, x))


def test_parameters_that_are_set_are_those_that_are_got(model: ew.Model) -> None:
    few = compress.cluster(model, 16)
    one, other = trained(few, 1), Trainer(few)
    other.set_parameters(one.parameters())
    again = Trainer(few)
    again.restart(one.parameters())
    for key, array in one.parameters().items():
        np.testing.assert_array_equal(other.parameters()[key], array)
        np.testing.assert_array_equal(again.parameters()[key], array)
    with pytest.raises(ew.ConfigError, match="codebook"):
        other.set_parameters({"w4": model.parameters()["w4"]})


@pytest.mark.parametrize("method", ["minmax", "percentile"])  # ranges are learned
def test_training_for_bytes_gives_a_model_over_bytes(
    model: ew.Model, method: str
) -> None:
    config = ew.QuantizeConfig(method=method)
    trainer = trained(model, 8, optimizer=optimizers.AdamW(3e-3), quantize=config)
    made = trainer.export()
    assert made.quantization is not None
    assert {row.precision for row in made.quantization.layers} == {"int8"}
    assert not [key for key in made.module.variables if "quantize/" in key]
    x, y = data()
    with ew.Session(made) as session:
        rows = session.profile({"x": x}, runs=1).rows
        right = (np.asarray(session(x)).argmax(1) == y).mean()
    assert sum(row.op.startswith("byte_") for row in rows) == 5
    assert right == trainer.evaluate((x, y))["accuracy"] >= 0.9
    assert trainer.parameters()["w1"].shape == (24, 3, 3, 3)


def test_steps_see_what_kernels_of_bytes_compute(model: ew.Model) -> None:
    """The loss of a step at rate 0 is that of the int8 model, but for rounding."""
    x, y = data()
    config = ew.QuantizeConfig()
    frozen = optimizers.SGD(0.0)
    trainer = Trainer(model, optimizer=frozen, trainable=["w5"], quantize=config)
    for _ in range(3):
        loss = trainer.step(x, y)
    real = Trainer(model, optimizer=frozen, trainable=["w5"]).step(x, y)
    bytes_ = trainer.evaluate((x, y), batch_size=len(x))["loss"]
    assert abs(loss - bytes_) < 2e-3 * abs(bytes_)
    assert abs(loss - bytes_) < 0.2 * abs(loss - real)


def test_sums_are_rounded_as_bytes_too() -> None:
    config = ew.QuantizeConfig()
    between = ew.convert(network_between())
    x = np.random.default_rng(0).standard_normal((8, 3, 9, 7)).astype(np.float32)
    with ew.Session(between) as session:
        y = 0.9 * np.asarray(session(x))
    frozen = optimizers.SGD(0.0)
    trainer = Trainer(between, "mse", optimizer=frozen, quantize=config)
    for _ in range(3):
        loss = trainer.step(x, y)
    made = trainer.export()
    with ew.Session(made) as session:
        bytes_ = float(np.square(np.asarray(session(x)) - y).mean())
        ops = [row.op for row in session.profile({"x": x}, runs=1).rows]
    assert "byte_add" in ops
    assert abs(loss - bytes_) < 0.05 * bytes_


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "float16", "activations": "float32"},
        {"max_drop": 0.0, "evaluate": lambda _: 1.0},
        {"equalize": True},
    ],
)
def test_what_training_cannot_follow_is_refused(
    model: ew.Model, options: dict[str, object]
) -> None:
    config = ew.QuantizeConfig(**options)  # type: ignore[arg-type]  # as above
    with pytest.raises(ew.ConfigError, match="quantize"):
        Trainer(model, quantize=config)


def test_without_a_step_there_are_no_ranges(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="no ranges yet"):
        Trainer(model, quantize=ew.QuantizeConfig()).export()
