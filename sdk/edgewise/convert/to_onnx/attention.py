"""Attention as what it is made of: ONNX has an operator for it only from 23 on."""

from __future__ import annotations

import numpy as np

from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.writer import At
from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ops.attention import Attention


@writes(Attention)
def attention(at: At) -> Written:
    """``softmax(scale q k + mask) v`` for every head."""
    forms, op = at.op.forms(), at.op
    sizes: dict[str, Dim] = {}
    for form, value in zip(forms, at.inputs[:3], strict=False):
        if value is not None:
            sizes = dict(zip(form, value.type.shape, strict=True)) | sizes
    q = _arranged(at, 0, forms[0], "nhqd")
    k = _shared(at, _arranged(at, 1, forms[1], "nhdk"), 1, forms[1], "nhdk")
    v = _shared(at, _arranged(at, 2, forms[2], "nhke"), 2, forms[2], "nhke")
    scores = at.emit("MatMul", q, k)
    if op.scale != 1.0:
        scores = at.emit("Mul", scores, at.number(op.scale, at.x))
    if at.given(3) is not None:
        scores = at.emit("Add", scores, at.name(3))
    if op.causal:
        hidden = at.number(-np.inf, at.x)
        scores = at.emit("Where", _visible(at, sizes), scores, hidden)
    weights = at.emit("Softmax", scores, axis=3)
    if op.guarded:
        peak = at.emit("ReduceMax", scores, at.integers(3), keepdims=1)
        blind = at.emit("Equal", peak, at.number(-np.inf, at.x))
        weights = at.emit("Where", blind, at.number(0.0, at.x), weights)
    y, order = at.emit("MatMul", weights, v), ["nhqe".index(c) for c in forms[3]]
    return y if order == [0, 1, 2, 3] else at.emit("Transpose", y, perm=order)


def _arranged(at: At, index: int, form: str, order: str) -> str:
    """An operand on the axes ``order``; of an axis with a digit that index."""
    name = at.name(index)
    for axis in reversed(range(len(form))):
        if form[axis].isdigit():
            place = at.writer.sizes.scalar(int(form[axis]))
            name = at.emit("Gather", name, place, axis=axis)
    letters = "".join(filter(str.isalpha, form))
    if letters == order:
        return name
    return at.emit("Transpose", name, perm=[letters.index(c) for c in order])


def _heads(value: Value, form: str) -> Dim:
    return value.type.shape[form.index("h")]


def _shared(at: At, name: str, index: int, form: str, order: str) -> str:
    """Heads of keys and values as often as queries share them."""
    value, heads = at.value(index), _heads(at.x, at.op.forms()[0])
    few = _heads(value, form)
    if few == heads:
        return name
    if not isinstance(heads, int) or not isinstance(few, int) or not few:
        raise at.refuse("only a run knows how many heads share keys")
    wide = at.emit("Unsqueeze", name, at.integers(2))
    wide = at.emit("Tile", wide, at.integers(1, 1, heads // few, 1, 1))
    sizes = [value.type.shape[form.index(c)] for c in order]
    shape = at.writer.sizes.vector((sizes[0], heads, *sizes[2:]))
    return at.emit("Reshape", wide, shape, allowzero=1)


def _visible(at: At, sizes: dict[str, Dim]) -> str:
    """Whether query i sees key j: ``j <= i + start``."""
    scalar = at.writer.sizes.scalar
    zero, one = scalar(0), scalar(1)
    keys = at.emit("Range", zero, scalar(sizes["k"]), one)
    queries = at.emit("Range", zero, scalar(sizes["q"]), one)
    last = at.emit("Add", queries, scalar(at.op.start))
    rows = at.emit("Unsqueeze", last, at.integers(1))
    return at.emit("LessOrEqual", keys, rows)
