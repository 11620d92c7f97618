"""Products take over what is done to their results: one pass over memory."""

from __future__ import annotations

from typing import Any, cast

from edgewise.ir.graph import Constant, Value, Variable
from edgewise.ir.op import Op
from edgewise.ir.pattern import a
from edgewise.ops.activation import (
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mish,
    Relu,
    Sigmoid,
    Silu,
    Softplus,
    Tanh,
)
from edgewise.ops.binary import Add, Mul
from edgewise.ops.byte_products import ByteConv, ByteDepthwiseConv, ByteLinear
from edgewise.ops.choose import Clip
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.matmul import Linear, MatMul
from edgewise.ops.norm import BatchNorm, BatchNormFold, ScaleShift
from edgewise.ops.pack import PackPanels
from edgewise.ops.quantize import Dequantize, Quantize
from edgewise.ops.shape import Reshape, Transpose
from edgewise.passes.rewrite import rule

BYTE_PRODUCTS = (ByteLinear, ByteConv, ByteDepthwiseConv)
PRODUCTS = (Linear, Conv, DepthwiseConv, *BYTE_PRODUCTS)
ACTIVATIONS = (
    Clip,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mish,
    Relu,
    Sigmoid,
    Silu,
    Softplus,
    Tanh,
)


class _Product:
    """A product op with its inputs told apart."""

    def __init__(self, value: Value) -> None:
        self.op = cast("Any", value.op)
        self.x, self.w, *rest = value.node.inputs
        self.scale, self.shift, self.residual = (*rest, None, None, None)[:3]
        real = getattr(self.op, "y_type", "f32") == "f32"
        self.linear = real and self.op.activation == "none"
        self.channels = value.type.shape[-1]

    def value(self, **changes: Any) -> Value:
        """The product with some inputs or attributes changed."""
        names = ("scale", "shift", "residual")
        rest = [changes.pop(name, getattr(self, name)) for name in names]
        op = self.op.replace(**changes) if changes else self.op
        result: Value = op(self.x, self.w, *rest)
        return result


def _weight(value: Value) -> bool:
    """Whether packing it can be done before a run."""
    source: Value | None = value
    while source is not None and isinstance(source.op, Dequantize | Quantize):
        source = source.node.inputs[0]
    if source is None or not isinstance(source.op, Variable | Constant):
        return False
    return value.type.rank == 2


@rule(a(MatMul, "x", "w"))
def linear(x: Value, w: Value) -> Value | None:
    """A product with a stored matrix."""
    if not _weight(w) or not w.type.is_static or not w.type.dtype.is_float:
        return None
    return Linear(w.type.dims[1])(x, PackPanels((0, 1))(w), None, None, None)


@rule(a(MatMul, "x", a(Transpose, "w", name="turned")))
def linear_transposed(x: Value, w: Value, turned: Value) -> Value | None:
    """A product with a stored matrix that is written by columns."""
    if not _weight(w) or not w.type.is_static or not w.type.dtype.is_float:
        return None
    del turned
    return Linear(w.type.dims[0])(x, PackPanels((1, 0))(w), None, None, None)


@rule(a(ACTIVATIONS, a(PRODUCTS, name="product"), name="root"))
def activation(product: Value, root: Value) -> Value | None:
    """An activation at the end of a product."""
    parts, op = _Product(product), root.op
    if not parts.linear:
        return None
    name, alpha, beta = op.name, 0.0, 0.0
    if isinstance(op, Gelu):
        name = "gelu_tanh" if op.approximate else "gelu"
    elif isinstance(op, Clip):
        alpha, beta = op.low, op.high
    elif isinstance(op, HardSigmoid):
        alpha, beta = op.alpha, op.beta
    elif isinstance(op, LeakyRelu):
        alpha = op.slope
    elif isinstance(op, Elu):
        alpha = op.alpha
    return parts.value(activation=name, alpha=alpha, beta=beta)


@rule(a(Add, a(PRODUCTS, name="product"), "other", name="root"))
def added(product: Value, other: Value, root: Value) -> Value | None:
    """A bias or a residual that is added to a product."""
    parts = _Product(product)
    if not parts.linear or parts.residual is not None or product.type != root.type:
        return None
    row = _row(other, parts)
    if row is not None:
        return parts.value(shift=_combined(Add(), parts.shift, row))
    return parts.value(residual=other) if other.type == product.type else None


