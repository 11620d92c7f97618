"""Digits over devices that each know two of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise_federated import FederatedConfig, FederatedHistory, simulate
from edgewise_trainer import optimizers

Data = tuple[np.ndarray, np.ndarray]


class World(NamedTuple):
    """A model, the data of devices, and data to evaluate on."""

    model: ew.Model
    partitions: list[Data]
    test: Data

    def run(self, hook: object = None, **settings: object) -> FederatedHistory:
        """A run of few rounds."""
        given = {"rounds": 3, "clients_per_round": 4, "batch_size": 10, "seed": 0}
        config = FederatedConfig(**(given | settings))  # type: ignore[arg-type]
        return simulate(
            self.model,
            self.partitions,
            config,
            optimizer=optimizers.SGD(0.1),
            evaluate=self.test,
            reply_hook=hook,  # type: ignore[arg-type]
        )


def network() -> onnx.ModelProto:
    """12-8-3, with a hidden layer."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (8, 12), "b1": (8,), "w2": (3, 8), "b2": (3,)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.4, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        node("Relu", ["h"], ["r"]),
        node("Gemm", ["r", "w2", "b2"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 12])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "mlp", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def examples(count: int, seed: int) -> Data:
    """Three clouds of points."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(0, 1, (3, 12))
    y = rng.integers(0, 3, count)
    x = centres[y] + rng.normal(0, 0.8, (count, 12))
    return x.astype(np.float32), y.astype(np.int64)


@pytest.fixture(scope="session")
def world() -> World:
    x, y = examples(240, 1)
    order = np.argsort(y, kind="stable")
    rows = np.array_split(order, 16)
    deal = np.random.default_rng(3).permutation(16)
    partitions = [
        (x[both], y[both])
        for both in (
            np.concatenate([rows[deal[2 * i]], rows[deal[2 * i + 1]]]) for i in range(8)
        )
    ]
    return World(ew.convert(network()), partitions, examples(120, 2))
