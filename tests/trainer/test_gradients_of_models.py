"""Gradients of whole models by the names of their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import gradients

X = np.array([1, -2, 3], np.float32)


def built(
    nodes: list[Any], weights: dict[str, Any], x: list[Any], **outputs: list[Any]
) -> ew.Model:
    """A model over one input ``x``."""
    tensors = [
        numpy_helper.from_array(np.asarray(value, np.float32), name)
        for name, value in weights.items()
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x)
    made = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in outputs.items()
    ]
    graph = helper.make_graph(nodes, "graph", [given], made, tensors)
    opset = helper.make_opsetid("", 17)
    return ew.convert(helper.make_model(graph, opset_imports=[opset], ir_version=8))


def fan_out(counts: range) -> ew.Model:
    """The sum of ``n`` readers of ``w_n x``, by Sum for odd n and by Add for even."""
    node = helper.make_node
    nodes, parts = [], []
    for n in counts:
        nodes.append(node("Mul", [f"w{n}", "x"], [f"p{n}"]))
        if n % 2:
            nodes.append(node("Sum", [f"p{n}"] * n, [f"s{n}_{n}"]))
        else:
            nodes.append(node("Identity", [f"p{n}"], [f"s{n}_1"]))
            nodes += [
                node("Add", [f"s{n}_{k - 1}", f"p{n}"], [f"s{n}_{k}"])
                for k in range(2, n + 1)
            ]
        parts.append(f"s{n}_{n}")
    nodes.append(node("Concat", parts, ["all"], axis=0))
    nodes.append(node("ReduceSum", ["all"], ["loss"], keepdims=0))
    weights = {f"w{n}": np.full(3, 0.1 * n) for n in counts}
    return built(nodes, weights, [3], loss=[])


def test_each_reader_of_a_product_counts_once_for_every_number_of_readers() -> None:
    found = gradients(fan_out(range(1, 11)), {"x": X})
    assert list(found) == [f"w{n}" for n in range(1, 11)]
    for n in range(1, 11):
        np.testing.assert_allclose(found[f"w{n}"], n * X, rtol=1e-6)


def convolution() -> ew.Model:
    """Packed weights and a batch norm that is folded into a convolution."""
    rng = np.random.default_rng(0)
    shapes = {"w": (5, 2, 3, 3), "gamma": (5,), "beta": (5,), "mean": (5,), "v": (5, 3)}
    weights = {name: rng.normal(0, 0.5, s) for name, s in shapes.items()}
    weights["var"] = rng.uniform(0.5, 2, 5)
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("BatchNormalization", ["a", "gamma", "beta", "mean", "var"], ["b"]),
        node("Sigmoid", ["b"], ["c"]),
        node("GlobalAveragePool", ["c"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("MatMul", ["e", "v"], ["f"]),
        node("ReduceSumSquare", ["f"], ["loss"], keepdims=0),
    ]
    return built(nodes, weights, ["N", 2, 6, 5], loss=[], f=["N", 3])


def test_packed_weights_and_batch_norms_have_gradients_as_in_inference() -> None:
    model = convolution()
    x = np.random.default_rng(1).normal(size=(3, 2, 6, 5)).astype(np.float32)
    found = gradients(model, {"x": x}, wrt=["w", "gamma", "beta", "v"])
    values = model.parameters()
    for name, grad in found.items():
        direction = np.sign(grad)
        assert grad.shape == values[name].shape
        slope = (
            moved(model, name, 1e-2 * direction, x)
            - moved(model, name, -1e-2 * direction, x)
        ) / 2e-2
        assert slope == pytest.approx(float((grad * direction).sum()), rel=2e-3)


def moved(model: ew.Model, name: str, by: np.ndarray, x: np.ndarray) -> float:
    """The loss where one parameter is another."""
    from edgewise_trainer import Trainer

    trainer = Trainer(model, loss="mse", trainable=["w", "gamma", "beta", "v"])
    trainer.set_parameters({name: model.parameters()[name] + by})
    with ew.Session(trainer.export()) as session:
        return float(session.run({"x": x})["loss"])


def test_what_does_not_matter_has_a_gradient_of_zeros() -> None:
    node = helper.make_node
    nodes = [
        node("Mul", ["x", "w"], ["a"]),
        node("ReduceSum", ["a"], ["loss"], keepdims=0),
        node("Mul", ["x", "v"], ["other"]),
    ]
    model = built(nodes, {"w": X, "v": X}, [3], loss=[], other=[3])
    found = gradients(model, {"x": X}, wrt=["v", "w"])
    np.testing.assert_array_equal(found["v"], np.zeros(3))
    np.testing.assert_array_equal(found["w"], X)


def test_names_that_are_not_there_are_told() -> None:
    model = convolution()
    feed = {"x": np.zeros((1, 2, 6, 5), np.float32)}
    with pytest.raises(ew.ConfigError, match="want one of loss, f"):
        gradients(model, feed, of="lost")
    with pytest.raises(ew.ConfigError, match="want one real number"):
        gradients(model, feed, of="f")
    with pytest.raises(ew.ConfigError, match="no real parameter 'u'"):
        gradients(model, feed, wrt=["u"])
    with pytest.raises(ew.ConfigError, match="want a list of names"):
        gradients(model, feed, wrt="w")  # type: ignore[arg-type]  # that is tried


def test_an_op_without_a_gradient_is_named() -> None:
    node = helper.make_node
    nodes = [
        node("Mul", ["x", "w"], ["a"]),
        node("Round", ["a"], ["b"], name="/jump"),
        node("ReduceSum", ["b"], ["loss"], keepdims=0),
    ]
    model = built(nodes, {"w": X}, [3], loss=[])
    with pytest.raises(ew.TrainabilityError, match="Round '/jump' has no gradient"):
        gradients(model, {"x": X})
