"""Steps in parts of the batch and with less kept: the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.op import Array
from edgewise.runtime.config import SessionConfig
from edgewise_trainer import losses, optimizers
from edgewise_trainer.engine import Engine
from edgewise_trainer.losses import Loss
from edgewise_trainer.make import aim, step_of
from edgewise_trainer.task import WHOLE, Step, Way
from edgewise_trainer.ways import work_of

# Sums of 7 examples in another order.
RTOL, ATOL = 2e-5, 2e-6


def network(*, norm: bool = False) -> onnx.ModelProto:
    """Six convolutions with two shortcuts, and a linear layer."""
    rng = np.random.default_rng(1)
    node = helper.make_node
    arrays: dict[str, Array] = {"w0": rng.normal(0, 0.3, (16, 3, 3, 3))}
    nodes = [node("Conv", ["x", "w0"], ["y0"], pads=[1] * 4)]
    for j in range(1, 6):
        arrays[f"w{j}"] = rng.normal(0, 0.1, (16, 16, 3, 3))
        arrays[f"b{j}"] = rng.normal(0, 0.1, (16,))
        nodes.append(
            node("Conv", [f"y{j - 1}", f"w{j}", f"b{j}"], [f"c{j}"], pads=[1] * 4)
        )
        last = f"c{j}"
        if norm:
            names = [f"{part}{j}" for part in ("gamma", "beta", "mean", "var")]
            arrays |= {n: rng.uniform(0.5, 1.5, (16,)) for n in names}
            nodes.append(node("BatchNormalization", [last, *names], [f"n{j}"]))
            last = f"n{j}"
        nodes.append(node("Relu", [last], [f"r{j}"]))
        if j % 2:
            nodes.append(node("Identity", [f"r{j}"], [f"y{j}"]))
        else:
            nodes.append(node("Add", [f"r{j}", f"y{j - 2}"], [f"y{j}"]))
    arrays |= {"w6": rng.normal(0, 0.1, (16, 5)), "b6": rng.normal(0, 0.1, (5,))}
    nodes += [
        node("GlobalAveragePool", ["y5"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "w6", "b6"], ["logits"]),
    ]
    weights = [
        numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 16, 16])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 5])
    graph = helper.make_graph(nodes, "steps", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def batch(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((7, 3, 16, 16)).astype(np.float32)
    return x, rng.integers(0, 5, 7)


def step_for(model: ew.Model, loss: Loss) -> Step:
    return step_of(aim(model.module, "all", 0), loss, optimizers.SGD(0.05, 0.9))


def trained(
    way: Way, loss: Loss, *, norm: bool = False
) -> tuple[list[float], dict[str, Array]]:
    """Three losses, and all variables behind them."""
    model = ew.convert(network(norm=norm))
    config = SessionConfig(threads=1)
    engine = Engine(model, step_for(model, loss), {}, config, way, 7)
    found = []
    for number in range(3):
        x, y = batch(number)
        found.append(engine.run({"x": x}, y, 0.05, number + 1))
    kept = {k: v.copy() for k, v in engine.variables.items() if "_sum" not in k}
    return found, kept


LOSSES = {
    "mean": losses.CrossEntropy(),
    "weighted": losses.CrossEntropy(weight=(1.0, 3.0, 0.5, 1.0, 2.0), ignore_index=2),
    "smooth": losses.CrossEntropy(label_smoothing=0.1),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("examples", [1, 3, 7, 50])
def test_parts_of_a_batch_give_the_step_of_the_whole(loss: str, examples: int) -> None:
    want, variables = trained(WHOLE, LOSSES[loss])
    found, others = trained(Way(examples), LOSSES[loss])
    np.testing.assert_allclose(found, want, RTOL)
    for key, value in variables.items():
        np.testing.assert_allclose(others[key], value, RTOL, ATOL, err_msg=key)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("segments", [2, 3, 5])
def test_what_is_made_again_is_the_same_to_the_bit(segments: int, norm: bool) -> None:
    want, variables = trained(WHOLE, losses.CrossEntropy(), norm=norm)
    found, others = trained(Way(None, segments), losses.CrossEntropy(), norm=norm)
    assert found == want
    assert all(np.array_equal(others[key], variables[key]) for key in variables)


def test_each_way_takes_less() -> None:
    model = ew.convert(network(norm=True))
    step, config = step_for(model, losses.CrossEntropy()), SessionConfig(threads=1)
    ways = (WHOLE, Way(None, 2), Way(None, 3), Way(8, 1), Way(8, 3))
    peaks = []
    for way in ways:
        engine = Engine(model, step, {}, config, way, 64)
        assert engine.predict(64) is not None
        peaks.append(engine.memory.arena_bytes)
    whole, two, three, parts, both = peaks
    assert max(two, three) < 0.85 * whole
    assert both <= parts < 0.2 * whole


def test_statistics_are_followed_once_for_each_part() -> None:
    step = step_for(ew.convert(network(norm=True)), losses.CrossEntropy())
    work = work_of(step, Way(2), 7)
    first, second = work.functions.values()
    assert "mean1" in first.updates
    assert "gamma1" in second.updates
    assert not first.updates.keys() & second.updates.keys()
