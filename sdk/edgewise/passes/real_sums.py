"""Sums of bytes that become real numbers: what quantising in the run leaves behind.

``MatMulInteger(x, w, zero)`` is cast and scaled, by a scale and a zero point that the
run finds.  A product of bytes takes both, as its scale and its shift:
``sum((x - zero) * w) * scale = sum(x * w) * scale - zero * sum(w) * scale``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.ir.graph import Inputs, Node, Value, constant
from edgewise.ops.binary import Mul
from edgewise.ops.byte_products import ByteConv, ByteDepthwiseConv, ByteLinear
from edgewise.ops.choose import Cast
from edgewise.ops.integer import ConvInteger, MatmulInteger
from edgewise.ops.shape import Reshape
from edgewise.passes.byte_weights import ByteWeights
from edgewise.passes.integer_products import byte_product, whole_operand
from edgewise.passes.known import Known
from edgewise.types import DType

F32 = DType.F32.value


def cast_sums(
    node: Node, inputs: Inputs, known: Known, weights: ByteWeights
) -> Value | None:
    """A cast of exact sums as a product that makes real numbers."""
    op, total = node.op, inputs[0]
    if not isinstance(op, Cast) or op.to != F32 or total is None:
        return None
    if not isinstance(total.op, MatmulInteger | ConvInteger):
        return None
    x, _, zero, _ = (*total.node.inputs, None, None)[:4]
    fixed = 0.0 if zero is None else known.number(zero)
    if x is None or (fixed is None and not _may_move(total, zero)):
        return None
    ending = {"x_zero": 0 if fixed is None else int(fixed)}
    made = byte_product(total, x, ending, known, weights)
    if made is None:
        return None
    product, weight, image = made
    shift = None
    if fixed is None and zero is not None:
        shift = Mul()(Cast(F32)(zero), constant(-_column_sums(total, known)))
    result: Value = product(
        image,
        weight.value,
        constant(weight.scale),
        shift,
        None,
        label=total.node.label,
    )
    return result


def _may_move(total: Value, zero: Value | None) -> bool:
    """Whether every window sees the same number of zeros: none lies in pads."""
    op = total.op
    padded = isinstance(op, ConvInteger) and any(op.pads)
    return not padded and zero is not None and not zero.type.rank


def _column_sums(total: Value, known: Known) -> Any:
    whole = whole_operand(total, known)
    assert whole is not None  # noqa: S101 - the product has it
    conv = isinstance(total.op, ConvInteger)
    axes = tuple(range(1, whole.whole.ndim)) if conv else (0,)
    return whole.whole.sum(axes).astype(np.float32)


def scaled_sums(product: Value, factor: Value) -> Value | None:
    """A product of real numbers times a factor, of all or of each channel."""
    op: Any = product.op
    if not isinstance(op, ByteLinear | ByteConv | ByteDepthwiseConv):
        return None
    x, w, scale, shift, residual = product.node.inputs
    if op.y_type != F32 or op.activation != "none" or residual is not None:
        return None
    sizes = factor.type.shape
    if any(size != 1 for size in sizes[:-1]) or sizes[-1:] not in (
        (),
        (1,),
        (op.channels,),
    ):
        return None
    row = factor if len(sizes) <= 1 else Reshape(sizes[-1:])(factor)
    scale = row if scale is None else Mul()(scale, row)
    shift = None if shift is None else Mul()(shift, row)
    result: Value = op(x, w, scale, shift, None, label=product.node.label)
    return result
