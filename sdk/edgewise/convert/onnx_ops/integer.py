"""ONNX products of small integers, and back to small integers."""

from __future__ import annotations

from collections.abc import Callable

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.conv import convolution
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.onnx_ops.spatial import Window, channels_last
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Div, Mul
from edgewise.ops.choose import Cast
from edgewise.ops.integer import ConvInteger, MatmulInteger, Requantize
from edgewise.ops.shape import Reshape


@onnx_op("MatMulInteger", since=10)
def _matmul_integer(ctx: OpContext) -> Value:
    return _product(ctx, ctx[0], ctx[1], ctx.optional(2), ctx.optional(3))


@onnx_op("QLinearMatMul", since=10)
def _qlinear_matmul(ctx: OpContext) -> Value:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = ctx.all()
    total = _product(ctx, a, b, a_zero, b_zero)
    scale = ctx.emit(Mul(), _column(ctx, a, a_scale), _row(ctx, b, b_scale))
    return _requantized(ctx, total, scale, _column(ctx, a, y_scale), y_zero)


def _product(
    ctx: OpContext, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None
) -> Value:
    """The product in i32; vectors become matrices and their axes vanish again."""
    if not a.type.rank or not b.type.rank:
        raise ctx.malformed("multiplies a scalar as a matrix")
    rows = None if a_zero is None else _column(ctx, a, a_zero)
    columns = None if b_zero is None else _row(ctx, b, b_zero)
    left, right = a, b
    if a.type.rank == 1:
        left = ctx.emit(Reshape((1, *a.type.shape)), a)
    if b.type.rank == 1:
        right = ctx.emit(Reshape((*b.type.shape, 1)), b)
    y = ctx.emit(MatmulInteger(), left, right, rows, columns)
    *batch, row, column = y.type.shape
    kept = [size for size, one in ((row, a), (column, b)) if one.type.rank > 1]
    return y if len(kept) == 2 else ctx.emit(Reshape((*batch, *kept)), y)


def _column(ctx: OpContext, a: Value, numbers: Value) -> Value:
    """Numbers of the rows of ``a``, or one for all, so that they broadcast."""
    if numbers.type.elements == 1:
        return ctx.emit(Reshape(()), numbers) if numbers.type.rank else numbers
    if numbers.type.rank == 1 and a.type.rank > 1:
        return ctx.emit(Reshape((*numbers.type.shape, 1)), numbers)
    return numbers


def _row(ctx: OpContext, b: Value, numbers: Value) -> Value:
    """Numbers of the columns of ``b``, or one for all, so that they broadcast."""
    if numbers.type.elements == 1:
        return ctx.emit(Reshape(()), numbers) if numbers.type.rank else numbers
    if b.type.rank < 2:
        raise ctx.malformed(f"has {numbers.type} for {b.type}; want one number")
    return numbers


@onnx_op("ConvInteger", since=10)
def _conv_integer(ctx: OpContext) -> Value:
    x, w, zeros = ctx[0], ctx[1], (ctx.optional(2), ctx.optional(3))
    return channels_last(ctx, *_sums(ctx, x, w, zeros))


@onnx_op("QLinearConv", since=10)
def _qlinear_conv(ctx: OpContext) -> Value:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (
        ctx[index] for index in range(8)
    )
    bias = ctx.optional(8)
    x, sums = _sums(ctx, x, w, (x_zero, w_zero))
    scale = ctx.emit(Mul(), _scalar(ctx, x_scale), w_scale)
    if scale.type.elements == 1:
        scale = _scalar(ctx, scale)

    def apply(image: Value) -> Value:
        total = sums(image)
        if bias is not None:
            total = ctx.emit(Add(), total, bias)
        return _requantized(ctx, total, scale, _scalar(ctx, y_scale), y_zero)

    return channels_last(ctx, x, apply)


def _sums(
    ctx: OpContext, x: Value, w: Value, zeros: tuple[Value | None, Value | None]
) -> tuple[Value, Callable[[Value], Value]]:
    """The image, and the convolution in i32 of it with its channels last."""
    x, shape, groups = convolution(ctx, x, w)
    op = ConvInteger(*_numbers(ctx, shape), groups)
    x_zero, w_zero = zeros
    if x.type.rank == 3:  # a line is an image of height 1
        outputs, inputs, length = w.type.shape
        w = ctx.emit(Reshape((outputs, inputs, 1, length)), w)
    if x_zero is not None:
        x_zero = _scalar(ctx, x_zero)
    if w_zero is not None and w_zero.type.elements == 1:
        w_zero = _scalar(ctx, w_zero)
    return x, lambda image: ctx.emit(op, image, w, x_zero, w_zero)


def _numbers(ctx: OpContext, shape: Window) -> tuple[tuple[int, ...], ...]:
    pads = tuple(ctx.whole(pad) for pad in shape.padded)
    return shape.kernel, shape.strides, pads, shape.dilations


def _scalar(ctx: OpContext, value: Value) -> Value:
    if isinstance(value.type.elements, int) and value.type.elements != 1:
        raise ctx.malformed(f"has {value.type} where one number is wanted")
    return ctx.emit(Reshape(()), value) if value.type.rank else value


def _requantized(
    ctx: OpContext, total: Value, scale: Value, y_scale: Value, y_zero: Value
) -> Value:
    if y_zero.type.elements == 1:
        y_zero = _scalar(ctx, y_zero)
    if scale.type.dtype is not y_scale.type.dtype:
        scale = ctx.emit(Cast(y_scale.type.dtype.value), scale)
    return ctx.emit(Requantize(), total, ctx.emit(Div(), scale, y_scale), y_zero)
