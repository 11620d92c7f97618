"""ONNX branches and loops: their graphs become functions, unless one is chosen now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from edgewise.convert.bodies import Body
from edgewise.convert.context import OpContext
from edgewise.convert.kinds import differ_in_rank, fitted, joined
from edgewise.convert.onnx_ops.registry import Outputs, onnx_op
from edgewise.convert.run_time import integer, scalar
from edgewise.dims import symbols
from edgewise.ir.graph import Input, Value
from edgewise.ops.control import If, Loop
from edgewise.ops.expect import Expect
from edgewise.ops.logic import Equal
from edgewise.ops.sequence import SequenceEmpty, SequenceInsert
from edgewise.ops.shape import Reshape
from edgewise.types import DType, SequenceType, TensorType, ValueType

TURN = TensorType(DType.I64, ())
GO = TensorType(DType.BOOL, ())


@onnx_op("If")
def _if(ctx: OpContext) -> Outputs:
    names = ("then_branch", "else_branch")
    ctx.ignore(*names)
    condition = ctx.constant_or_none(0)
    if condition is not None:
        if condition.size != 1:
            raise ctx.malformed(f"its condition has {condition.size} elements; want 1")
        return ctx.inline(names[0] if condition.reshape(()) else names[1])
    bodies = [ctx.body(name, ()) for name in names]
    if len({len(body.outputs) for body in bodies}) > 1:
        raise ctx.malformed("its branches differ in the number of outputs")
    pairs = tuple(zip(bodies[0].kinds, bodies[1].kinds, strict=True))
    if any(differ_in_rank(a, b) for a, b in pairs):
        return _assumed(ctx, names)
    kinds = tuple(
        joined(ctx, around(ctx, bodies[0], a), around(ctx, bodies[1], b))
        for a, b in pairs
    )
    captured = tuple(dict.fromkeys(v for b in bodies for v in b.growing.captured))
    functions = {
        name: define(ctx, name, body, kinds, captured)
        for name, body in zip(names, bodies, strict=True)
    }
    op = If.giving(kinds, **functions)
    return ctx.emit_all(op, scalar(ctx, ctx[0]), *captured)


def _assumed(ctx: OpContext, names: tuple[str, str]) -> tuple[Value, ...]:
    """The outputs of one branch, which the run gives where that one is chosen."""
    chosen = ctx.world.assumed.choice(ctx.node, likely=_likely(ctx))
    outputs = ctx.inline(names[0] if chosen else names[1])
    check, condition = Expect(chosen, ctx.name), scalar(ctx, ctx[0])
    return tuple(ctx.emit(check, value, condition) for value in outputs)


def _likely(ctx: OpContext) -> bool:
    """Whether the condition holds as a rule.

    Where sizes decide, a ``squeeze`` has written it, of an axis that is 1; but numbers
    that a run computes are rarely equal.
    """
    inputs = (value for value in ctx[0].node.inputs if value is not None)
    by_sizes = all(ctx.known_sizes.known(value) is not None for value in inputs)
    return by_sizes or not isinstance(ctx[0].op, Equal)


def around(ctx: OpContext, body: Body, kind: ValueType) -> ValueType:
    """A type within a body as it is around it, with fresh symbols for its own sizes."""
    if not isinstance(kind, TensorType):
        return kind
    sizes = map(body.around, kind.shape)
    return kind.with_shape(
        tuple(ctx.fresh(1)[0] if size is None else size for size in sizes)
    )


def define(
    ctx: OpContext,
    name: str,
    body: Body,
    kinds: Sequence[ValueType],
    captured: Sequence[Value],
) -> str:
    """A body as a function of the module that gives ``kinds``; its name."""
    outputs = map(fitted, body.outputs, kinds)
    graph = Body(body.growing, tuple(outputs)).graph(captured)
    return ctx.world.define(f"{ctx.name}/{name}", graph)


@onnx_op("Loop")
def _loop(ctx: OpContext) -> Outputs:
    trip, condition, initial = ctx.optional(0), ctx.optional(1), ctx.inputs[2:]
    carried = tuple(ctx[index + 2] for index in range(len(initial)))
    body, kinds, loose = settled(ctx, (TURN, GO), carried, 1)
    rows = body.outputs[1 + len(kinds) :]
    captured = body.growing.captured
    op = Loop.giving(
        (*kinds, *(stacked(ctx, body, value, 0, loose) for value in rows)),
        body=define(ctx, "body", body, (GO, *kinds, *kinds_of(rows)), captured),
        carried=len(kinds),
        scans=len(rows),
    )
    trip = None if trip is None else scalar(ctx, integer(ctx, trip))
    condition = None if condition is None else scalar(ctx, condition)
    return ctx.emit_all(op, trip, condition, *carried, *captured)


def settled(
    ctx: OpContext,
    before: Sequence[ValueType],
    carried: Sequence[Value],
    first: int,
    behind: Sequence[ValueType] = (),
) -> tuple[Body, tuple[ValueType, ...], Collection[str]]:
    """The body of a loop over carried values of types that its turns do not change.

    With the types, and the symbols in them of sizes that do change from turn to turn.

    Args:
        ctx: The loop.
        before: Types of the body's inputs before the carried ones.
        carried: Initial values.
        first: Number of the body's outputs before the carried ones.
        behind: Types of the body's inputs behind the carried ones.
    """
    kinds = tuple(value.kind for value in carried)
    if any(isinstance(value.op, SequenceEmpty) for value in carried):
        once = ctx.body("body", (*before, *kinds, *behind)).outputs[first:]
        kinds = tuple(map(grown, carried, once)) if len(once) >= len(kinds) else kinds
    loose: set[str] = set()  # symbols for sizes that change
    while True:
        body = ctx.body("body", (*before, *kinds, *behind))
        if len(body.outputs) < first + len(kinds):
            raise ctx.malformed(
                f"its body gives {len(body.outputs)} values; want at least"
                f" {first + len(kinds)}"
            )
        given = [known(body, kind) for kind in body.kinds[first : first + len(kinds)]]
        wider = tuple(
            joined(ctx, a, b, loose) for a, b in zip(kinds, given, strict=True)
        )
        if wider == kinds:
            head = (scalar_within(value) for value in body.outputs[:first])
            whole = Body(body.growing, (*head, *body.outputs[first:]))
            return whole, kinds, loose
        loose |= fresh_names(kinds, wider)
        kinds = wider


def grown(initial: Value, result: Value) -> ValueType:
    """The type of a sequence that begins empty: that of the tensors it is to hold.

    What an empty sequence may hold has no shape, and so would all that comes of it.
    """
    if isinstance(initial.op, SequenceEmpty):
        while isinstance(result.op, SequenceInsert):
            xs, x = result.node.inputs[:2]
            if xs is None or x is None:
                break
            if isinstance(xs.op, Input):
                return SequenceType(x.type)
            result = xs
    return initial.kind


def known(body: Body, kind: ValueType) -> ValueType:
    """A type within a body as it is around it; its own sizes keep their symbols."""
    if not isinstance(kind, TensorType):
        return kind
    pairs = ((size, body.around(size)) for size in kind.shape)
    return kind.with_shape(
        tuple(within if outer is None else outer for within, outer in pairs)
    )


def fresh_names(old: Iterable[ValueType], new: Iterable[ValueType]) -> set[str]:
    """Symbols that ``new`` types have and ``old`` have not."""
    before, after = (
        {
            name
            for kind in kinds
            if isinstance(kind, TensorType)
            for size in kind.shape
            for name in symbols(size)
        }
        for kinds in (old, new)
    )
    return after - before


def scalar_within(value: Value) -> Value:
    """A condition as a scalar: some exporters give it an axis."""
    if value.type.rank == 0:
        return value
    return Reshape(())(value, label=value.node.label)


def kinds_of(values: Iterable[Value]) -> tuple[ValueType, ...]:
    """Types of values."""
    return tuple(value.kind for value in values)


def stacked(
    ctx: OpContext, body: Body, row: Value, axis: int, loose: Collection[str] = ()
) -> TensorType:
    """The type of the rows of all turns; only a run knows how many.

    A size in ``loose`` is, around the loop, that of the last turn alone.
    """
    kind = around(ctx, body, row.type)
    if not isinstance(kind, TensorType):
        raise ctx.malformed(f"stacks {kind}; want tensors")
    sizes = [
        ctx.fresh(1)[0] if symbols(size).intersection(loose) else size
        for size in kind.shape
    ]
    return kind.with_shape((*sizes[:axis], *ctx.fresh(1), *sizes[axis:]))
