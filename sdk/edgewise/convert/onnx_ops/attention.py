"""ONNX attention: products of matrices around a softmax."""

from __future__ import annotations

import math

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import as_type, counted, reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Dim, floordiv
from edgewise.ir.graph import Value
from edgewise.ops.activation import Tanh
from edgewise.ops.binary import Add, Div, Mul, Sub
from edgewise.ops.choose import Where
from edgewise.ops.logic import And, Equal, GreaterEqual, Less, LessEqual
from edgewise.ops.matmul import MatMul
from edgewise.ops.pad import Pad
from edgewise.ops.reduce import ReduceMax
from edgewise.ops.shape import Concat, Transpose
from edgewise.ops.softmax import Softmax
from edgewise.types import DType

_SWAP_HEADS = (0, 2, 1, 3)
_ROOMY = frozenset({DType.F32, DType.F64})


@onnx_op("Attention", since=23)
def _attention(ctx: OpContext) -> tuple[Value, ...]:
    past = ctx.optional(4)
    if (past is None) != (ctx.optional(5) is None):
        raise ctx.malformed("past_key and past_value go together")
    if past is not None and ctx.optional(6) is not None:
        raise ctx.malformed("nonpad_kv_seqlen and past_key exclude each other")
    q = _heads(ctx, 0, "q_num_heads")
    k = _appended(ctx, 4, _heads(ctx, 1, "kv_num_heads"))
    v = _appended(ctx, 5, _heads(ctx, 2, "kv_num_heads"))
    scores = _scores(ctx, q, k)
    capped = _capped(ctx, scores)
    masked, guarded = _masked(ctx, capped)
    weights = as_type(ctx, _weights(ctx, masked, guarded=guarded), q.type.dtype)
    y = _grouped(ctx, as_type(ctx, weights, v.type.dtype), v)
    y = as_type(ctx, y, q.type.dtype)
    if ctx[0].type.rank == 3:
        n, heads, length, size = y.type.shape
        y = reshaped(ctx, ctx.emit(Transpose(_SWAP_HEADS), y), n, length, heads * size)
    mode = ctx.attribute("qk_matmul_output_mode", 0)
    if mode not in range(4):
        raise ctx.malformed(f"qk_matmul_output_mode={mode}; want 0 to 3")
    return y, k, v, (scores, capped, masked, weights)[mode]


@onnx_op("FlexAttention", domain="ai.onnx.preview")
def _flex_attention(ctx: OpContext) -> Value:
    q, k, v = ctx[0], ctx[1], ctx[2]
    if any(x.type.rank != 4 for x in (q, k, v)):
        raise ctx.malformed(f"attends {q.type}, {k.type}, {v.type}; want rank 4")
    code = ctx.attribute("softmax_precision")
    roomy = q.type.dtype if q.type.dtype in _ROOMY else DType.F32
    dtype = ctx.element_type(code) if code else roomy
    scores = _modified(ctx, "score_mod", as_type(ctx, _scores(ctx, q, k), dtype))
    weights = _modified(ctx, "prob_mod", ctx.emit(Softmax(3), scores))
    y = _grouped(ctx, as_type(ctx, weights, v.type.dtype), v)
    return as_type(ctx, y, q.type.dtype)


def _modified(ctx: OpContext, name: str, x: Value) -> Value:
    """What the graph in an attribute makes of ``x``; without one, ``x``."""
    if ctx.attribute(name) is None:
        return x
    results = ctx.inline(name, x)
    if len(results) != 1 or results[0].type != x.type:
        got = ", ".join(str(value.kind) for value in results)
        raise ctx.malformed(f"its {name} makes {got} of {x.type}; want the same")
    return results[0]


def _heads(ctx: OpContext, index: int, attribute: str) -> Value:
    """Input ``index`` as [batch, heads, length, size]."""
    x = ctx[index]
    count = ctx.attribute(attribute)
    if x.type.rank == 4:
        return x
    if x.type.rank != 3 or not count or count < 1:
        raise ctx.malformed(
            f"its input {index} is {x.type}; want rank 4, or 3 and {attribute}"
        )
    n, length, hidden = x.type.shape
    if isinstance(hidden, int) and hidden % count:
        raise ctx.malformed(f"{count} heads do not share {hidden} channels")
    split = reshaped(ctx, x, n, length, count, floordiv(hidden, count))
    return ctx.emit(Transpose(_SWAP_HEADS), split)


def _appended(ctx: OpContext, index: int, x: Value) -> Value:
    past = ctx.optional(index)
    return x if past is None else ctx.emit(Concat(2), past, x)


