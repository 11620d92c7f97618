"""Convolutions over bytes: as over reals, with channels in words of four bytes."""

from __future__ import annotations

from edgewise.kernels.native.byte_products import KINDS
from edgewise.kernels.native.conv import make_conv
from edgewise.kernels.native.product import make_multiply
from edgewise.kernels.native.requantize import REQUANTIZED

EXPORTS = {
    f"conv_{name}": make_conv(make_multiply(kind, REQUANTIZED), kind.rows)
    for name, kind in KINDS.items()
}
