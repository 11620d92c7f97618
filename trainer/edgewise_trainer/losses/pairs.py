"""Losses of embeddings ``[N, D]`` with classes ``[N]``: over all pairs of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value
from edgewise.ops import (
    Add,
    Arange,
    Div,
    Equal,
    MatMul,
    Maximum,
    Mul,
    Not,
    ReduceSum,
    Relu,
    Reshape,
    Sqrt,
    Sub,
    Transpose,
    Where,
)
from edgewise.types import DType, TensorType
from edgewise_trainer.losses.loss import total
from edgewise_trainer.terms import as_float, scalar, zeros
from edgewise_trainer.wanted import want_number, want_positive

EPS = 1e-12  # of squared lengths, as PyTorch has it


@dataclass(frozen=True, slots=True)
class CosineEmbedding:
    """``1 - cos`` of embeddings of one class, ``max(0, cos - margin)`` of others.

    Averaged over the pairs of a batch (``CosineEmbeddingLoss`` of them).

    Attributes:
        margin: The cosine up to which other classes may be alike.
    """

    margin: float = 0.0

    def __post_init__(self) -> None:
        want = "a cosine, from -1 to 1"
        want_number("margin", self.margin, want, lambda x: -1.0 <= x <= 1.0)

    def target(self, output: TensorType) -> TensorType:
        """A class for each embedding."""
        return _classes(output)

    def weight_of(self, output: Value, target: Value) -> None:
        """None: pairs lie across the parts of a batch."""
        del output, target

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        alike = unit(output)
        cosine = MatMul()(alike, Transpose((1, 0))(alike))
        near = Sub()(scalar(1.0, cosine), cosine)
        far = Relu()(Sub()(cosine, scalar(self.margin, cosine)))
        return _over_pairs(near, far, target)


@dataclass(frozen=True, slots=True)
class Contrastive:
    """``d^2`` of embeddings of one class, ``max(0, margin - d)^2`` of others.

    ``d`` is their distance.  Averaged over the pairs of a batch (Hadsell et al., 2006).

    Attributes:
        margin: The distance from which on other classes are far enough.
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        want_positive("margin", self.margin)

    def target(self, output: TensorType) -> TensorType:
        """A class for each embedding."""
        return _classes(output)

    def weight_of(self, output: Value, target: Value) -> None:
        """None: pairs lie across the parts of a batch."""
        del output, target

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        count, size = output.type.shape
        rows = Reshape((count, 1, size))(output)
        gap = Sub()(rows, Reshape((1, count, size))(output))
        near = ReduceSum((2,), keepdims=False)(Mul()(gap, gap))
        # A root has no slope at 0, where an embedding meets itself.
        distance = Sqrt()(Maximum()(near, scalar(EPS, near)))
        short = Relu()(Sub()(scalar(self.margin, near), distance))
        return _over_pairs(near, Mul()(short, short), target)


def unit(vectors: Value) -> Value:
    """Vectors along the last axis, of length 1."""
    axis = vectors.type.rank - 1
    square = ReduceSum((axis,), keepdims=True)(Mul()(vectors, vectors))
    return Div()(vectors, Sqrt()(Add()(square, scalar(EPS, square))))


def _classes(output: TensorType) -> TensorType:
    if output.rank != 2:
        raise ConfigError(f"got an output {output}; want embeddings [N, D]")
    return TensorType(DType.I64, output.shape[:1])


def _over_pairs(near: Value, far: Value, target: Value) -> Value:
    """The mean of ``near`` where classes are equal, and of ``far`` elsewhere."""
    (count,) = target.type.shape
    column, row = (count, 1), (1, count)
    same = Equal()(Reshape(column)(target), Reshape(row)(target))
    places = Arange(0, count)()
    own = Equal()(Reshape(column)(places), Reshape(row)(places))
    each = Where()(same, near, far)
    others = as_float(Not()(own), each)
    each = Where()(own, zeros(each), each)
    return Div()(total(each), Maximum()(total(others), scalar(1.0, each)))
