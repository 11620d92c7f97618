"""Activations, as ops and as ends of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgewise.convert.to_onnx.elementwise import clipped, operands
from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.writer import At
from edgewise.ops import activation as act
from edgewise.ops import softmax as soft
from edgewise.types import TensorType

_PLAIN: dict[type, Callable[[Any], tuple[str, dict[str, Any]]]] = {
    act.Relu: lambda _: ("Relu", {}),
    act.LeakyRelu: lambda op: ("LeakyRelu", {"alpha": op.slope}),
    act.Elu: lambda op: ("Elu", {"alpha": op.alpha}),
    act.Selu: lambda op: ("Selu", {"alpha": op.alpha, "gamma": op.gamma}),
    act.Sigmoid: lambda _: ("Sigmoid", {}),
    act.HardSigmoid: lambda op: ("HardSigmoid", {"alpha": op.alpha, "beta": op.beta}),
    act.HardSwish: lambda _: ("HardSwish", {}),
    act.Tanh: lambda _: ("Tanh", {}),
    act.Gelu: lambda op: (
        "Gelu",
        {"approximate": "tanh" if op.approximate else "none"},
    ),
    act.Softplus: lambda _: ("Softplus", {}),
    act.Softsign: lambda _: ("Softsign", {}),
    act.Mish: lambda _: ("Mish", {}),
    act.ThresholdedRelu: lambda op: ("ThresholdedRelu", {"alpha": op.alpha}),
}
_ENDS: dict[str, Callable[[float, float], tuple[str, dict[str, Any]]]] = {
    "relu": lambda _a, _b: ("Relu", {}),
    "leaky_relu": lambda a, _b: ("LeakyRelu", {"alpha": a}),
    "hard_sigmoid": lambda a, b: ("HardSigmoid", {"alpha": a, "beta": b}),
    "hard_swish": lambda _a, _b: ("HardSwish", {}),
    "sigmoid": lambda _a, _b: ("Sigmoid", {}),
    "tanh": lambda _a, _b: ("Tanh", {}),
    "gelu": lambda _a, _b: ("Gelu", {}),
    "gelu_tanh": lambda _a, _b: ("Gelu", {"approximate": "tanh"}),
    "elu": lambda a, _b: ("Elu", {"alpha": a}),
    "softplus": lambda _a, _b: ("Softplus", {}),
    "mish": lambda _a, _b: ("Mish", {}),
}


def ended(at: At, name: str, type_: TensorType) -> str:
    """Sums under the activation that a product ends in."""
    op = at.op
    if op.activation == "none":
        return name
    if op.activation == "clip":
        return clipped(at, name, type_, op.alpha, op.beta)
    if op.activation == "silu":
        return silu(at, name)
    kind, attributes = _ENDS[op.activation](op.alpha, op.beta)
    return at.emit(kind, name, **attributes)


def silu(at: At, name: str) -> str:
    """``x * sigmoid(x)``, for which ONNX has no name before operator set 24."""
    return at.emit("Mul", name, at.emit("Sigmoid", name))


@writes(*_PLAIN)
def activation(at: At) -> Written:
    """The operator of the same name."""
    (name,), form = operands(at)
    kind, attributes = _PLAIN[type(at.op)](at.op)
    return form(at.emit(kind, name, **attributes))


@writes(act.Silu)
def _silu(at: At) -> Written:
    (name,), form = operands(at)
    return form(silu(at, name))


@writes(act.Celu)
def celu(at: At) -> Written:
    """``alpha * elu(x / alpha)``: ONNX has it for one element type only."""
    (name,), form = operands(at)
    alpha = at.number(at.op.alpha, at.x)
    return form(at.emit("Mul", at.emit("Elu", at.emit("Div", name, alpha)), alpha))


@writes(act.Prelu)
def prelu(at: At) -> Written:
    """With a slope that broadcasts."""
    names, form = operands(at)
    return form(at.emit("PRelu", *names))


@writes(soft.Softmax, soft.LogSoftmax)
def softmax(at: At) -> Written:
    """Along one axis."""
    kind = "Softmax" if isinstance(at.op, soft.Softmax) else "LogSoftmax"
    return at.emit(kind, at.name(0), axis=at.op.axis)
