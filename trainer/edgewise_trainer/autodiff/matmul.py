"""Gradients of products of matrices."""

from __future__ import annotations

from edgewise.ir.graph import Value
from edgewise.ops import (
    Linear,
    LinearInputGrad,
    LinearWeightGrad,
    MatMul,
    Transpose,
)
from edgewise_trainer.autodiff.epilogue import sums_grad
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import sum_to


@gradient(MatMul)
def matmul(at: Adjoint) -> Gradients:
    """``dy b'`` and ``a' dy``, summed over the axes that were broadcast."""
    a, b = at.input(0), at.input(1)
    left = sum_to(MatMul()(at.dy, turned(b)), a) if at.wanted[0] else None
    return left, sum_to(MatMul()(turned(a), at.dy), b) if at.wanted[1] else None


@gradient(Linear)
def linear(at: Adjoint) -> Gradients:
    """The same, with the weight as panels."""
    grad, more = sums_grad(at)
    rows = LinearInputGrad(at.x.type.shape[-1])(grad, at.input(1))
    return rows, LinearWeightGrad()(at.x, grad), *more


def turned(x: Value) -> Value:
    """With the last two axes exchanged."""
    rank = x.type.rank
    return Transpose((*range(rank - 2), rank - 1, rank - 2))(x)
