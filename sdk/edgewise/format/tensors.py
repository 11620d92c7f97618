"""The tensor table: constants and variables, as views of the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.errors import EdgewiseError
from edgewise.format import arrays
from edgewise.format._generated import schema
from edgewise.format.attributes import expression
from edgewise.format.tables import DamageError
from edgewise.format.values import Sizes, want_unique
from edgewise.ir.graph import Constant, Node, Value, Variable
from edgewise.ir.module import Role, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.types import DType, QuantParams, TensorType

_DTYPES = tuple(DType[name] for name in schema.DTYPES)
_CONSTANT = schema.ROLES.index("CONSTANT")
_WITHOUT_DATA = {Role.DERIVED, Role.STATE}


class _Leaf(NamedTuple):
    """What every function makes its own node of."""

    op: Constant | Variable
    type: TensorType
    label: str


class Tensors:
    """The tensors of a file.

    Attributes:
        variables: Those that are not constants, by name.
        sizes: What checks their types.
    """

    def __init__(
        self, model: schema.Model, data: memoryview, ops: tuple[Op, ...]
    ) -> None:
        self.variables: dict[str, VariableInfo] = {}
        self.sizes = Sizes()
        self._model, self._data, self._ops = model, data, ops
        self._leaves: list[_Leaf] = []
        # Each use copies them: honest files stay far below a number for every byte.
        self._unspent = (1 << 20) + 4 * len(data)
        self._used = {artifact.segment for artifact in model.artifacts}
        want_unique("variable", (t.key for t in model.tensors if t.role != _CONSTANT))
        for table in model.tensors:
            try:
                self._leaves.append(self._leaf(table))
            except DamageError as damage:
                where = f"tensor {len(self._leaves)} ({table.key!r})"
                raise DamageError(f"{where}: {damage}") from None

    def leaf(self, index: int) -> Value:
        """A fresh value that reads tensor ``index``."""
        if index >= len(self._leaves):
            raise DamageError(f"there is no tensor {index}")
        leaf = self._leaves[index]
        return Value(Node(leaf.op, (), (leaf.type,), leaf.label))

    def variable(self, index: int) -> VariableInfo:
        """The variable that is tensor ``index``."""
        op = self.leaf(index).op
        if not isinstance(op, Variable):
            raise DamageError(f"tensor {index} is a constant, which nothing may assign")
        return self.variables[op.key]

    def type(self, table: schema.Type) -> TensorType:
        """The type that a table describes."""
        if table.dtype >= len(_DTYPES):
            raise DamageError(f"an element type {table.dtype} is unknown")
        try:
            shape = tuple(
                size if size >= 0 else expression(table.symbols[-1 - size])
                for size in table.shape
            )
        except IndexError:
            raise DamageError(f"sizes {list(table.shape)} name no symbol") from None
        except ValueError as error:
            raise DamageError(str(error)) from None
        plain = TensorType(_DTYPES[table.dtype], shape)
        self.sizes.want_sane(plain)
        if table.quant is None:
            return plain
        return TensorType(plain.dtype, shape, self._quant(table.quant, plain))

    def _leaf(self, table: schema.Tensor) -> _Leaf:
        type_ = self._static(table.type)
        array = self._array(table, type_)
        if table.role == _CONSTANT:
            if array is None or table.logical is not None or table.packing != -1:
                raise DamageError("a constant lacks its data or is packed")
            return _Leaf(Constant(array), type_, table.key)
        if table.role >= len(schema.ROLES):
            raise DamageError(f"a role {table.role} is unknown")
        role = Role[schema.ROLES[table.role]]
        if array is None and role not in _WITHOUT_DATA:
            raise DamageError(f"a {role.value} has no data")
        if array is not None and role is Role.DERIVED:
            raise DamageError("a derived variable has data")
        logical = type_ if table.logical is None else self._static(table.logical)
        packing = self._packing(table.packing, logical, type_)
        self.variables[table.key] = VariableInfo(
            table.key, type_, role, array, logical, packing
        )
        return _Leaf(Variable(table.key), type_, table.key)

    def _static(self, table: schema.Type) -> TensorType:
        type_ = self.type(table)
        if not type_.is_static:
            raise DamageError(f"a stored tensor has the type {type_}")
        return type_

    def _packing(
        self, index: int, logical: TensorType, stored: TensorType
    ) -> Op | None:
        """The pack op; it must make of the logical type what is stored."""
        if index == -1:
            if logical != stored:
                raise DamageError(f"{stored} stands for {logical} without a packing")
            return None
        if not 0 <= index < len(self._ops):
            raise DamageError(f"there is no op {index} to pack it")
        packing = self._ops[index]
        try:
            packed = packing.infer_all((logical,))
        except Exception as error:  # ops trust what they are given
            raise DamageError(f"its packing fails: {error}") from error
        if len(packed) != 1 or packed[0].shape != stored.shape:
            raise DamageError(f"{packing.name} of {logical} is not {stored}")
        return packing

    def _array(self, table: schema.Tensor, type_: TensorType) -> Array | None:
        data = self._bytes(table)
        if data is None:
            return None
        wanted = arrays.stored_bytes(type_)
        if wanted is not None and len(data) != wanted:
            raise DamageError(f"{type_} has {len(data)} bytes; want {wanted}")
        try:
            return arrays.decode(data, type_)
        except ImportError as error:
            raise DamageError(
                f"{type_} needs {error.name}: pip install edgewise[convert]"
            ) from error

    def _bytes(self, table: schema.Tensor) -> bytes | memoryview | None:
        if table.segment == -1:
            return table.data
        if table.data is not None:
            raise DamageError("its data are given twice")
        if not 0 <= table.segment < len(self._model.segments):
            raise DamageError(f"there is no segment {table.segment}")
        # One reader each: what is copied on reading stays within the file's size.
        if table.segment in self._used:
            raise DamageError(f"segment {table.segment} is used twice")
        self._used.add(table.segment)
        offset, length, _ = self._model.segments[table.segment]
        return self._data[offset : offset + length]

    def _quant(self, table: schema.Quant, type_: TensorType) -> QuantParams:
        scales = self._numbers(table.scales, "f")
        zeros = np.zeros(scales.size, np.int8)
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
        except EdgewiseError as error:
            raise DamageError(str(error)) from None

    def _numbers(self, index: int, kinds: str) -> Array:
        """The array of an earlier constant, which many types may share."""
        if not 0 <= index < len(self._leaves):
            raise DamageError(
                f"scales or zero points in tensor {index}, which is later"
            )
        op = self._leaves[index].op
        if not isinstance(op, Constant) or op.array.dtype.kind not in kinds:
            raise DamageError(f"tensor {index} holds no scales or zero points")
        self._unspent -= op.array.size
        if self._unspent < 0:
            raise DamageError("scales are used by too many tensors")
        return np.ravel(op.array)
