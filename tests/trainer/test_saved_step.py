"""A trainer saved with its step: it goes on without what made it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import Trainer, losses, optimizers, schedules

ALONE = """
import json, sys
import numpy as np
import edgewise as ew
from edgewise_trainer import Trainer
data = np.load(sys.argv[2])
trainer = Trainer(ew.load(sys.argv[1]), threads=1)
losses = [trainer.step(data["x"], data["y"]) for _ in range(3)]
score = trainer.evaluate((data["x"], data["y"]))
np.savez(sys.argv[3], **trainer.parameters())
banned = ("edgewise_trainer.autodiff", "numba", "llvmlite", "onnx")
loaded = [name for name in banned if name in sys.modules]
print(json.dumps([losses, trainer.steps, score, loaded]))
"""
X = np.random.default_rng(2).standard_normal((6, 1, 8, 8)).astype(np.float32)
Y = np.arange(6) % 3


def network() -> ew.Model:
    """Convolution, batch norm, ReLU, pool, linear: for one image of 6 x 6."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (4, 1, 3, 3), "gamma": (4,), "beta": (4,), "mean": (4,)}
    shapes |= {"var": (4,), "w2": (3, 4), "b2": (3,)}
    tensors = [
        numpy_helper.from_array(rng.uniform(0.1, 1, s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    node, norm = helper.make_node, ["gamma", "beta", "mean", "var"]
    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1] * 4),
        node("BatchNormalization", ["a", *norm], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("GlobalAveragePool", ["c"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("Gemm", ["e", "w2", "b2"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 6, 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph(nodes, "net", [x], [y], tensors)
    opset = helper.make_opsetid("", 17)
    return ew.convert(helper.make_model(graph, opset_imports=[opset], ir_version=8))


def begun(**options: Any) -> Trainer:
    """A trainer after two steps, at sizes that its model does not declare."""
    optimizer = optimizers.Adam(schedules.Cosine(1e-2, 10))
    one = Trainer(network(), optimizer=optimizer, threads=1, **options)
    for _ in range(2):
        one.step(X, Y)
    return one


class Own:
    """A loss that no file can name."""

    def target(self, output: Any) -> Any:
        return losses.CrossEntropy().target(output)

    def __call__(self, output: Any, target: Any) -> Any:
        return losses.CrossEntropy(label_smoothing=0.1)(output, target)


@pytest.mark.parametrize(
    "options", [{}, {"trainable": "lora:2"}, {"trainable": "last:1"}, {"loss": Own()}]
)
def test_another_process_goes_on_bit_for_bit_without_making_gradients(
    options: dict[str, Any], tmp_path: Path
) -> None:
    one = begun(**options)
    one.save(tmp_path / "t.ew")
    np.savez(tmp_path / "data.npz", x=X, y=Y)
    paths = [tmp_path / name for name in ("t.ew", "data.npz", "after.npz")]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values, steps, score, loaded = json.loads(done.stdout)
    assert values == [one.step(X, Y) for _ in range(3)]
    assert steps == one.steps == 5
    assert score == one.evaluate((X, Y))
    assert loaded == []
    after = np.load(tmp_path / "after.npz")
    for name, value in one.parameters().items():
        np.testing.assert_array_equal(after[name], value)


def test_what_was_saved_still_runs_as_the_model(tmp_path: Path) -> None:
    one = begun()
    one.save(tmp_path / "t.ew")
    with ew.Session(tmp_path / "t.ew") as saved, ew.Session(one.export()) as now:
        np.testing.assert_array_equal(saved(X[:1, :, :6, :6]), now(X[:1, :, :6, :6]))


def test_other_sizes_make_a_known_loss_anew_and_refuse_your_own(tmp_path: Path) -> None:
    small = np.ascontiguousarray(X[:, :, :5, :5])
    one = begun()
    one.save(tmp_path / "t.ew")
    two = Trainer(ew.load(tmp_path / "t.ew"), threads=1)
    assert two.step(small, Y) == one.step(small, Y)
    begun(loss=Own()).save(tmp_path / "own.ew")
    with pytest.raises(ew.ShapeError, match="with a loss of your own"):
        Trainer(ew.load(tmp_path / "own.ew"), threads=1).step(small, Y)


def test_a_budget_of_memory_is_kept_by_a_step_made_anew(tmp_path: Path) -> None:
    x = X.repeat(64, 0)
    clipped = optimizers.Clipped(optimizers.SGD(0.5), norm=0.1)

    def trainer(budget: int | None) -> Trainer:
        options: Any = {"trainable": "last:1", "batch_size": len(x), "threads": 1}
        return Trainer(network(), "mse", clipped, memory_budget=budget, **options)

    target = np.zeros((len(x), 3), np.float32)
    whole = trainer(None)
    whole.step(x, target)
    peak = whole.report.peak_bytes
    assert peak is not None
    one = trainer(peak - 200_000)
    one.step(x, target)
    assert "gradients are added up" in one.report.notes[0]
    for name, value in whole.parameters().items():  # bounds hold for the whole batch
        np.testing.assert_allclose(one.parameters()[name], value, 0, 1e-6, name)
    one.save(tmp_path / "t.ew")
    two = Trainer(ew.load(tmp_path / "t.ew"), threads=1)
    assert two.step(x, target) == one.step(x, target)


def test_another_loss_optimizer_or_choice_begins_anew(tmp_path: Path) -> None:
    one = begun()
    one.save(tmp_path / "t.ew")
    loaded = ew.load(tmp_path / "t.ew")
    two = Trainer(loaded, optimizer=optimizers.SGD(0.1), threads=1)
    assert two.steps == 0
    assert set(two.export().module.functions) == {"infer", "prepare"}
    assert set(two.export().module.variables) == set(network().module.variables)
    assert Trainer(loaded, batch_size=4, threads=1).steps == 2


def test_a_file_that_is_damaged_is_told(tmp_path: Path) -> None:
    one = begun()
    one.save(tmp_path / "t.ew")
    module = ew.load(tmp_path / "t.ew").module
    facts = json.loads(module.metadata["edgewise.trainer"])
    for change in ({"optimizer": 3}, {"task": 3}, {"version": 9}, {"steps": "x"}):
        text = json.dumps(facts | change)
        changed = type(module)(
            module.functions, module.variables, {"edgewise.trainer": text}
        )
        with pytest.raises(ew.CheckpointError):
            Trainer(ew.Model(changed))
