"""A small network of the EfficientNet kind: inverted bottlenecks, squeeze and excite.

Weights of channels begin spread over two orders of magnitude, which batch norms hide
from training: so are those of networks that were trained for long, and one scale for a
whole weight leaves the small ones next to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

SPREAD = 1.5  # standard deviation of the logarithms of channels' weights
CLASSES = 10


class Builder:
    """Nodes and weights of a graph that grows."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """One node; the name of what it makes."""
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def weight(self, name: str, array: npt.ArrayLike) -> str:
        """An initializer; its name."""
        made = f"{name}{len(self.weights)}"
        self.weights.append(
            numpy_helper.from_array(np.asarray(array, np.float32), made)
        )
        return made

    def swish(self, x: str) -> str:
        """As exporters write it."""
        return self.node("Mul", x, self.node("Sigmoid", x))

    def conv(
        self,
        x: str,
        inputs: int,
        outputs: int,
        kernel: int = 1,
        *,
        stride: int = 1,
        groups: int = 1,
        active: bool = True,
    ) -> str:
        """A convolution, a batch norm, a swish."""
        shape = (outputs, inputs // groups, kernel, kernel)
        spread = np.exp(self.rng.normal(0, SPREAD, (outputs, 1, 1, 1)))
        weight = self.rng.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape) * spread
        around = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": groups}
        x = self.node("Conv", x, self.weight("w", weight), **around)
        norm = [("gamma", 1.0), ("beta", 0.0), ("mean", 0.0), ("var", 1.0)]
        parts = [self.weight(name, np.full(outputs, value)) for name, value in norm]
        x = self.node("BatchNormalization", x, *parts)
        return self.swish(x) if active else x

    def excite(self, x: str, channels: int, middle: int) -> str:
        """Channels weighted by what the whole image says."""
        y = self.node("GlobalAveragePool", x)
        for inputs, outputs in ((channels, middle), (middle, channels)):
            shape = (outputs, inputs, 1, 1)
            weight = self.weight("w", self.rng.normal(0, inputs**-0.5, shape))
            y = self.node("Conv", y, weight, self.weight("b", np.zeros(outputs)))
            y = self.swish(y) if outputs == middle else self.node("Sigmoid", y)
        return self.node("Mul", x, y)

    def block(
        self, x: str, inputs: int, outputs: int, kernel: int, stride: int = 1
    ) -> str:
        """Expand, depthwise, excite, project."""
        wide = 4 * inputs
        y = self.conv(x, inputs, wide)
        y = self.conv(y, wide, wide, kernel, stride=stride, groups=wide)
        y = self.excite(y, wide, max(inputs // 4, 4))
        y = self.conv(y, wide, outputs, active=False)
        return self.node("Add", x, y) if inputs == outputs and stride == 1 else y


def network(seed: int = 0) -> onnx.ModelProto:
    """For digits of 8 by 8 pixels."""
    build = Builder(seed)
    x = build.conv("x", 1, 16, 3)
    for inputs, outputs, kernel, stride in (
        (16, 24, 3, 2),
        (24, 24, 3, 1),
        (24, 40, 5, 1),
        (40, 40, 5, 1),
    ):
        x = build.block(x, inputs, outputs, kernel, stride)
    x = build.node("GlobalAveragePool", build.conv(x, 40, 96))
    head = build.weight("head", build.rng.normal(0, 0.1, (CLASSES, 96)))
    bias = build.weight("bias", np.zeros(CLASSES))
    y = build.node("Gemm", build.node("Flatten", x), head, bias, transB=1)
    ends = (("x", ["N", 1, 8, 8]), (y, ["N", CLASSES]))
    given, found = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in ends
    )
    graph = helper.make_graph(build.nodes, "excited", [given], [found], build.weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)
