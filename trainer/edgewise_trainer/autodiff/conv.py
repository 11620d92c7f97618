"""Gradients of convolutions."""

from __future__ import annotations

from typing import Any

from edgewise.ops import (
    Conv,
    ConvInputGrad,
    ConvWeightGrad,
    DepthwiseConv,
    DepthwiseInputGrad,
    DepthwiseWeightGrad,
)
from edgewise_trainer.autodiff.epilogue import sums_grad
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(Conv)
def conv(at: Adjoint) -> Gradients:
    """To the image by the weights, to the weights by the image."""
    grad, more = sums_grad(at)
    named = _window(at.op) | {"groups": at.op.groups}
    sizes = at.x.type.shape[1:]
    image = ConvInputGrad(**named, sizes=sizes)(grad, at.input(1))
    return image, ConvWeightGrad(**named)(at.x, grad), *more


@gradient(DepthwiseConv)
def depthwise_conv(at: Adjoint) -> Gradients:
    """The same, channel by channel."""
    grad, more = sums_grad(at)
    named, sizes = _window(at.op), at.x.type.shape[1:3]
    image = DepthwiseInputGrad(**named, sizes=sizes)(grad, at.input(1))
    return image, DepthwiseWeightGrad(**named)(at.x, grad), *more


def _window(op: Any) -> dict[str, Any]:
    return {
        "kernel": op.kernel,
        "strides": op.strides,
        "pads": op.pads,
        "dilations": op.dilations,
    }
