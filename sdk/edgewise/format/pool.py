"""What the functions of a file share: ops, tensors, segments, each stored once."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from edgewise.dims import Expr
from edgewise.errors import InternalError
from edgewise.format import arrays, attributes, coding
from edgewise.format._generated import schema
from edgewise.format.arrays import Buffer
from edgewise.format.container import Segment, aligned
from edgewise.ir.graph import Constant, Node, Value, Variable
from edgewise.ir.module import Coding, Module, Role, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.types import (
    DType,
    QuantParams,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)

# What is no larger lies in the header: lines of 64 bytes would be half empty.
INLINE = 128

_DTYPES = {DType[name]: code for code, name in enumerate(schema.DTYPES)}
_CODINGS = {name: code for code, name in enumerate(schema.CODINGS)}
_FORMS = {name: code for code, name in enumerate(schema.FORMS)}
_ROLES = {name: code for code, name in enumerate(schema.ROLES)}
_WITHOUT_DATA = {Role.DERIVED, Role.STATE}


class Pool:
    """Numbers what it is given; equal things get the same number.

    Attributes:
        ops: Tables of the ops, by number.
        types: Tables of the types, by number.
        tensors: Tables of the tensors; variables in the order of the module.
        segments: Where each payload will lie.
        payloads: The bytes of each segment.
    """

    def __init__(self, module: Module) -> None:
        self.ops: list[schema.Op] = []
        self.types: list[schema.Type] = []
        self.tensors: list[schema.Tensor] = []
        self.segments: list[Segment] = []
        self.payloads: list[Buffer] = []
        self._op_numbers: dict[Op, int] = {}
        self._type_numbers: dict[ValueType, int] = {}
        self._constants: dict[tuple[Constant, TensorType], int] = {}
        self._variables: dict[str, int] = {}
        self._infos = module.variables
        for key, info in module.variables.items():
            if key != info.key:
                raise InternalError(f"variable {info.key!r} is filed under {key!r}")
            self._variables[key] = self._variable(info)

    def op(self, op: Op) -> int:
        """The number of an op."""
        number = self._op_numbers.get(op)
        if number is None:
            number = self._op_numbers[op] = len(self.ops)
            self.ops.append(attributes.encode(op))
        return number

    def leaf(self, node: Node) -> int:
        """The number of the tensor that a leaf reads."""
        type_ = Value(node).type
        if isinstance(node.op, Constant):
            return self._constant(node.op, type_, node.label)
        if not isinstance(node.op, Variable) or node.op.key not in self._variables:
            raise InternalError(f"{node} is no tensor of the module")
        if type_ != self._infos[node.op.key].type:
            raise InternalError(f"{node} is {type_}, not as the module has it")
        return self._variables[node.op.key]

    def variable(self, key: str) -> int:
        """The number of a variable."""
        if key not in self._variables:
            raise InternalError(f"the module has no variable {key!r}")
        return self._variables[key]

    def type(self, type_: ValueType) -> int:
        """The number of a type."""
        number = self._type_numbers.get(type_)
        if number is None:
            table = _form(type_, self._type)  # its scales may take numbers of their own
            number = self._type_numbers[type_] = len(self.types)
            self.types.append(table)
        return number

    def _type(self, type_: TensorType | Unranked) -> schema.Type:
        if isinstance(type_, Unranked):
            return schema.Type(dtype=_DTYPES[type_.dtype], any_shape=True)
        symbols = [str(dim) for dim in type_.shape if isinstance(dim, Expr)]
        shape, seen = [], 0
        for dim in type_.shape:
            seen += isinstance(dim, Expr)
            shape.append(-seen if isinstance(dim, Expr) else dim)
        quant = None if type_.quant is None else self._quant(type_.quant)
        return schema.Type(
            dtype=_DTYPES[type_.dtype],
            shape=tuple(shape),
            symbols=tuple(symbols),
            quant=quant,
        )

    def _variable(self, info: VariableInfo) -> int:
        if info.initial is None and info.role not in _WITHOUT_DATA:
            raise InternalError(f"{info.role.value} {info.key!r} has no bytes to store")
        if info.initial is not None and info.role is Role.DERIVED:
            raise InternalError(f"derived variable {info.key!r} would be stored")
        logical = -1 if info.logical == info.type else self.type(info.logical)
        coded = None if info.coding is Coding.PLAIN else coding.encode(info)
        table = schema.Tensor(
            key=info.key,
            role=_ROLES[info.role.name],
            type=self.type(info.type),
            logical=logical,
            packing=-1 if info.packing is None else self.op(info.packing),
            coding=_CODINGS[info.coding.name],
            coded=coded is not None,
        )
        if coded is not None:
            return self._place(table, coded)
        return self._store(table, info.initial, info.type)

    def _constant(self, op: Constant, type_: TensorType, label: str) -> int:
        number = self._constants.get((op, type_))
        if number is None:
            table = schema.Tensor(key=label, type=self.type(type_))
            number = self._store(table, op.array, type_)
            self._constants[op, type_] = number
        return number

    def _store(
        self, table: schema.Tensor, array: Array | None, type_: TensorType
    ) -> int:
        data = None if array is None else arrays.encode(array, type_)
        return self._place(table, data)

    def _place(self, table: schema.Tensor, data: Buffer | None) -> int:
        if data is not None and len(data) <= INLINE:
            table.data = bytes(data)
        elif data is not None:
            table.segment = self._segment(data)
        self.tensors.append(table)
        return len(self.tensors) - 1

    def _segment(self, data: Buffer) -> int:
        offset = 0
        if self.segments:
            offset = aligned(self.segments[-1][0] + self.segments[-1][1])
        self.segments.append((offset, len(data), zlib.crc32(data)))
        self.payloads.append(data)
        return len(self.segments) - 1

    def _quant(self, quant: QuantParams) -> schema.Quant:
        scales: Array = np.array(quant.scales, np.float64)
        single = scales.astype(np.float32)
        if np.array_equal(single.astype(np.float64), scales):
            scales = single
        zeros: Array = np.array(quant.zero_points, np.int64)
        for small in (np.int32, np.int16, np.int8):
            if np.array_equal(zeros.astype(small), zeros):
                zeros = zeros.astype(small)
        return schema.Quant(
            scales=self._numbers(scales),
            zero_points=self._numbers(zeros) if zeros.any() else -1,
            axis=quant.axis,
            block=quant.block,
        )

    def _numbers(self, array: Array) -> int:
        type_ = TensorType(DType.of(array.dtype), array.shape)
        return self._constant(Constant(array), type_, "")


def _form(
    type_: ValueType, table: Callable[[TensorType | Unranked], schema.Type]
) -> schema.Type:
    """The table of a type: that of its tensors, and what is made of them."""
    if isinstance(type_, TensorType):
        return table(type_)
    name, held = "OPTIONAL", type_.element
    if isinstance(type_, SequenceType):
        name = "SEQUENCE"
    if isinstance(held, SequenceType):
        name, held = "OPTIONAL_SEQUENCE", held.element
    made = table(held)
    made.form = _FORMS[name]
    return made
