"""Operators that onnxruntime has over bytes, as graphs of ONNX's own.

Each is its operator over real numbers between DequantizeLinear and QuantizeLinear, from
which passes make steps over bytes.  Schemas: docs/ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx
from onnx import helper

from edgewise.convert.tensors import DTYPES
from edgewise.ir.graph import Value

DOMAIN = "com.microsoft"
OPSET = 17
_CODES = {dtype: code for code, dtype in DTYPES.items()}


class _Form(NamedTuple):
    """An operator between pairs.

    Attributes:
        op: Its name.
        images: Inputs of bytes; each has a scale and a zero point.
        kept: Attributes that it has, too.
    """

    op: str
    images: int
    kept: tuple[str, ...] = ()


_POOL = (
    "auto_pad",
    "ceil_mode",
    "count_include_pad",
    "kernel_shape",
    "pads",
    "strides",
)
_FORMS = {
    "QLinearAdd": _Form("Add", 2),
    "QLinearMul": _Form("Mul", 2),
    "QLinearSigmoid": _Form("Sigmoid", 1),
    "QLinearLeakyRelu": _Form("LeakyRelu", 1, ("alpha",)),
    "QLinearAveragePool": _Form("AveragePool", 1, _POOL),
    "QLinearGlobalAveragePool": _Form("GlobalAveragePool", 1),
    "QLinearSoftmax": _Form("Softmax", 1, ("axis",)),
    "QLinearConcat": _Form("Concat", 0, ("axis",)),
    "QGemm": _Form("Gemm", 2, ("alpha", "transA", "transB")),
}


def is_known(node: onnx.NodeProto) -> bool:
    """Whether a node is one of these."""
    return node.domain == DOMAIN and node.op_type in _FORMS


def graph_of(
    node: onnx.NodeProto, inputs: Sequence[Value | None]
) -> onnx.FunctionProto:
    """The graph that a node stands for, as a function over inputs ``i0``, ``i1``, …."""
    return _Graph(node, inputs).function()


class _Graph:
    """One node as a function."""

    def __init__(self, node: onnx.NodeProto, inputs: Sequence[Value | None]) -> None:
        self._node, self._inputs = node, inputs
        self._form = _FORMS[node.op_type]
        self._given = {item.name: item for item in node.attribute}
        self._nodes: list[onnx.NodeProto] = []

    def function(self) -> onnx.FunctionProto:
        """The whole."""
        count = len(self._inputs)
        if self._node.op_type == "QLinearConcat":
            images, made = range(2, count, 3), 0
        else:
            images, made = range(0, 3 * self._form.images, 3), 3 * self._form.images
        gemm = self._node.op_type == "QGemm"
        real = [self._real(at, columns=gemm and at > 0) for at in images]
        if gemm:
            made += 1
            real += self._bias()
        y = self._operator(real)
        if self._name(made) or not gemm:  # a QGemm may give real numbers
            zero = self._name(made + 1) or self._no_zero(images.start)
            y = self._emit("QuantizeLinear", y, self._name(made), zero)
        names = [f"i{index}" for index in range(count)]
        opset = helper.make_opsetid("", self._opset())
        return helper.make_function(
            DOMAIN, self._node.op_type, names, [y], self._nodes, [opset]
        )

    def _name(self, index: int) -> str:
        """The name of an input; empty where it is left out."""
        there = index < len(self._inputs) and self._inputs[index] is not None
        return f"i{index}" if there else ""

    def _emit(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def _number(self, name: str) -> int:
        item = self._given.get(name)
        return 0 if item is None else int(item.i)

    def _real(self, at: int, *, columns: bool) -> str:
        """An image or a weight as real numbers."""
        given = (self._name(at), self._name(at + 1), self._name(at + 2))
        axis = 1 - self._number("transB") if columns else 0
        return self._emit("DequantizeLinear", *given, axis=axis)

    def _bias(self) -> list[str]:
        """Whole numbers of the scale of the product."""
        if not self._name(6):
            return []
        scale = self._emit("Mul", self._name(1), self._name(4))
        if "alpha" in self._given:
            alpha = float(self._given["alpha"].f)
            scale = self._emit("Mul", scale, self._emit("Constant", value_float=alpha))
        bias = self._inputs[6]
        axis = bias.type.rank - 1 if bias is not None and bias.type.rank else 0
        return [self._emit("DequantizeLinear", self._name(6), scale, axis=axis)]

    def _operator(self, real: Sequence[str]) -> str:
        """The operator itself, channels second where it has them last."""
        last = bool(self._number("channels_last"))
        x = self._inputs[0] if self._inputs else None
        kept = [item for name, item in self._given.items() if name in self._form.kept]
        name = f"v{len(self._nodes) + last}"
        if last and x is not None:
            axes = range(1, x.type.rank - 1)
            perm = [0, x.type.rank - 1, *axes]
            real = [self._emit("Transpose", real[0], perm=perm)]
        operator = helper.make_node(self._form.op, real, [name])
        operator.attribute.extend(kept)
        self._nodes.append(operator)
        if last and x is not None:
            back = [0, *range(2, x.type.rank), 1]
            return self._emit("Transpose", name, perm=back)
        return name

    def _no_zero(self, image: int) -> str:
        """The zero point where none is given: 0, of the type of the image."""
        x = self._inputs[image] if image < len(self._inputs) else None
        code = _CODES[x.type.dtype] if x is not None else onnx.TensorProto.UINT8
        return self._emit("Constant", value=helper.make_tensor("zero", code, [], [0]))

    def _opset(self) -> int:
        """The version that a Softmax says is meant."""
        said = self._number("opset")
        return min(max(said, 10), OPSET) if said else OPSET
