"""Training for small numbers: steps that are learned, and weights alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.sdk.compress.conftest import outputs
from tests.trainer.test_compressed import WEIGHTS, data, model, trained

import edgewise as ew
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Value, constant, input_value
from edgewise.ir.op import Array
from edgewise.ops import Clip, Mul, ReduceSum
from edgewise.types import DType, TensorType
from edgewise_trainer import Trainer, optimizers
from edgewise_trainer.autodiff import backward
from edgewise_trainer.rounding import learned, rounded

__all__ = ["model"]  # the fixture

MOST = 7
COUNT = 40
FAR = 12.0  # numbers reach beyond the ends of the steps
INT4 = {"weights": "int4", "activations": "float32", "learn_steps": True}
BYTES = {"learn_steps": True}
LEARNED = [
    INT4,
    INT4 | {"group": 64},
    INT4 | {"weights": "int8"},
    BYTES,
    BYTES | {"per_channel": False},
    BYTES | {"reduce_range": False},
    BYTES | {"symmetric": True},
]


class Rounding:
    """A weighted sum of rounded numbers, in double precision."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.feeds: dict[str, Array] = {
            "x": rng.uniform(-FAR, FAR, COUNT) * 0.3,
            "first": np.asarray([0.25]),
            "log": np.asarray([np.log(0.3 / 0.25)]),
        }
        self.weights = rng.standard_normal(COUNT)
        values = {
            key: input_value(key, TensorType(DType.F64, array.shape))
            for key, array in self.feeds.items()
        }
        step = learned(values["first"], values["log"], COUNT, MOST)
        y = rounded(values["x"], step, Clip(-MOST, MOST))
        total = ReduceSum((0,), keepdims=False)(Mul()(y, constant(self.weights)))
        self._values, self._total = values, total

    def total(self, **changed: Array) -> float:
        """What it is, of other numbers."""
        return float(self._run({"total": self._total}, self.feeds | changed)["total"])

    def gradients(self) -> Mapping[str, Array]:
        """Of the numbers, and of what is trained of the step."""
        wanted = [self._values[key] for key in ("x", "log")]
        grads = backward({self._total: constant(np.ones(()))}, wanted)
        named = dict(zip(("x", "log"), (grads[v] for v in wanted), strict=True))
        return self._run(named, self.feeds)

    def _run(
        self, named: Mapping[str, Value], feeds: Mapping[str, Array]
    ) -> dict[str, Array]:
        inputs = tuple(self._values.values())
        graph = Graph(inputs, tuple(named.values()), tuple(named))
        return dict(evaluate(graph, dict(feeds), {})[0])


def test_gradients_of_steps_are_those_of_the_paper() -> None:
    """Esser et al., equations 3 to 5, with the gradient scale of section 2.2."""
    rounding = Rounding()
    step, level = 0.3, rounding.feeds["x"] / 0.3
    inside = np.abs(level) < MOST
    assert 5 < inside.sum() < COUNT - 5
    slope = np.where(inside, np.rint(level) - level, MOST * np.sign(level))
    scale = 1 / np.sqrt(COUNT * MOST)
    want = scale * (rounding.weights * slope).sum()
    found = rounding.gradients()
    # To first order, log moves the step by itself times as much.
    np.testing.assert_allclose(found["log"] * step, want, rtol=1e-12)
    np.testing.assert_allclose(found["x"], np.where(inside, rounding.weights, 0))


def test_gradients_of_steps_are_differences_where_there_are_some() -> None:
    """Beyond the ends nothing is rounded: y is the end times the step."""
    rounding, change = Rounding(), 1e-6
    level = rounding.feeds["x"] / 0.3
    rounding.feeds["x"] = np.where(np.abs(level) < MOST, 0.0, rounding.feeds["x"])
    ends = [
        rounding.total(log=rounding.feeds["log"] + side * change) for side in (-1, 1)
    ]
    slope = (ends[1] - ends[0]) / (2 * change)
    scale = 1 / np.sqrt(COUNT * MOST) / 0.3**2
    found = rounding.gradients()
    np.testing.assert_allclose(found["log"], slope * scale, rtol=1e-6)
    for place in np.flatnonzero(np.abs(level) > MOST)[:5]:
        moved = rounding.feeds["x"].copy()
        moved[place] += change
        assert rounding.total(x=moved) == rounding.total()
        assert found["x"][place] == 0


@pytest.mark.parametrize("options", LEARNED)
def test_what_is_exported_is_what_was_trained(
    model: ew.Model, options: dict[str, object]
) -> None:
    """The loss of the last step is that of the exported model, but for rounding."""
    config = ew.QuantizeConfig(**options)  # type: ignore[arg-type]  # as above
    x, y = data()
    moving = {"optimizer": optimizers.AdamW(5e-3), "trainable": WEIGHTS}
    trainer = trained(model, 4, quantize=config, **moving)
    made = trainer.export()
    loss = trainer.step(x, y)
    assert made.quantization is not None
    kinds = {row.precision for row in made.quantization.layers}
    assert kinds == {config.weights}
    assert not [key for key in made.module.variables if "quantize/" in key]
    exported = cross_entropy(outputs(made, x), y)
    close = 2e-3 if config.activations == "int8" else 1e-5
    assert abs(loss - exported) < close * loss
    unaware = ew.quantize(
        trainer_of_none(trainer),
        None if config.activations == "float32" else [{"x": x}],
        ew.QuantizeConfig(**{k: v for k, v in options.items() if k != "learn_steps"}),  # type: ignore[arg-type]
    )
    assert not np.array_equal(outputs(unaware, x), outputs(made, x))


