"""ONNX Scan: a loop over the slices of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from edgewise.convert.bodies import Body
from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.control import define, kinds_of, settled, stacked
from edgewise.convert.onnx_ops.registry import Outputs, onnx_op
from edgewise.convert.scope import Growing
from edgewise.ir.graph import Value
from edgewise.ops.control import Scan
from edgewise.types import TensorType


class _Form(NamedTuple):
    """Axes and directions; an empty one stands for 0 everywhere."""

    in_axes: Sequence[int] = ()
    in_directions: Sequence[int] = ()
    out_axes: Sequence[int] = ()
    out_directions: Sequence[int] = ()


@onnx_op("Scan", since=9)
def _scan(ctx: OpContext) -> Outputs:
    form = _Form(
        ctx.attribute("scan_input_axes", ()),
        ctx.attribute("scan_input_directions", ()),
        ctx.attribute("scan_output_axes", ()),
        ctx.attribute("scan_output_directions", ()),
    )
    return _over(ctx, ctx.all(), form)


@onnx_op("Scan", since=8)
def _scan_batch(ctx: OpContext) -> Outputs:
    """Every example of a batch is scanned by itself: a scan in a scan."""
    if ctx.optional(0) is not None:
        raise ctx.unsupported("has sequences of unequal lengths", "use operator set 9")
    form = _Form(in_directions=ctx.attribute("directions", ()))
    inputs = tuple(ctx[index] for index in range(1, len(ctx.inputs)))
    growing = Growing(ctx.world.symbols)
    slices = [
        growing.input(f"slice {index}", growing.inside(_slice(ctx, value, 0)))
        for index, value in enumerate(inputs)
    ]
    scope = ctx.scope.nested(growing)
    inner = OpContext(ctx.world, scope, ctx.node, (None, *slices))
    outputs = _over(inner, slices, form)
    ctx.ignore("body", "num_scan_inputs")
    body = Body(growing, outputs)
    count = len(outputs)
    name = define(ctx, "batch", body, body.kinds, growing.captured)
    op = Scan.giving(
        tuple(stacked(ctx, body, value, 0) for value in outputs),
        body=name,
        carried=0,
        in_axes=(0,) * len(inputs),
        in_reverse=(False,) * len(inputs),
        out_axes=(0,) * count,
        out_reverse=(False,) * count,
    )
    return ctx.emit_all(op, *inputs, *growing.captured)


def _over(ctx: OpContext, inputs: Sequence[Value], form: _Form) -> tuple[Value, ...]:
    count = int(ctx.attribute("num_scan_inputs", 0))
    if not 1 <= count <= len(inputs):
        raise ctx.malformed(f"num_scan_inputs={count} of {len(inputs)} inputs")
    carried, scanned = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    axes = tuple(
        ctx.normal(axis, value.type.rank)
        for axis, value in zip(_each(ctx, form.in_axes, count), scanned, strict=True)
    )
    slices = [_slice(ctx, v, a) for v, a in zip(scanned, axes, strict=True)]
    body, kinds, loose = settled(ctx, (), carried, 0, slices)
    rows = body.outputs[len(kinds) :]
    out_axes = tuple(
        ctx.normal(axis, value.type.rank + 1)
        for axis, value in zip(_each(ctx, form.out_axes, len(rows)), rows, strict=True)
    )
    stacks = (
        stacked(ctx, body, v, a, loose) for v, a in zip(rows, out_axes, strict=True)
    )
    op = Scan.giving(
        (*kinds, *stacks),
        body=define(
            ctx, "body", body, (*kinds, *kinds_of(rows)), body.growing.captured
        ),
        carried=len(kinds),
        in_axes=axes,
        in_reverse=tuple(map(bool, _each(ctx, form.in_directions, count))),
        out_axes=out_axes,
        out_reverse=tuple(map(bool, _each(ctx, form.out_directions, len(rows)))),
    )
    return ctx.emit_all(op, *inputs, *body.growing.captured)


def _each(ctx: OpContext, given: Sequence[int], count: int) -> Sequence[int]:
    if given and len(given) != count:
        raise ctx.malformed(f"has {list(given)} for {count} scanned values")
    return given or (0,) * count


def _slice(ctx: OpContext, value: Value, axis: int) -> TensorType:
    shape = value.type.shape
    if not shape:
        raise ctx.malformed(f"scans {value.type}; want an axis to scan along")
    return value.type.with_shape((*shape[:axis], *shape[axis + 1 :]))
