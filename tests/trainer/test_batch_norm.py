"""Batch norms in training; numbers are those of PyTorch 2.13."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_trainer import Trainer, optimizers

VALUES = {
    "w1": np.linspace(-1, 1, 18).reshape(2, 1, 3, 3),
    "b1": np.array([0.1, -0.2]),
    "gamma": np.array([1.5, 0.5]),
    "beta": np.array([0.1, -0.1]),
    "mean": np.array([0.3, -0.3]),
    "var": np.array([2.0, 0.5]),
    "w2": np.linspace(-0.5, 0.5, 6).reshape(3, 2),
}
X = np.sin(np.arange(80)).reshape(4, 1, 5, 4).astype(np.float32)
Y = np.array([0, 1, 2, 1])
# After two steps of SGD at 0.5.
LOSSES = [1.1169636, 1.0914540]
AFTER = {
    "gamma": [1.475865, 0.488152],
    "beta": [0.066362, -0.111024],
    "mean": [0.250656, -0.264398],
    "var": [1.732302, 0.515217],
}


def network() -> onnx.ModelProto:
    """Convolution with a bias, batch norm, ReLU, global mean, linear."""
    weights = [
        numpy_helper.from_array(value.astype(np.float32), name)
        for name, value in VALUES.items()
    ]
    node, norm = helper.make_node, ["gamma", "beta", "mean", "var"]
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4),
        node("BatchNormalization", ["a", *norm], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("GlobalAveragePool", ["c"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("Gemm", ["e", "w2"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 5, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "norm", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def trainer(trainable: str = "all") -> Trainer:
    optimizer = optimizers.SGD(0.5)
    model = ew.convert(network())
    return Trainer(model, optimizer=optimizer, trainable=trainable, threads=1)


def stored(one: Trainer, name: str) -> np.ndarray | None:
    """A parameter, or a statistic, which is none."""
    return one.export().module.variables[name].initial


def test_a_trained_batch_norm_uses_the_batch_and_its_statistics_follow() -> None:
    one = trainer()
    found = [one.step(X, Y) for _ in LOSSES]
    assert found == pytest.approx(LOSSES, rel=2e-6)
    for name, expected in AFTER.items():
        np.testing.assert_allclose(stored(one, name), expected, 0, 2e-6, err_msg=name)
    values = one.parameters()
    row = [0.062063, 0.177825, 0.292588]
    np.testing.assert_allclose(values["w1"][1, 0, 0], row, 0, 2e-6)
    np.testing.assert_allclose(values["w2"][0], [-0.513913, -0.310505], 0, 2e-6)


def test_a_bias_that_a_batch_norm_takes_away_again_still_decays() -> None:
    optimizer = optimizers.SGD(0.5, weight_decay=0.1)
    one = Trainer(ew.convert(network()), optimizer=optimizer, threads=1)
    one.step(X, Y)
    want = 0.95 * VALUES["b1"]
    np.testing.assert_allclose(one.parameters()["b1"], want, rtol=1e-6)


@pytest.mark.parametrize("trainable", ["last:1", "bias"])
def test_one_whose_scale_is_not_trained_leaves_its_statistics_alone(
    trainable: str,
) -> None:
    one = trainer(trainable)
    with ew.Session(ew.convert(network())) as session:
        logits = session(X)
    shifted = logits - logits.max(1, keepdims=True)
    log = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    assert one.step(X, Y) == pytest.approx(-log[np.arange(4), Y].mean(), rel=1e-5)
    for name in ("gamma", "mean", "var"):
        want = VALUES[name].astype(np.float32)
        np.testing.assert_array_equal(stored(one, name), want)


def test_what_a_loss_does_not_depend_on_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    proto = network()
    extra = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    proto.graph.initializer.append(
        numpy_helper.from_array(np.ones((3, 2), np.float32), "w3")
    )
    proto.graph.node.append(helper.make_node("Gemm", ["e", "w3"], ["z"], transB=1))
    proto.graph.output.append(extra)
    Trainer(ew.convert(proto))
    assert "does not depend on w3:" in caplog.text
