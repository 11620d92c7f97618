"""ONNX operators that change shapes: targets are sizes, symbols among them."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.late import (
    expand_target,
    reshape_target,
    squeezed,
    unsqueezed,
    without_ones,
)
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Dim, Shape, floordiv, product
from edgewise.ir.graph import Value
from edgewise.ops.create import DimValue
from edgewise.ops.shape import Concat, Expand, Reshape, Tile, Transpose


@onnx_op("Shape")
def _shape(ctx: OpContext) -> Value:
    shape = ctx[0].type.shape
    start, end = ctx.attribute("start", 0), ctx.attribute("end")
    return ctx.emit(DimValue(shape[start:end], False))


@onnx_op("Size")
def _size(ctx: OpContext) -> Value:
    return ctx.emit(DimValue((ctx[0].type.elements,), True))


@onnx_op("Reshape")
def _reshape(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    keep_zero = bool(ctx.attribute("allowzero", 0))
    given = ctx.attribute("shape") if ctx.opset < 5 else ctx.known(1)
    if given is not None:
        target = _target(ctx, tuple(given), keep_zero)
    elif ctx.opset < 5:
        raise ctx.malformed("its shape is missing")
    else:
        target = reshape_target(ctx, keep_zero)
    return ctx.emit(Reshape(target), ctx[0])


def _target(ctx: OpContext, given: Shape, keep_zero: bool) -> Shape:
    shape = ctx[0].type.shape
    target: list[Dim] = list(given)
    for axis, size in enumerate(target):
        if size == 0 and not keep_zero:
            if axis >= len(shape):
                raise ctx.malformed(f"copies axis {axis} of {ctx[0].type}")
            target[axis] = shape[axis]
    if target.count(-1) > 1 or (keep_zero and -1 in target and 0 in target):
        raise ctx.malformed(f"its target {list(given)} leaves more than one size open")
    if -1 in target:
        axis = target.index(-1)
        rest = product(size for i, size in enumerate(target) if i != axis)
        if rest == 0:
            raise ctx.malformed(f"its target {list(given)} leaves a size undefined")
        target[axis] = floordiv(product(shape), rest)
    if any(isinstance(size, int) and size < 0 for size in target):
        raise ctx.malformed(f"its target {list(given)} has a negative size")
    return tuple(target)


@onnx_op("Flatten")
def _flatten(ctx: OpContext) -> Value:
    shape = ctx[0].type.shape
    axis = int(ctx.attribute("axis", 1))
    axis = len(shape) if axis == len(shape) else ctx.normal(axis, max(len(shape), 1))
    flat = (product(shape[:axis]), product(shape[axis:]))
    return ctx.emit(Reshape(flat), ctx[0])


@onnx_op("Squeeze")
def _squeeze(ctx: OpContext) -> Value:
    shape = ctx[0].type.shape
    if ctx.late(1, 13):
        return squeezed(ctx)
    axes = ctx.axes(len(shape), 1, 13)
    if axes is None:
        return without_ones(ctx)
    for axis in axes:
        if isinstance(shape[axis], int) and shape[axis] != 1:
            raise ctx.malformed(f"squeezes axis {axis} of {ctx[0].type}")
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return ctx.emit(Reshape(kept), ctx[0])


@onnx_op("Unsqueeze")
def _unsqueeze(ctx: OpContext) -> Value:
    shape = ctx[0].type.shape
    if ctx.late(1, 13):
        return unsqueezed(ctx)
    given = ctx.attribute("axes") if ctx.opset < 13 else ctx.integers(1)
    if given is None:
        raise ctx.malformed("its axes are missing")
    rank = len(shape) + len(given)
    axes = {ctx.normal(int(axis), rank) for axis in given}
    if len(axes) != len(given):
        raise ctx.malformed(f"its axes {list(given)} repeat one")
    rest = iter(shape)
    target = tuple(1 if axis in axes else next(rest) for axis in range(rank))
    return ctx.emit(Reshape(target), ctx[0])


@onnx_op("Transpose")
def _transpose(ctx: OpContext) -> Value:
    rank = ctx[0].type.rank
    axes = tuple(ctx.attribute("perm", tuple(reversed(range(rank)))))
    if sorted(axes) != list(range(rank)):
        raise ctx.malformed(f"perm={list(axes)} does not order {rank} axes")
    return ctx.emit(Transpose(axes), ctx[0])


@onnx_op("Concat")
def _concat(ctx: OpContext) -> Value:
    parts = ctx.all()
    if not parts:
        raise ctx.malformed("joins nothing")
    return ctx.emit(Concat(ctx.axis(parts[0].type.rank, 1)), *parts)


@onnx_op("Expand", since=8)
def _expand(ctx: OpContext) -> Value:
    shape = ctx.known(1)
    if shape is None:
        return ctx.emit(Expand(expand_target(ctx)), ctx[0])
    for size in shape:
        if isinstance(size, int) and size < 0:
            raise ctx.malformed(f"its target {list(shape)} has a negative size")
    return ctx.emit(Expand(shape), ctx[0])


@onnx_op("Tile", since=6)
def _tile(ctx: OpContext) -> Value:
    repeats = ctx.sizes(1)
    if repeats is None or len(repeats) != ctx[0].type.rank:
        raise ctx.malformed("its repeats are not one for every axis")
    return ctx.emit(Tile(repeats), ctx[0])


@onnx_op("DepthToSpace")
def _depth_to_space(ctx: OpContext) -> Value:
    n, c, h, w = _image(ctx)
    b = _block(ctx)
    mode = _mode(ctx)
    deep = floordiv(c, b * b)
    split: Shape = (n, deep, b, b, h, w)
    axes = (0, 1, 4, 2, 5, 3)
    if mode == "DCR":
        split, axes = (n, b, b, deep, h, w), (0, 3, 4, 1, 5, 2)
    parts = ctx.emit(Transpose(axes), ctx.emit(Reshape(split), ctx[0]))
    return ctx.emit(Reshape((n, deep, h * b, w * b)), parts)


@onnx_op("SpaceToDepth")
def _space_to_depth(ctx: OpContext) -> Value:
    n, c, h, w = _image(ctx)
    b = _block(ctx)
    rows, columns = floordiv(h, b), floordiv(w, b)
    parts = ctx.emit(Reshape((n, c, rows, b, columns, b)), ctx[0])
    axes = (0, 3, 5, 1, 2, 4) if _mode(ctx) == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = ctx.emit(Transpose(axes), parts)
    return ctx.emit(Reshape((n, c * b * b, rows, columns)), parts)


def _mode(ctx: OpContext) -> str:
    mode = str(ctx.attribute("mode", "DCR"))
    if mode not in ("DCR", "CRD"):
        raise ctx.malformed(f"mode={mode!r}; want DCR or CRD")
    return mode


def _image(ctx: OpContext) -> Shape:
    if ctx[0].type.rank != 4:
        raise ctx.malformed(f"its input is {ctx[0].type}; want [N, C, H, W]")
    return ctx[0].type.shape


def _block(ctx: OpContext) -> int:
    size = int(ctx.attribute("blocksize", 0))
    if size < 1:
        raise ctx.malformed(f"blocksize={size}; want 1 or more")
    return size
