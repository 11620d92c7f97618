"""Products over bytes like those over real numbers, and like those of whole numbers."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from edgewise.ir.graph import Inputs, Node, Value, constant
from edgewise.ir.op import Array
from edgewise.ops.binary import Add
from edgewise.ops.byte_products import ByteConv, ByteDepthwiseConv, ByteLinear
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.integer import ConvInteger, MatmulInteger
from edgewise.ops.matmul import Linear
from edgewise.ops.pack import PANEL, QUAD, PackPanels, PackTaps
from edgewise.ops.pad import Pad
from edgewise.ops.shape import Concat
from edgewise.passes.byte_weights import LEAST, MOST, ByteWeights, Weight
from edgewise.passes.known import Known, Whole
from edgewise.types import DType

ByteOp: TypeAlias = ByteLinear | ByteConv | ByteDepthwiseConv
BYTES = (DType.U8, DType.I8)


def byte_op(op: Any, x: Value, zero: int) -> ByteOp | None:
    """The op over bytes like a layer; it makes real numbers, as that does.

    ``None`` where the kernels have none.
    """
    ending: dict[str, Any] = {"x_zero": zero, "activation": op.activation}
    ending |= {"alpha": op.alpha, "beta": op.beta}
    if isinstance(op, Linear):
        return ByteLinear(op.columns, **ending)
    if isinstance(op, DepthwiseConv):
        channels = _channels(x)
        return ByteDepthwiseConv(channels, **ending, **_window(op))
    return _conv(op, x, op.channels, ending) if isinstance(op, Conv) else None


def _window(op: Any) -> dict[str, Any]:
    return {n: getattr(op, n) for n in ("kernel", "strides", "pads", "dilations")}


def _conv(op: Any, x: Value, channels: int, ending: dict[str, Any]) -> ByteConv | None:
    groups = op.groups
    if groups > 1:
        odd = _channels(x) // groups % QUAD or channels // groups % PANEL
        if odd:
            return None  # groups begin at whole fours and whole panels
    return ByteConv(channels, **ending, **_window(op), groups=groups)


def _channels(x: Value) -> int:
    size = x.type.shape[-1]
    return size if isinstance(size, int) else 0


def in_fours(x: Value, op: ByteOp) -> Value:
    """Bytes with channels in whole fours; weights are 0 behind them."""
    short = -_channels(x) % QUAD
    if isinstance(op, ByteDepthwiseConv) or not short:
        return x
    begins = (0,) * x.type.rank
    return Pad((*begins, *begins[:-1], short))(x)


class _Sums(NamedTuple):
    """A product of whole numbers by stored ones, and what is added to it."""

    product: Value
    bias: Array | None


def product_of_sums(
    node: Node, inputs: Inputs, known: Known, weights: ByteWeights
) -> Value | None:
    """``Requantize(ConvInteger(...) + bias)`` as one product that makes bytes."""
    total, ratio, zero = inputs
    kind, y_zero = Value(node).type.dtype, known.number(zero)
    found = None if total is None else _sums(total, known)
    if found is None or y_zero is None or kind not in BYTES:
        return None
    scale = _row(known.array(ratio), found.product)
    x, _, x_zero, _ = (*found.product.node.inputs, None, None)[:4]
    zero_of_x = 0.0 if x_zero is None else known.number(x_zero)
    if scale is None or x is None or zero_of_x is None:
        return None
    ending = {"x_zero": int(zero_of_x), "y_type": kind.value, "y_zero": int(y_zero)}
    made = byte_product(found.product, x, ending, known, weights)
    if made is None:
        return None
    op, weight, x = made
    shift = None
    if found.bias is not None:
        shift = constant((found.bias * scale.astype(np.float64)).astype(np.float32))
    result: Value = op(x, weight.value, constant(scale), shift, None, label=node.label)
    return result


def _sums(total: Value, known: Known) -> _Sums | None:
    products = (ConvInteger, MatmulInteger)
    if isinstance(total.op, products):
        return _Sums(total, None)
    if not isinstance(total.op, Add):
        return None
    for product, other in (total.node.inputs, total.node.inputs[::-1]):
        if product is not None and isinstance(product.op, products):
            bias = _row(known.array(other), product)
            return None if bias is None else _Sums(product, bias)
    return None


def _row(array: Array | None, product: Value) -> Array | None:
    """One number an output channel; ``None`` where rows or images have their own."""
    channels = product.type.shape[-1]
    if array is None or not isinstance(channels, int):
        return None
    if any(size != 1 for size in array.shape[:-1]) or array.size not in (1, channels):
        return None
    return np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (channels,)))


def byte_product(
    product: Value,
    x: Value,
    ending: dict[str, Any],
    known: Known,
    weights: ByteWeights,
) -> tuple[ByteOp, Weight, Value] | None:
    """The op over bytes that sums the same products, its weight and its image."""
    op, channels = product.op, _channels(product)
    made: ByteOp | None = None
    packing: PackPanels | PackTaps = PackPanels((0, 1))
    if isinstance(op, MatmulInteger):
        made = ByteLinear(channels, **ending)
    elif isinstance(op, ConvInteger) and len(op.kernel) == 2:
        packing = PackPanels((2, 3, 1, 0), op.groups)
        if 1 < op.groups == channels == _channels(x):
            packing = PackTaps()
            made = ByteDepthwiseConv(channels, **ending, **_window(op))
        else:
            made = _conv(op, x, channels, ending)
    whole = whole_operand(product, known)
    if made is None or whole is None or whole.whole.ndim not in (2, 4):
        return None
    if isinstance(op, MatmulInteger):
        x, whole = _split(x, whole)
    weight = weights.packed(whole, packing)
    if weight is None:
        return None
    return made.replace(weight_bits=weight.bits), weight, in_fours(x, made)


def _split(x: Value, whole: Whole) -> tuple[Value, Whole]:
    """Weights beyond signed bytes as sums of some, by the same image so many times.

    Unsigned ones around another zero point than 128 are such.
    """
    parts: list[Array] = []
    rest = whole.whole
    while rest.any() or not parts:
        parts.append(np.clip(rest, LEAST, MOST))
        rest = rest - parts[-1]
    if len(parts) == 1:
        return x, whole
    stacked = np.concatenate(parts)
    ones = np.ones(stacked.shape, np.float32)
    wide = Concat(x.type.rank - 1)(*[x] * len(parts))
    return wide, Whole(whole.key, stacked, ones)


def whole_operand(product: Value, known: Known) -> Whole | None:
    """The stored operand of a product, its zero points taken off."""
    _, w, _, w_zero = (*product.node.inputs, None, None)[:4]
    array, zero = known.array(w), known.array(w_zero)
    if w is None or array is None or (zero is None and w_zero is not None):
        return None
    whole = array.astype(np.int32)
    if zero is not None:
        by_output = zero.ndim == 1 and isinstance(product.op, ConvInteger)
        lined = zero.reshape(-1, 1, 1, 1) if by_output else zero
        whole = whole - lined.astype(np.int32)
    return Whole(w.node.label, whole, np.ones(whole.shape, np.float32))
