"""Batch norms over devices: statistics are joined with the rest, or stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.federated.conftest import Data, examples

import edgewise as ew
from edgewise.tools.demo import held_out
from edgewise_federated import (
    FederatedConfig,
    FederatedHistory,
    Privacy,
    Update,
    simulate,
)
from edgewise_federated.config import STRATEGIES
from edgewise_federated.norms import numbers
from edgewise_trainer import Trainer, optimizers

NORM = ("gamma", "beta", "mean", "var")


def normed(width: int = 12, hidden: int = 8, classes: int = 3) -> ew.Model:
    """A linear layer, its batch norm, and another layer."""
    rng = np.random.default_rng(0)
    arrays = {
        "w1": rng.normal(0, 0.4, (hidden, width)),
        "w2": rng.normal(0, 0.4, (classes, hidden)),
        "b2": np.zeros(classes),
        "gamma": np.ones(hidden),
        "beta": np.zeros(hidden),
        "mean": np.zeros(hidden),
        "var": np.ones(hidden),
    }
    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w1"], ["a"], transB=1),
        node("BatchNormalization", ["a", *NORM], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("Gemm", ["r", "w2", "b2"], ["y"], transB=1),
    ]
    return _made(nodes, arrays, ["N", width], ["N", classes])


def network(channels: int = 8) -> ew.Model:
    """Two convolutions with batch norms over digits of 8x8."""
    rng = np.random.default_rng(0)
    arrays, nodes, x, width = {}, [], "x", 1
    for layer in range(2):
        name, names = f"w{layer}", [f"{part}{layer}" for part in NORM]
        arrays[name] = rng.normal(0, (2 / 9 / width) ** 0.5, (channels, width, 3, 3))
        for part, number in zip(names, (1.0, 0.0, 0.0, 1.0), strict=True):
            arrays[part] = np.full(channels, number)
        nodes += [
            helper.make_node("Conv", [x, name], [f"c{layer}"], pads=[1] * 4),
            helper.make_node(
                "BatchNormalization", [f"c{layer}", *names], [f"n{layer}"]
            ),
            helper.make_node("Relu", [f"n{layer}"], [f"r{layer}"]),
            helper.make_node(
                "MaxPool",
                [f"r{layer}"],
                [f"p{layer}"],
                kernel_shape=[2, 2],
                strides=[2, 2],
            ),
        ]
        x, width = f"p{layer}", channels
    arrays["head"] = rng.normal(0, 0.2, (10, 4 * channels))
    nodes += [
        helper.make_node("Flatten", [x], ["f"]),
        helper.make_node("Gemm", ["f", "head"], ["y"], transB=1),
    ]
    return _made(nodes, arrays, ["N", 1, 8, 8], ["N", 10])


def _made(
    nodes: list[onnx.NodeProto],
    arrays: dict[str, np.ndarray],
    inputs: list[object],
    outputs: list[object],
) -> ew.Model:
    weights = [
        numpy_helper.from_array(array.astype(np.float32), name)
        for name, array in arrays.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, outputs)
    graph = helper.make_graph(nodes, "normed", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    return ew.convert(proto)


def devices() -> list[Data]:
    """Three devices of other sizes, that see their inputs in other lights."""
    made = []
    for index, count in enumerate((20, 36, 50)):
        x, y = examples(count, index)
        made.append((x * np.float32(1 + index), y))
    return made


def run(
    model: ew.Model, partitions: list[Data], **settings: object
) -> FederatedHistory:
    """Every device in every round."""
    hook = settings.pop("hook", None)
    test = settings.pop("test", None)
    given = {"clients_per_round": len(partitions), "rounds": 3, "batch_size": 10}
    return simulate(
        model,
        partitions,
        FederatedConfig(**(given | settings)),  # type: ignore[arg-type]
        optimizer=optimizers.SGD(0.1),
        evaluate=test,
        reply_hook=hook,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("strategy", ["fedavg", "fedadam", "fedavgm", "scaffold"])
def test_statistics_are_the_mean_of_those_of_devices(strategy: str) -> None:
    """Whatever the strategy makes of what is trained; against numpy, one step each."""
    model, partitions = normed(), devices()
    history = run(model, partitions, strategy=strategy, rounds=1, batch_size=64)
    w1 = model.parameters()["w1"].astype(np.float64)
    counts = np.asarray([len(y) for _, y in partitions])
    sums = [x.astype(np.float64) @ w1.T for x, _ in partitions]
    means = np.stack([0.1 * a.mean(0) for a in sums])
    variances = np.stack([0.9 + 0.1 * a.var(0, ddof=1) for a in sums])
    end, weights = numbers(history.model), counts / counts.sum()
    np.testing.assert_allclose(end["mean"], weights @ means, atol=1e-5)
    np.testing.assert_allclose(end["var"], weights @ variances, rtol=1e-5)


def test_the_mean_of_devices_is_what_each_of_them_came_to() -> None:
    """Parameters and statistics of one pass of one batch, against a trainer each."""
    model, partitions = normed(), devices()
    history = run(model, partitions, rounds=1, batch_size=64)
    ends, counts = [], [len(y) for _, y in partitions]
    for x, y in partitions:
        trainer = Trainer(model, "cross_entropy", optimizers.SGD(0.1))
        trainer.step(x, y)
        ends.append(numbers(trainer.export()))
    for name, value in numbers(history.model).items():
        want = np.average([end[name] for end in ends], axis=0, weights=counts)
        np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("personal", ["norm", ["gamma", "beta"]])
def test_personal_norms_keep_their_statistics(personal: str | list[str]) -> None:
    seen: set[str] = set()

    def look(number: int, client: int, update: Update) -> Update:
        del number, client
        seen.update(update.arrays)
        return update

    model = normed()
    history = run(model, devices(), personal=personal, hook=look)
    assert seen == {"w1", "w2", "b2"}
    start, end = numbers(model), numbers(history.model)
    for name in NORM:
        np.testing.assert_array_equal(end[name], start[name])


def test_statistics_travel_whole_beside_thin_updates() -> None:
    """A codec loses of what is trained; a variance of few bits could fall below 0."""
    model, partitions = normed(), devices()
    ends = [
        numbers(run(model, partitions, rounds=1, codec=codec).model)
        for codec in ("float32", "int4", "topk:0.1")
    ]
    for end in ends[1:]:
        np.testing.assert_array_equal(end["mean"], ends[0]["mean"])
        np.testing.assert_array_equal(end["var"], ends[0]["var"])
        assert (end["w1"] != ends[0]["w1"]).any()


def test_a_variance_never_falls_below_zero() -> None:
    def lie(number: int, client: int, update: Update) -> Update:
        del number
        arrays = dict(update.arrays)
        if client == 0:
            arrays["var"] = np.full_like(arrays["var"], -1e4)
        return update.replace(arrays=arrays)

    history = run(normed(), devices(), hook=lie, test=examples(60, 9))
    assert (numbers(history.model)["var"] == 0).all()
    assert all(np.isfinite(one.loss) for one in history.rounds if one.loss is not None)


def test_sums_alone_hold_statistics_too() -> None:
    plain, hidden = (
        numbers(run(normed(), devices(), secure_aggregation=secure).model)
        for secure in (False, True)
    )
    for name, value in plain.items():
        np.testing.assert_allclose(hidden[name], value, atol=1e-4)


def test_noise_falls_on_no_statistics() -> None:
    privacy = Privacy(clip=1.0, noise_multiplier=1.0)
    with pytest.raises(ew.ConfigError, match="want personal='norm'"):
        run(normed(), devices(), privacy=privacy)
    history = run(normed(), devices(), privacy=privacy, personal="norm")
    assert history.rounds[-1].epsilon is not None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_killed_run_with_statistics_goes_on_to_the_bit(
    tmp_path: object, strategy: str
) -> None:
    settings = {"strategy": strategy, "codec": "float32", "seed": 3}
    whole = run(normed(), devices(), rounds=4, **settings)
    run(normed(), devices(), rounds=2, checkpoint_dir=str(tmp_path), **settings)
    again = run(normed(), devices(), rounds=4, checkpoint_dir=str(tmp_path), **settings)
    for name, value in numbers(whole.model).items():
        np.testing.assert_array_equal(numbers(again.model)[name], value)


@pytest.mark.parametrize("shards", [0, 2])
def test_a_network_with_batch_norms_learns_digits(shards: int) -> None:
    """Dealt at random, and by labels, of which each device sees a few."""
    x, y = held_out()
    y = y.astype(np.int64)
    test, x, y = (x[:90], y[:90]), x[90:], y[90:]
    if shards:
        pieces = np.array_split(np.argsort(y, kind="stable"), 6 * shards)
        deal = np.random.default_rng(1).permutation(6 * shards)
        rows = [np.concatenate([pieces[i] for i in d]) for d in np.split(deal, 6)]
    else:
        rows = np.array_split(np.arange(len(y)), 6)
    partitions = [(x[r], y[r]) for r in rows]
    history = run(
        network(), partitions, rounds=12, local_epochs=4, batch_size=15, test=test
    )
    assert history.rounds[-1].accuracy is not None
    assert history.rounds[-1].accuracy > (0.75 if shards else 0.9)
