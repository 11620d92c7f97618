"""ONNX SequenceMap: a loop that takes from sequences and adds to others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.convert.bodies import Body
from edgewise.convert.context import OpContext
from edgewise.convert.kinds import open_shape
from edgewise.convert.onnx_ops.control import GO, TURN, define
from edgewise.convert.onnx_ops.registry import Outputs, onnx_op
from edgewise.convert.scope import Growing
from edgewise.ir.graph import Value
from edgewise.ops.control import Loop
from edgewise.ops.sequence import (
    SequenceAt,
    SequenceEmpty,
    SequenceInsert,
    SequenceLength,
)
from edgewise.types import SequenceType, TensorType


@onnx_op("SequenceMap", since=17)
def _map(ctx: OpContext) -> Outputs:
    if not isinstance(ctx[0].kind, SequenceType):
        raise ctx.malformed(f"its first input is {ctx[0].kind}; want a sequence")
    # Once to learn what is made, and once more with sequences that hold it.
    _, made = _turn(ctx, ())
    kinds = tuple(SequenceType(_tensor(ctx, value)) for value in made)
    growing, made = _turn(ctx, kinds)
    go, *before = list(growing.inputs.values())[1 : 2 + len(kinds)]
    pairs = zip(before, made, strict=True)
    after = (SequenceInsert()(*pair, label=ctx.name) for pair in pairs)
    body = Body(growing, (go, *after))
    op = Loop.giving(
        kinds,
        body=define(ctx, "body", body, (GO, *kinds), growing.captured),
        carried=len(kinds),
        scans=0,
    )
    count = ctx.emit(SequenceLength(), ctx[0])
    empty = (ctx.emit(SequenceEmpty(kind.element.dtype.value)) for kind in kinds)
    yes = ctx.constant(np.array(True))
    return ctx.emit_all(op, count, yes, *empty, *growing.captured)


def _tensor(ctx: OpContext, value: Value) -> TensorType:
    if not isinstance(value.kind, TensorType):
        raise ctx.malformed(f"makes a sequence of {value.kind}; want tensors")
    return value.kind


def _turn(
    ctx: OpContext, kinds: Sequence[SequenceType]
) -> tuple[Growing, tuple[Value, ...]]:
    """One turn: the graph within, over the tensors at one place of all sequences."""
    growing = Growing(ctx.world.symbols)
    turn = growing.input("turn", TURN)
    growing.input("go", GO)
    for index, kind in enumerate(kinds):
        growing.input(f"made {index}", kind)
    scope = ctx.scope.nested(growing)
    inner = OpContext(ctx.world, scope, ctx.node, ())
    inputs = [
        _taken(inner, value, index, turn) for index, value in enumerate(ctx.all())
    ]
    return growing, ctx.world.graphs.inline(scope, ctx.graph("body"), inputs)


def _taken(inner: OpContext, value: Value, index: int, turn: Value) -> Value:
    held = inner.scope.growing.capture(value, inner.node.input[index])
    if not isinstance(held.kind, SequenceType):
        return held
    return inner.emit(SequenceAt(open_shape(inner, held.kind.element)), held, turn)
