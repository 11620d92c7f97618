"""Convolutions over few channels of bytes: windows are gathered into rows first."""

from __future__ import annotations

from edgewise.kernels.native.dot import PAIRED
from edgewise.kernels.native.product import make_multiply
from edgewise.kernels.native.requantize import REQUANTIZED
from edgewise.kernels.native.stem import make_stem

_multiply = make_multiply(PAIRED, REQUANTIZED)

EXPORTS = {"stem_u8_paired": make_stem(_multiply, PAIRED.rows)}
