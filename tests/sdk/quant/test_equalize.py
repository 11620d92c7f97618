"""Channels of like range, and the same function."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.quant.equalize import equalized

CLOSE = 0.05


def network(activation: str = "Relu", *, norm: bool = False) -> onnx.ModelProto:
    """Convolution, depthwise, convolution; weights of channels differ by thousands."""
    rng = np.random.default_rng(0)
    spread = np.exp(rng.uniform(-4, 4, 16)).astype(np.float32)
    arrays = {
        "w1": rng.normal(0, 0.4, (16, 3, 3, 3)) * spread[:, None, None, None],
        "b1": rng.normal(0, 0.4, 16) * spread,
        "w2": rng.normal(0, 0.4, (16, 1, 3, 3)),
        "w3": rng.normal(0, 0.4, (12, 16, 1, 1)) / spread[:, None, None],
        "b3": rng.normal(0, 0.4, 12),
        "gamma": rng.uniform(0.5, 2, 16),
        "beta": rng.normal(0, 0.4, 16),
        "mean": np.zeros(16),
        "var": np.ones(16),
    }
    node = helper.make_node
    statistics = ["gamma", "beta", "mean", "var"]
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4),
        node("BatchNormalization", ["a", *statistics], ["n"]),
        node(activation, ["n" if norm else "a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], pads=[1] * 4, group=16),
        node(activation, ["c"], ["d"]),
        node("Conv", ["d", "w3", "b3"], ["y"]),
    ]
    if not norm:
        del nodes[1]
    used = {name for each in nodes for name in each.input}
    weights = [
        numpy_helper.from_array(array.astype(np.float32), name)
        for name, array in arrays.items()
        if name in used
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 11, 9])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 12, 11, 9])
    graph = helper.make_graph(nodes, "spread", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def images(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((6, 3, 11, 9)).astype(np.float32)


def outputs(model: ew.Model, x: np.ndarray) -> np.ndarray:
    with ew.Session(model) as session:
        return np.asarray(session(x))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Identity"])
def test_the_real_model_gives_the_bits_it_gave(activation: str, norm: bool) -> None:
    model = ew.convert(network(activation, norm=norm))
    even = equalized(model)
    np.testing.assert_array_equal(outputs(even, images()), outputs(model, images()))
    assert not np.array_equal(even.parameters()["w1"], model.parameters()["w1"])


def test_ranges_of_channels_meet() -> None:
    weights = equalized(ew.convert(network())).parameters()
    made = np.abs(weights["w2"]).max((1, 2, 3))
    read = np.abs(weights["w3"]).max((0, 2, 3))
    ratio = made / read
    assert ratio.max() <= 2
    assert ratio.min() >= 0.5


def test_activations_with_bends_elsewhere_stay() -> None:
    model = ew.convert(network("Sigmoid"))
    assert equalized(model) is model


def test_one_scale_a_tensor_loses_less_of_equal_channels() -> None:
    model = ew.convert(network())
    want = outputs(model, images(9))
    lost = {}
    for equalize in (False, True):
        config = ew.QuantizeConfig(per_channel=False, equalize=equalize)
        small = ew.quantize(model, [{"x": images(seed)} for seed in range(3)], config)
        gap = outputs(small, images(9)) - want
        lost[equalize] = np.linalg.norm(gap) / np.linalg.norm(want)
    assert lost[True] < CLOSE
    assert lost[True] < lost[False] / 4


def test_biases_give_back_what_weights_lose_on_average() -> None:
    model = ew.convert(network())
    x = images(9) + 2  # means far from zero
    seen = [{"x": images(seed) + 2} for seed in range(3)]
    want = outputs(model, x)
    gaps = {}
    for correct in (False, True):
        config = ew.QuantizeConfig(per_channel=False, bias_correction=correct)
        small = ew.quantize(model, seen, config)
        gaps[correct] = np.abs((outputs(small, x) - want).mean((0, 2, 3))).mean()
    assert gaps[True] < gaps[False] / 2