@rule(a(Mul, a(PRODUCTS, name="product"), "other", name="root"))
def scaled(product: Value, other: Value, root: Value) -> Value | None:
    """A factor per channel behind a product."""
    parts = _Product(product)
    if not parts.linear or parts.residual is not None or product.type != root.type:
        return None
    row = _row(other, parts)
    if row is None:
        return None
    shift = None if parts.shift is None else Mul()(parts.shift, row)
    return parts.value(scale=_combined(Mul(), parts.scale, row), shift=shift)


def _combined(op: Op, a: Value | None, b: Value) -> Value:
    return b if a is None else op(a, b)


@rule(
    a(
        (Add, Mul),
        a(ScaleShift, "x", "scale", "shift", name="inner"),
        "other",
        name="root",
    )
)
def channelwise(
    x: Value,
    scale: Value | None,
    shift: Value | None,
    inner: Value,
    other: Value,
    root: Value,
) -> Value | None:
    """A factor or a term per channel behind another."""
    op, row = inner.op, _along(other, inner)
    if row is None or not isinstance(op, ScaleShift):
        return None
    if isinstance(root.op, Add):
        return op(x, scale, _combined(Add(), shift, row))
    shift = None if shift is None else Mul()(shift, row)
    return op(x, _combined(Mul(), scale, row), shift)


def _along(value: Value, scaled: Value) -> Value | None:
    """``value`` as one number for each slice of a scale and shift."""
    op, rank = scaled.op, scaled.type.rank
    if not isinstance(op, ScaleShift) or value.type.rank > rank:
        return None
    shape = (*(1,) * (rank - value.type.rank), *value.type.shape)
    size = scaled.type.shape[op.axis]
    others = (*shape[: op.axis], *shape[op.axis + 1 :])
    if shape[op.axis] != size or any(n != 1 for n in others) or not _stored(value):
        return None
    return value if value.type.rank == 1 else Reshape((size,))(value)


def _row(value: Value, parts: _Product) -> Value | None:
    """``value`` as one number a channel, where it is stored and is that."""
    shape = value.type.shape
    if not shape or shape[-1] != parts.channels or any(n != 1 for n in shape[:-1]):
        return None
    if not _stored(value):
        return None
    return value if len(shape) == 1 else Reshape(shape[-1:])(value)


def _stored(value: Value) -> bool:
    """Whether it is a variable or a constant, perhaps as bytes or in another shape."""
    while isinstance(value.op, Reshape | Dequantize) and value.node.inputs[0]:
        value = value.node.inputs[0]
    return isinstance(value.op, Variable | Constant)


@rule(
    a(
        BatchNorm,
        a(PRODUCTS, name="product"),
        "gamma",
        "beta",
        "mean",
        "var",
        name="norm",
    )
)
def normalised(
    product: Value, gamma: Value, beta: Value, mean: Value, var: Value, norm: Value
) -> Value | None:
    """A batch norm behind a product becomes its scale and shift."""
    parts, op = _Product(product), norm.op
    if not isinstance(op, BatchNorm) or op.axis != product.type.rank - 1:
        return None
    if not parts.linear or parts.residual is not None or parts.scale is not None:
        return None
    fold = BatchNormFold(op.eps)
    scale, shift = fold.node(gamma, beta, mean, var, parts.shift)
    return parts.value(scale=scale, shift=shift)


@rule(a(BatchNorm, "x", "gamma", "beta", "mean", "var", name="norm"))
def batch_norm(
    x: Value, gamma: Value, beta: Value, mean: Value, var: Value, norm: Value
) -> Value | None:
    """A batch norm on its own is a scale and a shift."""
    op = norm.op
    if not isinstance(op, BatchNorm):
        return None
    scale, shift = BatchNormFold(op.eps).node(gamma, beta, mean, var, None)
    return ScaleShift(op.axis)(x, scale, shift)


@rule(a(ScaleShift, a(PRODUCTS, name="product"), "scale", "shift", name="root"))
def scale_shift(
    product: Value, scale: Value | None, shift: Value | None, root: Value
) -> Value | None:
    """A scale and a shift behind a product that has neither."""
    parts, op = _Product(product), root.op
    if not isinstance(op, ScaleShift) or op.axis != product.type.rank - 1:
        return None
    if not parts.linear or parts.residual is not None:
        return None
    if parts.scale is not None or parts.shift is not None:
        return None
    return parts.value(scale=scale, shift=shift)


RULES = (
    linear,
    linear_transposed,
    normalised,
    scale_shift,
    scaled,
    added,
    activation,
)
# After those, so that a norm behind a product is never taken for one on its own.
LATE_RULES = (batch_norm, channelwise)
