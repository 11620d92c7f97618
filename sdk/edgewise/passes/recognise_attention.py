"""Attention that exporters write out as products around a softmax, found again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.ir.graph import Value, constant
from edgewise.ir.pattern import a, scalar
from edgewise.ops.attention import Attention
from edgewise.ops.binary import Add, Div, Mul
from edgewise.ops.choose import Where
from edgewise.ops.matmul import MatMul
from edgewise.ops.shape import Reshape, Transpose
from edgewise.ops.softmax import Softmax
from edgewise.passes.rewrite import rule
from edgewise.types import DType

# What is added to a score below this is all that is left of it.
HIDDEN = -1e30


class _Scores(NamedTuple):
    """``q k * scale + mask``."""

    q: Value
    k: Value
    scale: float
    mask: Value | None


@rule(a(MatMul, a(Softmax, "scores", name="weights"), "v"))
def attention(scores: Value, weights: Value, v: Value) -> Value | None:
    """``softmax(q k * scale + mask) v``, whatever makes q, k and v."""
    op, rank = weights.op, scores.type.rank
    if not isinstance(op, Softmax) or op.axis != rank - 1 or rank not in (3, 4):
        return None
    found = _split(scores)
    if found is None or scores.type.dtype is not DType.F32:
        return None
    q, k, scale, mask = found
    batch, shared = q.type.shape[:-2], k.type.shape[:-2]
    if batch != scores.type.shape[:-2] or v.type.shape[:-2] != shared:
        return None
    if batch[:-1] != shared[:-1] or shared[-1] not in (batch[-1], 1):
        return None
    if rank == 4:
        return Attention(scale, "nhqd,nhdk,nhke->nhqe")(q, k, v, mask)
    (q, q_form), (k, k_form), (v, v_form) = (
        _of_one_batch(value, form)
        for value, form in ((q, "hqd"), (k, "hdk"), (v, "hke"))
    )
    axes = f"{q_form},{k_form},{v_form}->nhqe"
    y = Attention(scale, axes)(q, k, v, mask)
    return Reshape(y.type.shape[1:])(y)


def _of_one_batch(value: Value, form: str) -> tuple[Value, str]:
    """A value of three axes as one of four, before a transpose if one makes it."""
    op = value.op
    if isinstance(op, Transpose) and value.node.inputs[0] is not None:
        moved = "".join(form[op.axes.index(axis)] for axis in range(3))
        if moved[-1] == form[-1] or form == "hdk":
            value, form = value.node.inputs[0], moved
    return Reshape((1, *value.type.shape))(value), f"n{form}"


def _split(value: Value) -> _Scores | None:
    """Scores as product, scale and mask; ``None`` where they are not that."""
    op, inputs = value.op, value.node.inputs
    if isinstance(op, MatMul) and inputs[0] is not None and inputs[1] is not None:
        (q, q_scale), (k, k_scale) = _unscaled(inputs[0]), _unscaled(inputs[1])
        return _Scores(q, k, q_scale * k_scale, None)
    if isinstance(op, Mul | Div):
        x, factor = _factor(value)
        found = None if x is None else _split(x)
        if found is None or found.mask is not None:
            return None
        return found._replace(scale=found.scale * factor)
    if isinstance(op, Add):
        return _masked(value, inputs[0], inputs[1]) or _masked(
            value, inputs[1], inputs[0]
        )
    return _filled(value) if isinstance(op, Where) else None


def _masked(value: Value, scores: Value | None, mask: Value | None) -> _Scores | None:
    if scores is None or mask is None or scores.type != value.type:
        return None
    found = _split(scores)
    if found is None:
        return None
    both = mask if found.mask is None else Add()(found.mask, mask)
    return found._replace(mask=both)


def _filled(value: Value) -> _Scores | None:
    """Scores that a condition replaces by a number far below all of them."""
    condition, *sides = value.node.inputs
    for place, side in enumerate(sides):
        fill, scores = scalar(side), sides[1 - place]
        if condition is None or fill is None or fill > HIDDEN or scores is None:
            continue
        choices = [constant(np.zeros((), "f4"))] * 2
        choices[place] = constant(np.asarray(fill, "f4"))
        return _masked(value, scores, Where()(condition, *choices))
    return None


def _factor(value: Value) -> tuple[Value | None, float]:
    """A value as another times a number."""
    left, right = value.node.inputs
    if isinstance(value.op, Mul) and scalar(left) is not None:
        left, right = right, left
    number = scalar(right)
    if left is None or left.type != value.type or not number:
        return None, 1.0
    return left, 1.0 / number if isinstance(value.op, Div) else number


def _unscaled(value: Value) -> tuple[Value, float]:
    """A value without the number that multiplies it, perhaps before a transpose."""
    op = value.op
    if isinstance(op, Mul | Div):
        x, factor = _factor(value)
        if x is not None:
            inner, more = _unscaled(x)
            return inner, factor * more
    x = value.node.inputs[0] if isinstance(op, Transpose) else None
    if x is not None:
        inner, factor = _unscaled(x)
        if factor != 1.0:
            return op.__class__(*op.values)(inner), factor
    return value, 1.0


RULES = (attention,)
