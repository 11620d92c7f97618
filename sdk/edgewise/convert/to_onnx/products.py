"""Products with weights: linear layers and convolutions, with what ends them."""

from __future__ import annotations

from edgewise.convert.to_onnx.activation import ended
from edgewise.convert.to_onnx.elementwise import second
from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.weights import matrix, taps, window
from edgewise.convert.to_onnx.writer import At
from edgewise.ir.graph import Node, Value
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.matmul import Linear, MatMul
from edgewise.ops.norm import BatchNormFold


@writes(MatMul)
def matmul(at: At) -> Written:
    """The same."""
    return at.emit("MatMul", *at.names())


@writes(Linear)
def linear(at: At) -> Written:
    """A Gemm where there are two axes and a sum of no more than a vector."""
    weight, turned = matrix(at, at.value(1), at.op.columns)
    scale, shift, residual = (at.given(index) for index in (2, 3, 4))
    if at.x.type.rank == 2 and scale is None:
        given = (at.name(0), weight, at.name(3))
        sums = at.emit("Gemm", *given, transB=int(turned))
    else:
        if turned:
            weight = at.emit("Transpose", weight, perm=[1, 0])
        sums = at.emit("MatMul", at.name(0), weight)
        if scale is not None:
            sums = at.emit("Mul", sums, at.name(2))
        if shift is not None:
            sums = at.emit("Add", sums, at.name(3))
    if residual is not None:
        sums = at.emit("Add", sums, at.name(4))
    return ended(at, sums, at.y.type)


@writes(Conv, DepthwiseConv)
def conv(at: At) -> Written:
    """A Conv; a BatchNormalization behind it where one was folded into it."""
    op = at.op
    depthwise = isinstance(op, DepthwiseConv)
    channels = at.value(1).type.dims[1] if depthwise else op.channels
    if depthwise:
        weight, groups = taps(at, at.value(1), op.kernel), channels
    else:
        weight, groups = window(at, at.value(1), op.kernel, channels), op.groups
    scale, shift, residual = (at.given(index) for index in (2, 3, 4))
    fold = folded(scale, shift)
    if fold is not None:
        bias = fold.inputs[4] if len(fold.inputs) > 4 else None
    else:
        bias = shift if scale is None else None
    sums = at.emit(
        "Conv",
        at.image(0),
        weight,
        "" if bias is None else at.writer.name(bias),
        kernel_shape=list(op.kernel),
        strides=list(op.strides),
        pads=list(op.pads),
        dilations=list(op.dilations),
        group=groups,
    )
    if fold is not None:
        sums = normalised(at, sums, fold)
    elif scale is not None:
        sums = at.emit("Mul", sums, second(at, scale, 4))
        if shift is not None:
            sums = at.emit("Add", sums, second(at, shift, 4))
    if residual is not None:
        sums = at.emit("Add", sums, second(at, residual, 4))
    return Image(ended(at, sums, at.y.type))


def folded(scale: Value | None, shift: Value | None) -> Node | None:
    """The batch norm that a scale and a shift are, if they are one."""
    if scale is None or shift is None or not isinstance(scale.op, BatchNormFold):
        return None
    whole = scale.index == 0 and shift == Value(scale.node, 1)
    return scale.node if whole else None


def normalised(at: At, name: str, fold: Node) -> str:
    """``[N, C, ...]`` under a batch norm with running statistics."""
    op = fold.op
    statistics = [at.writer.name(v) for v in fold.inputs[:4] if v is not None]
    epsilon = op.values[0]
    return at.emit("BatchNormalization", name, *statistics, epsilon=epsilon)
