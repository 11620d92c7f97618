"""The tensor table: constants and variables, as views of the data."""

from __future__ import annotations

from edgewise.format import arrays, coding
from edgewise.format._generated import schema
from edgewise.format.arrays import Buffer
from edgewise.format.tables import DamageError
from edgewise.format.typetable import Types
from edgewise.format.values import want_unique
from edgewise.ir.graph import Constant, Node, Value, Variable
from edgewise.ir.module import Coding, Role, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.named import NamedTuple
from edgewise.types import TensorType, may_agree

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
        types: The types of the file.
    """

    def __init__(
        self, model: schema.Model, data: memoryview, ops: tuple[Op, ...]
    ) -> None:
        self.variables: dict[str, VariableInfo] = {}
        self.types = Types(model.types, self._numbers, 4 * len(data))
        self._segments, self._data, self._ops = model.segments, data, ops
        self._leaves: list[_Leaf] = []
        self._used = {artifact.segment for artifact in model.artifacts}
        if any(number >= len(model.segments) for number in self._used):
            raise DamageError("an artifact lies in a segment that is not there")
        want_unique("variable", (t.key for t in model.tensors if t.role != _CONSTANT))
        for table in model.tensors:
            try:
                self._leaves.append(self._leaf(table))
            except DamageError as damage:
                where = f"tensor {len(self._leaves)} ({table.key!r})"
                raise DamageError(f"{where}: {damage}") from None

    def leaf(self, number: int) -> Value:
        """A fresh value that reads a tensor."""
        if number >= len(self._leaves):
            raise DamageError(f"there is no tensor {number}")
        leaf = self._leaves[number]
        return Value(Node(leaf.op, (), (leaf.type,), leaf.label))

    def variable(self, number: int) -> VariableInfo:
        """The variable that is tensor ``number``."""
        op = self.leaf(number).op
        if not isinstance(op, Variable):
            raise DamageError(f"tensor {number} is a constant: nothing may assign it")
        return self.variables[op.key]

    def _leaf(self, table: schema.Tensor) -> _Leaf:
        type_ = self.types.static(table.type)
        data = self._bytes(table)
        if table.role == _CONSTANT:
            if data is None or table.logical != -1 or table.packing != -1:
                raise DamageError("a constant lacks its data or is packed")
            if table.coding or table.coded:
                raise DamageError("a constant is coded")
            return _Leaf(Constant(arrays.decode(data, type_)), type_, table.key)
        if table.role >= len(schema.ROLES):
            raise DamageError(f"a role {table.role} is unknown")
        role = Role[schema.ROLES[table.role]]
        if data is None and role not in _WITHOUT_DATA:
            raise DamageError(f"a {role.value} has no data")
        if data is not None and role is Role.DERIVED:
            raise DamageError("a derived variable has data")
        logical = type_ if table.logical == -1 else self.types.static(table.logical)
        packing = self._packing(table.packing, logical, type_)
        how, array = _coding(table), None
        if table.coded and data is not None:
            array = coding.decode(data, how, type_, logical, packing)
        elif data is not None:
            array = arrays.decode(data, type_)
        self.variables[table.key] = VariableInfo(
            table.key, type_, role, array, logical, packing, how
        )
        return _Leaf(Variable(table.key), type_, table.key)

    def _packing(
        self, number: int, logical: TensorType, stored: TensorType
    ) -> Op | None:
        """The pack op; it must make of the logical type what is stored."""
        if number == -1:
            if logical != stored:
                raise DamageError(f"{stored} stands for {logical} without a packing")
            return None
        if not 0 <= number < len(self._ops):
            raise DamageError(f"there is no op {number} to pack it")
        packing = self._ops[number]
        try:
            packed = packing.infer_all((logical,))
        except Exception as error:  # ops trust what they are given
            raise DamageError(f"its packing fails: {error}") from error
        if len(packed) != 1 or not may_agree(packed[0], stored):
            raise DamageError(f"{packing.name} of {logical} is not {stored}")
        return packing

    def _bytes(self, table: schema.Tensor) -> Buffer | None:
        if table.segment == -1:
            return table.data
        if table.data is not None:
            raise DamageError("its data are given twice")
        if not 0 <= table.segment < len(self._segments):
            raise DamageError(f"there is no segment {table.segment}")
        # One reader each: what is copied on reading stays within the file's size.
        if table.segment in self._used:
            raise DamageError(f"segment {table.segment} is used twice")
        self._used.add(table.segment)
        offset, length, _ = self._segments[table.segment]
        return self._data[offset : offset + length]

    def _numbers(self, number: int) -> Array:
        """The array of a constant that is already known: scales or zero points."""
        if not 0 <= number < len(self._leaves):
            raise DamageError(f"tensor {number}, with scales, comes too late")
        op = self._leaves[number].op
        if not isinstance(op, Constant):
            raise DamageError(f"tensor {number} is no constant; want scales")
        return op.array


def _coding(table: schema.Tensor) -> Coding:
    if table.coding >= len(schema.CODINGS):
        raise DamageError(f"a coding {table.coding} is unknown")
    return Coding[schema.CODINGS[table.coding]]
