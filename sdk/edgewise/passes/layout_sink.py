"""How each op does its work before a transpose instead of after it.

A function here gets a node with its new inputs, some of them made by a transpose, and
gives ``Transpose(op(...))`` in its place; ``None`` where that would not be the same or
would cost more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from edgewise.ir.graph import Inputs, Node, Value
from edgewise.ir.op import OPS, Op
from edgewise.ops.activation import Activated
from edgewise.ops.binary import Binary
from edgewise.ops.index import Gather
from edgewise.ops.norm import LayerNorm, RmsNorm
from edgewise.ops.pad import Pad
from edgewise.ops.shape import Slice
from edgewise.ops.softmax import LogSoftmax, Softmax
from edgewise.ops.unary import Unary
from edgewise.passes.layout_reshape import sink_reshape
from edgewise.passes.permute import on_axes, permutation, transposed

Sink: TypeAlias = Callable[[Node, Inputs], "Value | None"]


def _found(inputs: Inputs) -> tuple[int, ...] | None:
    """The permutation of the first input that a transpose makes."""
    for value in inputs:
        axes = permutation(value)
        if axes is not None:
            return axes
    return None


def _finish(node: Node, op: Op, inputs: Inputs, axes: tuple[int, ...]) -> Value:
    return transposed(op(*inputs, label=node.label), axes, node.label)


def _elementwise(node: Node, inputs: Inputs) -> Value | None:
    return _on_all(node, inputs, lambda _axes: node.op)


def _along_axis(node: Node, inputs: Inputs) -> Value | None:
    """An op with an ``axis``, where all inputs have all axes."""
    op: Any = node.op
    return _on_all(node, inputs, lambda axes: op.replace(axis=axes[op.axis]))


def _on_all(
    node: Node, inputs: Inputs, moved: Callable[[tuple[int, ...]], Op]
) -> Value | None:
    axes = _found(inputs)
    if axes is None or len(axes) != Value(node).type.rank:
        return None
    before = [None if v is None else on_axes(v, axes, node.label) for v in inputs]
    lost = any(
        new is None and old is not None for new, old in zip(before, inputs, strict=True)
    )
    return None if lost else _finish(node, moved(axes), tuple(before), axes)


def _concat(node: Node, inputs: Inputs) -> Value | None:
    # Axes of size 1 do not broadcast here, so shorter forms of a part will not do.
    if any(v is None or v.type.rank != Value(node).type.rank for v in inputs):
        return None
    moved = _along_axis(node, inputs)
    if moved is None or not all(
        v is not None and v.type.rank == Value(node).type.rank
        for v in moved.node.inputs
    ):
        return None
    return moved


def _first_only(
    node: Node, inputs: Inputs, moved: Callable[[tuple[int, ...]], Op | None]
) -> Value | None:
    """An op whose further inputs know no layout (per channel, or scalars)."""
    axes = permutation(inputs[0])
    if axes is None or inputs[0] is None or len(axes) != Value(node).type.rank:
        return None
    op = moved(axes)
    if op is None:
        return None
    return _finish(node, op, (inputs[0].node.inputs[0], *inputs[1:]), axes)


def _per_channel(node: Node, inputs: Inputs) -> Value | None:
    op: Any = node.op
    return _first_only(node, inputs, lambda axes: op.replace(axis=axes[op.axis]))


def _softmax(node: Node, inputs: Inputs) -> Value | None:
    op = node.op

    def moved(axes: tuple[int, ...]) -> Op | None:
        # Along the last axis it reads memory in order: worth a transpose behind it.
        if not isinstance(op, Softmax | LogSoftmax) or axes[op.axis] != len(axes) - 1:
            return None
        return op.replace(axis=len(axes) - 1)

    return _first_only(node, inputs, moved)


def _last_axes(node: Node, inputs: Inputs) -> Value | None:
    """Normalisation over the axes from ``axis`` on, which must stay where they are."""
    op = node.op

    def moved(axes: tuple[int, ...]) -> Op | None:
        if not isinstance(op, LayerNorm | RmsNorm):
            return None
        kept = tuple(range(op.axis, len(axes)))
        return op if axes[op.axis :] == kept else None

    return _first_only(node, inputs, moved)


def _slice(node: Node, inputs: Inputs) -> Value | None:
    op = node.op

    def moved(axes: tuple[int, ...]) -> Op | None:
        if not isinstance(op, Slice):
            return None
        return Slice(_put(op.starts, axes), _put(op.sizes, axes), _put(op.steps, axes))

    return _first_only(node, inputs, moved)


def _pad(node: Node, inputs: Inputs) -> Value | None:
    op = node.op

    def moved(axes: tuple[int, ...]) -> Op | None:
        if not isinstance(op, Pad):
            return None
        rank = len(axes)
        begins, ends = _put(op.pads[:rank], axes), _put(op.pads[rank:], axes)
        return op.replace(pads=(*begins, *ends))

    return _first_only(node, inputs, moved)


def _put(items: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    """Items per axis after the transpose, as items per axis before it."""
    return tuple(items[axes.index(axis)] for axis in range(len(axes)))


def _gather(node: Node, inputs: Inputs) -> Value | None:
    op, indices = node.op, inputs[1]
    axes = permutation(inputs[0])
    if not isinstance(op, Gather) or axes is None or indices is None:
        return None
    moved = op.replace(axis=axes[op.axis])
    if indices.type.rank == 0:
        return _reduced(node, inputs, moved, (moved.axis,))
    return (
        _first_only(node, inputs, lambda _: moved) if indices.type.rank == 1 else None
    )


def _reduce(node: Node, inputs: Inputs) -> Value | None:
    op: Any = node.op
    axes = permutation(inputs[0])
    if axes is None or inputs[0] is None:
        return None
    gone = tuple(sorted(axes[axis] for axis in op.axes))
    return _reduced(node, inputs, op.replace(axes=gone), gone)


def _arg(node: Node, inputs: Inputs) -> Value | None:
    op: Any = node.op
    axes = permutation(inputs[0])
    if axes is None or inputs[0] is None:
        return None
    return _reduced(node, inputs, op.replace(axis=axes[op.axis]), (axes[op.axis],))


def _reduced(node: Node, inputs: Inputs, op: Op, gone: tuple[int, ...]) -> Value | None:
    """``op`` before the transpose; without ``keepdims`` fewer axes move behind it."""
    source, axes = inputs[0], permutation(inputs[0])
    if source is None or axes is None:
        return None
    if not getattr(op, "keepdims", False):
        kept = [axis for axis in range(len(axes)) if axis not in gone]
        axes = tuple(kept.index(axis) for axis in axes if axis not in gone)
    return _finish(node, op, (source.node.inputs[0], *inputs[1:]), axes)


def _table() -> dict[str, Sink]:
    table: dict[str, Sink] = {
        name: _elementwise
        for name, op in OPS.items()
        if issubclass(op, Unary | Binary | Activated)
    }
    table |= dict.fromkeys(("where", "cast", "clip", "prelu"), _elementwise)
    table |= {name: _reduce for name in OPS if name.startswith("reduce_")}
    table |= dict.fromkeys(("argmax", "argmin"), _arg)
    table |= dict.fromkeys(("batch_norm", "scale_shift"), _per_channel)
    table |= dict.fromkeys(("quantize", "dequantize"), _per_channel)
    table |= dict.fromkeys(("softmax", "log_softmax"), _softmax)
    table |= dict.fromkeys(("layer_norm", "rms_norm"), _last_axes)
    table["cumsum"] = _per_channel
    return table | {
        "concat": _concat,
        "gather": _gather,
        "slice": _slice,
        "pad": _pad,
        "reshape": sink_reshape,
    }


SINKS = _table()