def cross_entropy(logits: Array, y: Array) -> float:
    """Mean loss of classes."""
    wide = logits.astype(np.float64)
    totals = np.log(np.exp(wide).sum(1))
    return float((totals - wide[np.arange(len(y)), y]).mean())


def trainer_of_none(trainer: Trainer) -> ew.Model:
    """The real model behind a trainer."""
    return trainer._real(averaged=False)


@pytest.mark.parametrize("options", [INT4, INT4 | {"learn_steps": False}, BYTES])
def test_checkpoints_go_on_bit_for_bit(
    model: ew.Model, tmp_path: Path, options: dict[str, object]
) -> None:
    config = ew.QuantizeConfig(**options)  # type: ignore[arg-type]  # as above
    one = trained(model, 1, optimizer=optimizers.AdamW(5e-3), quantize=config)
    one.save_checkpoint(tmp_path / "c.ew")
    one.save(tmp_path / "s.ew")
    others = [Trainer.resume(tmp_path / "c.ew"), Trainer(ew.load(tmp_path / "s.ew"))]
    one.fit(data(), epochs=1, batch_size=8)
    x, _ = data()
    for other in others:
        other.fit(data(), epochs=1, batch_size=8)
        np.testing.assert_array_equal(
            outputs(other.export(), x), outputs(one.export(), x)
        )


@pytest.mark.parametrize("options", [INT4, BYTES])
def test_who_begins_anew_keeps_no_step(
    model: ew.Model, options: dict[str, object]
) -> None:
    config = ew.QuantizeConfig(**options)  # type: ignore[arg-type]  # as above
    moving = {"optimizer": optimizers.SGD(0.05), "trainable": WEIGHTS}
    fresh, used = (
        Trainer(model, quantize=config, **moving)  # type: ignore[arg-type]  # as above
        for _ in range(2)
    )
    used.fit(data(), epochs=2, batch_size=8)
    used.restart(model.parameters())
    x, y = data()
    for trainer in (fresh, used):
        trainer.step(x, y)
        trainer.step(x, y)
    np.testing.assert_array_equal(outputs(used.export(), x), outputs(fresh.export(), x))


@pytest.mark.parametrize("options", [INT4, BYTES])
def test_only_steps_of_what_is_trained_are_learned(
    model: ew.Model, options: dict[str, object]
) -> None:
    config = ew.QuantizeConfig(**options)  # type: ignore[arg-type]  # as above
    trainer = trained(model, 1, trainable=["w5", "b5"], quantize=config)
    graph = trainer._task.step.graph
    moved = {key for key in graph.updates if key.endswith("/log")}
    assert moved == {"quantize/weight/w5/log"}


def test_images_of_zeros_teach_no_step(model: ew.Model) -> None:
    config = ew.QuantizeConfig(learn_steps=True)
    trainer = Trainer(model, optimizer=optimizers.SGD(0.05), quantize=config)
    x, y = data()
    for _ in range(2):
        assert np.isfinite(trainer.step(np.zeros_like(x), y))
    assert all(np.isfinite(array).all() for array in trainer.parameters().values())
    assert np.isfinite(trainer.step(x, y))


def test_steps_are_not_learned_without_training(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="Trainer"):
        ew.quantize(model, None, ew.QuantizeConfig(**INT4))  # type: ignore[arg-type]


def test_halves_need_no_training(model: ew.Model) -> None:
    config = ew.QuantizeConfig(weights="float16", activations="float32")
    with pytest.raises(ew.ConfigError, match="int8 or int4"):
        Trainer(model, quantize=config)


DIGITS = Path(ew.__file__).parent / "demo_data"


@pytest.mark.slow
def test_learned_steps_do_at_least_as_well_with_four_bits() -> None:
    """On digits that neither was trained on, over three orders of examples."""
    with np.load(DIGITS / "digits.npz") as file:
        images, labels = file["images"].astype(np.float32) / 16, file["labels"]
    labels = labels.astype(np.int64)
    held, learn = slice(0, 120), slice(120, None)
    source = ew.convert(DIGITS / "digits.onnx")
    losses = {}
    for learns in (False, True):
        config = ew.QuantizeConfig(**(INT4 | {"learn_steps": learns}))  # type: ignore[arg-type]
        found = []
        for seed in range(3):
            trainer = Trainer(
                source, optimizer=optimizers.AdamW(2e-3), quantize=config, seed=seed
            )
            trainer.fit((images[learn], labels[learn]), epochs=6, batch_size=24)
            logits = outputs(trainer.export(), images[held])
            found.append(cross_entropy(logits, labels[held]))
        losses[learns] = np.mean(found)
    assert losses[True] <= losses[False]
