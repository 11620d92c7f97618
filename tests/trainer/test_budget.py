"""Budgets of memory: kept, without other results, or refused with what would do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.op import Array
from edgewise_trainer import Trainer, optimizers
from edgewise_trainer.sizes import in_bytes

BATCH = 48


def network(*, norm: bool = False) -> onnx.ModelProto:
    """Four convolutions over images that are large beside their weights."""
    rng = np.random.default_rng(1)
    node = helper.make_node
    arrays: dict[str, Array] = {"w0": rng.normal(0, 0.3, (8, 1, 3, 3))}
    nodes = [node("Conv", ["x", "w0"], ["y0"], pads=[1] * 4)]
    for j in range(1, 4):
        arrays[f"w{j}"] = rng.normal(0, 0.2, (8, 8, 3, 3))
        nodes.append(node("Conv", [f"y{j - 1}", f"w{j}"], [f"c{j}"], pads=[1] * 4))
        names = [f"{part}{j}" for part in ("gamma", "beta", "mean", "var")]
        if norm:
            arrays |= {n: rng.uniform(0.5, 1.5, (8,)) for n in names}
            nodes.append(
                node("BatchNormalization", [f"c{j}", *names], [f"n{j}"], name=f"bn{j}")
            )
        nodes.append(node("Relu", [f"n{j}" if norm else f"c{j}"], [f"y{j}"]))
    arrays |= {"w4": rng.normal(0, 0.2, (8, 3))}
    nodes += [
        node("GlobalAveragePool", ["y3"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "w4"], ["logits"]),
    ]
    weights = [
        numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 32, 32])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "budget", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def batch(size: int = BATCH) -> tuple[Array, Array]:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((size, 1, 32, 32)).astype(np.float32)
    return x, rng.integers(0, 3, size)


def trainer(budget: int | str | None, *, norm: bool = False) -> Trainer:
    return Trainer(
        ew.convert(network(norm=norm)),
        optimizer=optimizers.SGD(0.05, momentum=0.9),
        batch_size=BATCH,
        memory_budget=budget,
        threads=1,
    )


def peak(made: Trainer) -> int:
    found = made.report.peak_bytes
    assert found is not None
    return found


@pytest.mark.parametrize("part", [0.8, 0.6])
def test_a_budget_is_kept_and_the_result_is_the_same(part: float) -> None:
    free = trainer(None)
    budget = int(part * peak(free))
    kept = trainer(budget)
    assert peak(kept) <= budget
    assert "parts of" in str(kept.report)
    for _ in range(3):
        x, y = batch()
        assert kept.step(x, y) == pytest.approx(free.step(x, y), rel=1e-5)
    want, found = free.parameters(), kept.parameters()
    for name, value in want.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_a_budget_that_is_large_enough_changes_nothing() -> None:
    free = trainer(None)
    kept = trainer(2 * peak(free))
    assert not kept.report.notes
    assert kept.step(*batch()) == free.step(*batch())


def test_what_cannot_do_is_refused_with_the_smallest_that_would() -> None:
    with pytest.raises(ew.ConfigError, match="memory_budget=100,000") as caught:
        trainer(100_000)
    numbers = re.findall(r"\d[\d,]{5,}", str(caught.value))
    least = max(int(text.replace(",", "")) for text in numbers)
    made = trainer(least)
    assert peak(made) <= least
    made.step(*batch())
    with pytest.raises(ew.ConfigError, match="smallest"):
        trainer(least - 1)
    report = Trainer.explain(
        ew.convert(network()), batch_size=BATCH, memory_budget=100_000, threads=1
    )
    assert "smallest" in report.problem


def test_the_report_says_what_becomes_of_batch_norms() -> None:
    free = trainer(None, norm=True)
    kept = trainer(int(0.7 * peak(free)), norm=True)
    assert "batch norms see one part each" in " ".join(kept.report.notes)


def test_a_larger_batch_than_was_planned_for_keeps_to_the_budget() -> None:
    made = trainer(peak(trainer(None)))
    made.step(*batch())
    before = made.memory.arena_bytes
    made.step(*batch(5 * BATCH))
    assert made.memory.arena_bytes <= before


def test_a_checkpoint_goes_on_in_the_same_parts(tmp_path: Path) -> None:
    made = trainer(int(0.6 * peak(trainer(None))))
    made.step(*batch())
    made.save_checkpoint(tmp_path / "c.ew")
    again = Trainer.resume(tmp_path / "c.ew", threads=1)
    for _ in range(2):
        assert again.step(*batch()) == made.step(*batch())
    want, found = made.parameters(), again.parameters()
    assert all(np.array_equal(found[name], value) for name, value in want.items())


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64_000_000), ("1.5 GiB", 3 << 29), ("800kb", 800_000), (123, 123)],
)
def test_budgets_are_bytes_or_texts(text: int | str, size: int) -> None:
    assert in_bytes(text) == size


@pytest.mark.parametrize("text", ["64 apples", "", "-3MB", 0, -1, True])
def test_other_budgets_are_refused(text: int | str) -> None:
    with pytest.raises(ew.ConfigError, match="memory_budget"):
        in_bytes(text)
