"""What goes around optimizers; numbers are those of PyTorch 2.13.

Two parameters follow the slope of ``x ** 3 / 3 + SLOPE x``, as those of the tests of
optimizers do, one from ``START`` and one from twice that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Value, constant, input_value, variable_value
from edgewise.ops import Add, Mul
from edgewise.types import DType, TensorType
from edgewise_trainer import Trainer, optimizers
from edgewise_trainer.around import optimizer_of, prepared
from edgewise_trainer.optimizers import (
    SGD,
    AdamW,
    Averaged,
    Clipped,
    Group,
    Grouped,
    Optimizer,
)
from edgewise_trainer.update import Clock

START = np.array([1.0, -2.0, 0.5])
VECTOR, NUMBER = TensorType(DType.F64, (3,)), TensorType(DType.F64, ())
SLOPE = np.array([0.1, 0.2, -0.3])


def stepped(optimizer: Optimizer, steps: int = 4) -> dict[str, np.ndarray]:
    """Parameters and what is remembered of them after some steps."""
    places = {key: variable_value(key, VECTOR) for key in ("p", "q")}
    clock = Clock(input_value("rate", NUMBER), input_value("step", NUMBER))
    grads = {k: Add()(Mul()(x, x), constant(SLOPE)) for k, x in places.items()}
    values = {"p": START, "q": 2 * START}
    updates: dict[str, Value] = {}
    for key, grad in prepared(optimizer, grads).items():
        own = optimizer_of(optimizer, key)
        slots = {slot: variable_value(f"{key}/{slot}", VECTOR) for slot in own.slots}
        values |= {f"{key}/{slot}": np.zeros(3) for slot in own.slots}
        updates[key], new = own.update(places[key], grad, slots, clock)
        updates |= {f"{key}/{slot}": value for slot, value in new.items()}
    graph = Graph(tuple(clock), (), (), updates)
    for number in range(steps):
        feeds = {"rate": np.asarray(0.05), "step": np.asarray(float(number + 1))}
        values |= evaluate(graph, feeds, values)[1]
    return values


@pytest.mark.parametrize(
    ("optimizer", "p", "q"),
    [
        (
            Clipped(SGD(0.05, momentum=0.9), norm=1.5),
            [0.95918584, -2.16171938, 0.50186647],
            [1.84970322, -4.63978743, 0.97402831],
        ),
        (
            Clipped(SGD(0.05, momentum=0.9), value=0.7),
            [0.683285, -2.316715, 0.52092081],
            [1.683285, -4.316715, 0.72674238],
        ),
        (
            Grouped(AdamW(0.05, weight_decay=0.1), (Group(("p*",), 0.1, 0.0),)),
            [0.98001075, -2.02000523, 0.51979934],
            [1.76266674, -4.11925602, 0.78527941],
        ),
    ],
)
def test_bounds_and_groups_are_pytorchs(
    optimizer: Optimizer, p: list[float], q: list[float]
) -> None:
    found = stepped(optimizer)
    np.testing.assert_allclose(found["p"], p, rtol=2e-6)
    np.testing.assert_allclose(found["q"], q, rtol=2e-6)


def test_a_running_average_is_pytorchs() -> None:
    found = stepped(Averaged(SGD(0.05), decay=0.9))
    np.testing.assert_allclose(found["p"], [0.80911864, -3.1736346, 0.50927074])
    expected = [0.91886408, -2.37805789, 0.5037861]
    np.testing.assert_allclose(found["p/average"], expected, rtol=2e-6)


def test_they_nest_in_any_order() -> None:
    groups = (Group(("p",), 0.1, 0.0),)
    base = AdamW(0.05, weight_decay=0.1)
    one = stepped(Averaged(Clipped(Grouped(base, groups), norm=1.0), 0.9))
    two = stepped(Grouped(Clipped(Averaged(base, 0.9), norm=1.0), groups))
    for key, value in one.items():
        np.testing.assert_array_equal(value, two[key])


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ew.ConfigError, match="no trained parameter"):
        stepped(Grouped(SGD(0.05), (Group(("r",)),)))
    with pytest.raises(ew.ConfigError, match=r"weight_decay=0\.0"):
        stepped(Grouped(OwnOptimizer(), (Group(("p",), weight_decay=0.0),)))
    for make in (
        lambda: Clipped(SGD(0.1), norm=0.0),
        lambda: Clipped(SGD(0.1), value=-1.0),
        lambda: Averaged(SGD(0.1), 1.0),
        lambda: Group("p"),  # type: ignore[arg-type]  # that is tried
        lambda: Group(("p",), -1.0),
    ):
        with pytest.raises(ew.ConfigError, match="want"):
            make()


class OwnOptimizer:
    """Descent without decay."""

    lr = 0.1
    slots = ()

    def update(self, parameter: Value, grad: Value, *_: object) -> tuple[Value, dict]:
        return Add()(parameter, grad), {}


def network() -> ew.Model:
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.normal(0, 1, (4, 3)).astype("f4"), "w")
    bias = numpy_helper.from_array(np.zeros(3, "f4"), "b")
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph([node], "linear", [x], [y], [weight, bias])
    opset = helper.make_opsetid("", 17)
    return ew.convert(helper.make_model(graph, opset_imports=[opset], ir_version=8))


X = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
Y = np.arange(8) % 3


@pytest.mark.parametrize("trainable", ["all", "lora:2"])
def test_averages_are_exported_evaluated_and_resumed(
    trainable: str, tmp_path: Path
) -> None:
    optimizer = Averaged(Clipped(optimizers.Adam(0.1), norm=1.0), 0.8)
    one = Trainer(network(), "cross_entropy", optimizer, trainable, threads=1)
    begin = one.export(averaged=True).parameters()
    np.testing.assert_array_equal(begin["w"], network().parameters()["w"])
    mean = None
    for _ in range(4):
        one.step(X, Y)
        now = one.parameters()["w"].astype(np.float64)
        mean = now if mean is None else 0.8 * mean + 0.2 * now
    found = one.export(averaged=True).parameters()["w"]
    if trainable == "all":  # the product of averages is not the average of products
        np.testing.assert_allclose(found, mean, rtol=1e-5)
    with ew.Session(one.export(averaged=True)) as session:
        accuracy = float((session(X).argmax(1) == Y).mean())
    assert one.evaluate((X, Y), averaged=True)["accuracy"] == accuracy
    assert not np.array_equal(found, one.parameters()["w"])
    one.save_checkpoint(tmp_path / "c.ew")
    two = Trainer.resume(tmp_path / "c.ew", threads=1)
    assert two.step(X, Y) == one.step(X, Y)
    np.testing.assert_array_equal(
        two.export(averaged=True).parameters()["w"],
        one.export(averaged=True).parameters()["w"],
    )


def test_no_averages_is_an_error() -> None:
    one = Trainer(network(), "cross_entropy", optimizers.SGD(0.1), threads=1)
    one.step(X, Y)
    with pytest.raises(ew.ConfigError, match="keeps none"):
        one.evaluate((X, Y), averaged=True)