def _grouped(ctx: OpContext, a: Value, b: Value) -> Value:
    """Products per head, where a group of heads of ``a`` shares one of ``b``."""
    n, heads, rows, inner = a.type.shape
    many, few = ctx.whole(heads), ctx.whole(b.type.shape[1])
    if many == few:
        return ctx.emit(MatMul(), a, b)
    if not few or many % few:
        raise ctx.malformed(f"{many} heads of queries do not share {few} of keys")
    # The rows of a group, one head after the other, are the rows of one product.
    stacked = reshaped(ctx, a, n, few, many // few * rows, inner)
    y = ctx.emit(MatMul(), stacked, b)
    return reshaped(ctx, y, n, many, rows, y.type.shape[-1])


def _scores(ctx: OpContext, q: Value, k: Value) -> Value:
    scale = ctx.attribute("scale")
    if scale is None:
        size = ctx.whole(q.type.shape[3])
        if not size:
            raise ctx.malformed(
                f"its queries are {q.type}; want heads of size 1 or more"
            )
        scale = 1 / math.sqrt(size)
    k = ctx.emit(Transpose((0, 1, 3, 2)), k)
    if q.type.dtype in _ROOMY:
        return _grouped(ctx, ctx.emit(Mul(), q, ctx.like(scale, q)), k)
    # A product of elements of few bits overflows unless both are scaled before.
    root = math.sqrt(abs(scale))
    q = ctx.emit(Mul(), q, ctx.like(math.copysign(root, scale), q))
    return _grouped(ctx, q, ctx.emit(Mul(), k, ctx.like(root, k)))


def _capped(ctx: OpContext, scores: Value) -> Value:
    cap = ctx.attribute("softcap", 0.0)
    if not cap:
        return scores
    limit = ctx.like(cap, scores)
    return ctx.emit(Mul(), ctx.emit(Tanh(), ctx.emit(Div(), scores, limit)), limit)


def _masked(ctx: OpContext, scores: Value) -> tuple[Value, bool]:
    """Scores with -inf where a query may not look; whether that may be everywhere."""
    mask = None if ctx.optional(3) is None else ctx.ranked(3, 1, 2, 3, 4)
    padding = None if ctx.optional(6) is None else ctx.ranked(6, 1)
    left = int(ctx.attribute("left_window_size", -1))
    allowed = _window(ctx, scores, left)
    guarded = left >= 0 or padding is not None or mask is not None
    if padding is not None:
        keys = counted(ctx, 0, scores.type.shape[3])
        valid = reshaped(ctx, padding, padding.type.elements, 1, 1, 1)
        allowed.append(ctx.emit(Less(), keys, valid))
    if mask is not None:
        mask = _widened(ctx, mask, scores.type.shape[3])
        if mask.type.dtype is DType.BOOL:
            allowed.append(mask)
        else:
            scores = ctx.emit(Add(), scores, as_type(ctx, mask, scores.type.dtype))
    if not allowed:
        return scores, guarded
    every = allowed[0]
    for condition in allowed[1:]:
        every = ctx.emit(And(), every, condition)
    return ctx.emit(Where(), every, scores, ctx.like(-np.inf, scores)), guarded


def _widened(ctx: OpContext, mask: Value, keys: Dim) -> Value:
    """A mask that ends early, as if it forbade the rest."""
    if ctx.opset < 24 or mask.type.shape[-1] == keys:
        return mask
    missing = keys - mask.type.shape[-1]
    pads = (0,) * (2 * mask.type.rank - 1)
    if mask.type.dtype is DType.BOOL:
        return ctx.emit(Pad((*pads, missing)), mask)
    return ctx.emit(Pad((*pads, missing), "constant", -np.inf), mask)


def _window(ctx: OpContext, scores: Value, left: int) -> list[Value]:
    """Which keys a query may look at for where it stands among them."""
    right = int(ctx.attribute("right_window_size", -1))
    if ctx.attribute("is_causal", 0):
        right = 0
    if left < 0 and right < 0:
        return []
    keys = counted(ctx, 0, scores.type.shape[3])
    place = _places(ctx, scores.type.shape[2])
    allowed = []
    if right >= 0:
        last = place
        if right:
            last = ctx.emit(Add(), place, ctx.constant(np.array(right)))
        allowed.append(ctx.emit(LessEqual(), keys, last))
    if left >= 0:
        first = ctx.emit(Sub(), place, ctx.constant(np.array(left)))
        allowed.append(ctx.emit(GreaterEqual(), keys, first))
    return allowed


def _places(ctx: OpContext, rows: Dim) -> Value:
    """Where each query stands among the keys, as a column."""
    past, valid = ctx.optional(4), ctx.optional(6)
    if valid is None:
        start = 0 if past is None else past.type.shape[2]
        return counted(ctx, start, rows, rows, 1)
    ends = reshaped(ctx, valid, valid.type.elements, 1, 1, 1)
    return ctx.emit(Add(), counted(ctx, -rows, rows, rows, 1), ends)


def _weights(ctx: OpContext, scores: Value, *, guarded: bool) -> Value:
    """The softmax of each row; a row of -inf alone looks at nothing."""
    code = ctx.attribute("softmax_precision")
    if code:
        scores = as_type(ctx, scores, ctx.element_type(code))
    weights = ctx.emit(Softmax(3), scores)
    if not guarded:
        return weights
    peak = ctx.emit(ReduceMax((3,), True), scores)
    nothing = ctx.emit(Equal(), peak, ctx.like(-np.inf, scores))
    return ctx.emit(Where(), nothing, ctx.like(0, scores), weights)
