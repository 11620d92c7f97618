"""Weights that are zero, few values, or signs; and files that hold them so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from tests.sdk.compress.conftest import network, outputs

import edgewise as ew
from edgewise import compress
from edgewise.compress.cluster import _means
from edgewise.ir.module import Coding

WEIGHTS = ("w1", "w2", "w3", "w4", "w5")


def kept(model: ew.Model, folder: Path) -> tuple[ew.Model, int]:
    """The model as a file has it, and the size of that."""
    model.save(folder / "m.ew")
    ew.check(folder / "m.ew")
    return ew.load(folder / "m.ew"), (folder / "m.ew").stat().st_size


def test_pruning_makes_exactly_the_smallest_weights_zero(model: ew.Model) -> None:
    pruned, before = compress.prune(model, 0.8).parameters(), model.parameters()
    for key in WEIGHTS:
        zero = pruned[key] == 0
        assert zero.sum() == int(0.8 * zero.size)
        np.testing.assert_array_equal(pruned[key][~zero], before[key][~zero])
        assert np.abs(before[key][zero]).max() <= np.abs(before[key][~zero]).min()
    np.testing.assert_array_equal(pruned["b1"], before["b1"])


@pytest.mark.parametrize(
    ("made", "share"),
    [
        (lambda m: compress.prune(m, 0.8), 0.5),
        (lambda m: compress.cluster(m, 16), 0.4),
        (lambda m: compress.cluster(compress.prune(m, 0.5), 13), 0.4),
        (lambda m: compress.cluster(m, 2), 0.3),
        (compress.binarize, 0.3),
    ],
)
def test_files_are_small_and_hold_the_same_numbers(
    model: ew.Model, x: np.ndarray, tmp_path: Path, made: object, share: float
) -> None:
    small = made(model)  # type: ignore[operator]  # one of the above
    _, whole = kept(model, tmp_path)
    again, size = kept(small, tmp_path)
    assert size <= share * whole
    np.testing.assert_array_equal(outputs(again, x), outputs(small, x))
    for key, info in small.module.variables.items():
        other = again.module.variables[key]
        assert other.coding is info.coding
        if info.initial is not None:
            assert other.initial is not None
            assert other.initial.tobytes() == np.asarray(info.initial).tobytes()


def test_a_coding_that_does_not_fit_is_stored_plainly(
    model: ew.Model, tmp_path: Path
) -> None:
    variables = model.module.variables
    for coding in Coding:
        changed = compress.weights.with_weights(
            model, {k: model.parameters()[k] for k in WEIGHTS}, coding
        )
        again, _ = kept(changed, tmp_path)
        for key in WEIGHTS:
            assert again.module.variables[key].coding is coding
            first, then = variables[key].initial, again.module.variables[key].initial
            np.testing.assert_array_equal(first, then)


def test_clusters_are_few_values_and_keep_zeros(model: ew.Model) -> None:
    few = compress.cluster(compress.prune(model, 0.5), 16).parameters()
    for key in WEIGHTS:
        assert len(np.unique(few[key])) <= 16
        assert (few[key] == 0).sum() == int(0.5 * few[key].size)


def test_binary_weights_have_one_size_a_channel_but_first_layers_stay(
    model: ew.Model,
) -> None:
    binary, before = compress.binarize(model).parameters(), model.parameters()
    np.testing.assert_array_equal(binary["w1"], before["w1"])
    for key in WEIGHTS[1:]:
        rows, old = (p[key].reshape(len(p[key]), -1) for p in (binary, before))
        assert (np.abs(rows) == np.abs(rows[:, :1])).all()
        np.testing.assert_array_equal(rows < 0, old < 0)
        np.testing.assert_allclose(np.abs(rows[:, 0]), np.abs(old).mean(1), rtol=1e-5)


def test_zeros_of_any_model_can_be_packed(
    model: ew.Model, x: np.ndarray, tmp_path: Path
) -> None:
    pruned = compress.prune(model, 0.8)
    small = ew.quantize(pruned, [{"x": x}, {"x": x}])
    packed = compress.pack_sparse(small)
    _, whole = kept(small, tmp_path)
    again, size = kept(packed, tmp_path)
    assert size < 0.8 * whole
    np.testing.assert_array_equal(outputs(again, x), outputs(small, x))


def test_what_is_kept_by_name_stays(model: ew.Model) -> None:
    before = model.parameters()["w3"]
    for made in (
        compress.prune(model, 0.5, keep=("w[3]",)),
        compress.cluster(model, 4, keep=("w3",)),
        compress.binarize(model, keep=("*3",)),
    ):
        np.testing.assert_array_equal(made.parameters()["w3"], before)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), "0.5", None, 1j, True])
def test_shares_that_cannot_be_are_refused(model: ew.Model, share: Any) -> None:
    with pytest.raises(ew.ConfigError, match="share"):
        compress.prune(model, share)


def test_what_cannot_be_done_is_refused(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="norm"):
        compress.prune(model, 0.5, norm="l3")
    for values in (1, 257, 16.0, "16", None, 10**5000):
        with pytest.raises(ew.ConfigError, match="values"):
            compress.cluster(model, values)  # type: ignore[arg-type]
    for keep in ("w1", None, (1,), ("w1", "haed*")):
        with pytest.raises(ew.ConfigError, match="keep"):
            compress.prune(model, 0.5, keep=keep)  # type: ignore[arg-type]
    for function in (compress.binarize, compress.cluster, compress.pack_sparse):
        with pytest.raises(ew.ConfigError, match="model: got str"):
            function("model.ew")  # type: ignore[operator]
    with pytest.raises(ew.ConfigError, match="without real weights"):
        compress.binarize(model, keep=("*",))


@pytest.mark.parametrize("number", [np.nan, -np.inf])
def test_weights_that_are_not_finite_are_left_out_by_name(number: float) -> None:
    proto = network()
    weight = next(w for w in proto.graph.initializer if w.name == "w3")
    array = numpy_helper.to_array(weight).copy()
    array[0, 0] = number
    weight.CopyFrom(numpy_helper.from_array(array, "w3"))
    model = ew.convert(proto)
    for function in (compress.cluster, compress.binarize):
        with pytest.raises(ew.ConfigError, match="'w3' has numbers that are not"):
            function(model)
        made = function(model, keep=("w3",)).parameters()
        np.testing.assert_array_equal(made["w3"], array)


def test_means_are_those_of_lloyd() -> None:
    """Against sums over the numbers of each, one by one."""
    rng = np.random.default_rng(0)
    numbers = np.append(rng.standard_cauchy(400), -1e6).astype(np.float32)
    centres = np.linspace(numbers.min(), numbers.max(), 16)
    for _ in range(50):
        owner = np.abs(numbers[:, None] - centres).argmin(1)
        centres = np.array(
            [
                numbers[owner == j].mean(dtype=np.float64) if (owner == j).any() else c
                for j, c in enumerate(centres)
            ]
        )
    np.testing.assert_allclose(_means(numbers, 16), centres, rtol=1e-5)
