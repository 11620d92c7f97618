"""Comparisons, and functions of truth values and bits, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array
from edgewise.ops.binary import Binary
from edgewise.ops.checks import BOOLS, INTEGERS, NUMBERS, STRINGS
from edgewise.types import DType, TensorType


class _Logical(Binary):
    """A function of truth values."""

    commutative = True
    allowed = BOOLS
    tested = ("bool",)


class And(_Logical, name="and"):
    """Whether both are true."""

    function = np.logical_and


class Or(_Logical, name="or"):
    """Whether either is true."""

    function = np.logical_or


class Xor(_Logical, name="xor"):
    """Whether just one is true."""

    function = np.logical_xor


class _Compared(Binary):
    """A comparison: truth values of any one type."""

    tested = (*Binary.tested, "int8")

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        return super().infer(a, b).with_dtype(DType.BOOL)

    def reference(self, a: Array, b: Array) -> Array:
        return np.asarray(type(self).function(a, b), bool)


class Equal(_Compared, name="equal"):
    """Whether both are the same; NaN never is."""

    commutative = True
    function = np.equal
    allowed = NUMBERS | BOOLS | STRINGS
    tested = (*_Compared.tested, "bool")


class Less(_Compared, name="less"):
    """Whether ``a < b``."""

    function = np.less


class LessEqual(_Compared, name="less_equal"):
    """Whether ``a <= b``."""

    function = np.less_equal


class Greater(_Compared, name="greater"):
    """Whether ``a > b``."""

    function = np.greater


class GreaterEqual(_Compared, name="greater_equal"):
    """Whether ``a >= b``."""

    function = np.greater_equal


class _Bitwise(Binary):
    """A function of the bits of integers."""

    allowed = INTEGERS
    tested = ("int64", "int32", "uint8")


class BitwiseAnd(_Bitwise, name="bitwise_and"):
    """Bits that both have."""

    commutative = True
    function = np.bitwise_and


class BitwiseOr(_Bitwise, name="bitwise_or"):
    """Bits that either has."""

    commutative = True
    function = np.bitwise_or


class BitwiseXor(_Bitwise, name="bitwise_xor"):
    """Bits that just one has."""

    commutative = True
    function = np.bitwise_xor


class _Shift(_Bitwise):
    """A shift, for samples by 0 to 9 bits: one at least as wide as the type gives 0."""

    tested = ("uint8", "int64", "int32")

    @classmethod
    def pairs(cls) -> Iterator[tuple[Array, Array]]:
        for a, b in super().pairs():
            yield a, np.bitwise_and(b, b.dtype.type(7))
        yield np.asarray([255, 255, 1], "u1"), np.asarray([8, 9, 200], "u1")


class ShiftLeft(_Shift, name="shift_left"):
    """The bits of ``a`` moved up by ``b``."""

    function = np.left_shift


class ShiftRight(_Shift, name="shift_right"):
    """The bits of ``a`` moved down by ``b``; signed integers keep their sign."""

    function = np.right_shift
