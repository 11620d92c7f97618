"""Gradients of attention: its shares are computed again rather than kept."""

from __future__ import annotations

import numpy as np

from edgewise.dims import Dim, floordiv
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Add,
    Arange,
    Attention,
    Equal,
    Expand,
    Gather,
    LessEqual,
    MatMul,
    Mul,
    Pad,
    ReduceMax,
    ReduceSum,
    Reshape,
    Softmax,
    Sub,
    Transpose,
    Where,
)
from edgewise_trainer.autodiff.matmul import turned
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar, sum_to


@gradient(Attention)
def attention(at: Adjoint) -> Gradients:
    """Through the products, and through the softmax as of its own."""
    forms, mask = at.op.forms(), (*at.inputs, None)[3]
    q = _arranged(at.input(0), forms[0], "nhqd")
    heads = q.type.shape[1]
    k = _repeated(_arranged(at.input(1), forms[1], "nhkd"), heads)
    v = _repeated(_arranged(at.input(2), forms[2], "nhke"), heads)
    dy = _arranged(at.dy, forms[3], "nhqe")
    shares = _shares(at, q, k, mask)
    weighted = Mul()(shares, MatMul()(dy, turned(v)))
    total = ReduceSum((3,), keepdims=True)(weighted)
    grad = Sub()(weighted, Mul()(shares, total))
    scaled = Mul()(grad, scalar(at.op.scale, grad))
    grads = (
        _back(at.input(0), forms[0], "nhqd", MatMul()(scaled, k)),
        _back(at.input(1), forms[1], "nhkd", MatMul()(turned(scaled), q)),
        _back(at.input(2), forms[2], "nhke", MatMul()(turned(shares), dy)),
    )
    return (*grads, None if mask is None else sum_to(grad, mask))[: len(at.inputs)]


def _shares(at: Adjoint, q: Value, k: Value, mask: Value | None) -> Value:
    scores = MatMul()(q, turned(k))
    scores = Mul()(scores, scalar(at.op.scale, scores))
    if mask is not None:
        scores = Add()(scores, mask)
    lowest = scalar(-np.inf, scores)
    if at.op.causal:
        queries, keys = scores.type.shape[2:]
        place = Reshape((queries, 1))(Arange(at.op.start, queries, 1)())
        seen = LessEqual()(Arange(0, keys, 1)(), place)
        scores = Where()(seen, scores, lowest)
    shares = Softmax(3)(scores)
    if not at.op.guarded:
        return shares
    nothing = Equal()(ReduceMax((3,), keepdims=True)(scores), lowest)
    return Where()(nothing, scalar(0.0, shares), shares)


def _arranged(x: Value, form: str, order: str) -> Value:
    """``x`` on the axes ``order``, at the index that a digit says."""
    for axis, letter in enumerate(form):
        if letter.isdigit():
            x = Gather(axis)(x, constant(np.array(int(letter))))
    letters = "".join(filter(str.isalpha, form))
    return Transpose(tuple(letters.index(letter) for letter in order))(x)


def _repeated(x: Value, heads: Dim) -> Value:
    """Every head of ``x`` as often as heads of queries share it."""
    n, few, *rest = x.type.shape
    if few == heads:
        return x
    wide = (n, few, floordiv(heads, few), *rest)
    return Reshape((n, heads, *rest))(
        Expand(wide)(Reshape((n, few, 1, *rest))(x)),
    )


def _back(like: Value, form: str, order: str, grad: Value) -> Value:
    """The gradient of what ``_arranged`` and ``_repeated`` took, zeros elsewhere."""
    sizes = dict(zip(form, like.type.shape, strict=True))
    n, heads, *rest = grad.type.shape
    if sizes["h"] != heads:
        times = floordiv(heads, sizes["h"])
        apart = Reshape((n, sizes["h"], times, *rest))(grad)
        grad = ReduceSum((2,), keepdims=False)(apart)
    letters = "".join(filter(str.isalpha, form))
    grad = Transpose(tuple(order.index(letter) for letter in letters))(grad)
    for axis, letter in enumerate(form):
        if letter.isdigit():
            shape, rank = grad.type.shape, len(form)
            grad = Reshape((*shape[:axis], 1, *shape[axis:]))(grad)
            before: list[Dim] = [0] * (2 * rank)
            before[axis] = int(letter)
            before[rank + axis] = sizes[letter] - 1 - int(letter)
            grad = Pad(tuple(before))(grad)
    return grad
