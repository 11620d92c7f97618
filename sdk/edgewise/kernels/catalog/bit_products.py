"""Which native functions serve products of signs."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import given
from edgewise.kernels.catalog.matmul import ROWS_APART, by_rows
from edgewise.kernels.catalog.windows import by_windows, is_product

TASK_NUMBERS = 65_536  # whose signs one task takes


@kernel("sign_bits", "sign_bits")
def sign_bits(call: Call) -> Binding:
    """Rows, some a task."""
    *rows, channels = given(call, 0).dims
    count, words = math.prod(rows), call.outputs[0].dims[-1]
    if not count * words:
        return Binding(())
    block = max(TASK_NUMBERS // channels, 1)
    arguments = (In(0), Out(0), count, channels, words, block)
    return Binding((Launch("sign_bits", arguments, blocks(count, block)),))


@kernel("bit_linear", "product_bits", strided=ROWS_APART)
def bit_linear(call: Call) -> Binding | None:
    """As a linear layer; a word stands for a number."""
    return by_rows(call, "product_bits")


@kernel("bit_conv", "conv_bits", "product_bits", strided=ROWS_APART)
def bit_conv(call: Call) -> Binding | None:
    """As a convolution."""
    if is_product(call):
        return by_rows(call, "product_bits")
    return by_windows(call, "conv_bits")
