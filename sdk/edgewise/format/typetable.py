"""The type table: made when first asked for, for scales are tensors of the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from edgewise.errors import DTypeError
from edgewise.format._generated import schema
from edgewise.format.attributes import expression
from edgewise.format.tables import DamageError
from edgewise.format.values import Sizes
from edgewise.ir.op import Array
from edgewise.types import (
    DType,
    OptionalType,
    QuantParams,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)

_FORMS = schema.FORMS
_DTYPES = tuple(DType[name] for name in schema.DTYPES)
_FEW_SCALES = 1 << 20


class Types:
    """Types by number.

    Attributes:
        sizes: What checks them, and those that are inferred.
    """

    def __init__(
        self,
        tables: Sequence[schema.Type],
        constant: Callable[[int], Array],
        scales: int,
    ) -> None:
        self.sizes = Sizes()
        self._tables, self._constant = tables, constant
        self._made: dict[int, ValueType] = {}
        # Scales are copied for every type; an honest file has fewer than bytes.
        self._unspent = scales + _FEW_SCALES

    def __getitem__(self, number: int) -> ValueType:
        made = self._made.get(number)
        if made is None:
            if not 0 <= number < len(self._tables):
                raise DamageError(f"there is no type {number}")
            made = self._made[number] = self._form(self._tables[number])
        return made

    def static(self, number: int) -> TensorType:
        """A type that a stored tensor may have."""
        made = self[number]
        if self._tables[number].symbols or not isinstance(made, TensorType):
            raise DamageError(f"a stored tensor has the type {made}")
        return made

    def _form(self, table: schema.Type) -> ValueType:
        if table.form == _FORMS.index("TENSOR"):
            if table.any_shape:
                raise DamageError("a tensor of any shape stands alone")
            return self._type(table)
        if table.form >= len(_FORMS) or table.quant is not None:
            raise DamageError(f"a form {table.form} of type is unknown")
        held = self._type(table)
        element = Unranked(held.dtype) if table.any_shape else held
        if _FORMS[table.form] == "OPTIONAL":
            return OptionalType(element)
        made = SequenceType(element)
        return made if _FORMS[table.form] == "SEQUENCE" else OptionalType(made)

    def _type(self, table: schema.Type) -> TensorType:
        if table.dtype >= len(_DTYPES):
            raise DamageError(f"an element type {table.dtype} is unknown")
        symbols = table.symbols
        if any(size < -len(symbols) for size in table.shape):
            raise DamageError(f"sizes {list(table.shape)} name no symbol")
        try:
            shape = tuple(
                size if size >= 0 else expression(symbols[-1 - size])
                for size in table.shape
            )
        except ValueError as error:
            raise DamageError(str(error)) from None
        plain = TensorType(_DTYPES[table.dtype], shape)
        self.sizes.want_sane(plain)
        if table.quant is None:
            return plain
        return TensorType(plain.dtype, shape, self._quant(table.quant, plain))

    def _quant(self, table: schema.Quant, type_: TensorType) -> QuantParams:
        scales = self._numbers(table.scales, "f")
        zeros: Array = np.zeros(scales.size, np.int8)
        if table.zero_points != -1:
            zeros = self._numbers(table.zero_points, "iu")
        axis, block = table.axis, table.block
        if not -1 <= axis < type_.rank or (block and axis == -1):
            raise DamageError(f"scales run along axis {axis} of {type_}")
        if not block and scales.size != (1 if axis == -1 else type_.shape[axis]):
            raise DamageError(f"{scales.size} scales do not fit axis {axis} of {type_}")
        try:
            return QuantParams(
                tuple(scales.tolist()), tuple(zeros.tolist()), axis, block
            )
        except DTypeError as error:
            raise DamageError(str(error)) from None

    def _numbers(self, number: int, kinds: str) -> Array:
        array = self._constant(number)
        if array.dtype.kind not in kinds:
            raise DamageError(f"tensor {number} holds no scales or zero points")
        self._unspent -= array.size
        if self._unspent < 0:
            raise DamageError("scales are used by too many types")
        return array.reshape(-1)
