"""What families of the catalogue share: reading a call, and the two usual launches."""

from __future__ import annotations

import math
from collections.abc import Callable

from edgewise.errors import InternalError
from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Word,
    blocks,
)
from edgewise.kernels.catalog.strides import BLOCK, Ints, broadcast, contiguous, walk
from edgewise.types import DType, TensorType

F32, BOOL, I32, I64 = DType.F32, DType.BOOL, DType.I32, DType.I64

Make = Callable[[Call], "Binding | None"]


def integer(call: Call, name: str) -> int:
    """The attribute ``name`` of the op, a whole number or a truth."""
    value = getattr(call.op, name)
    if not isinstance(value, int):
        raise InternalError(f"{call.op}: {name} is no static integer")
    return int(value)


def integers(call: Call, name: str) -> tuple[int, ...]:
    """The attribute ``name`` of the op, a tuple of static sizes."""
    values = getattr(call.op, name)
    if not all(isinstance(value, int) for value in values):
        raise InternalError(f"{call.op}: {name} are no static integers")
    return tuple(map(int, values))


def real(call: Call, name: str) -> float:
    """The attribute ``name`` of the op, a number."""
    return float(getattr(call.op, name))


def word(call: Call, name: str) -> str:
    """The attribute ``name`` of the op, a text."""
    return str(getattr(call.op, name))


def given(call: Call, slot: int) -> TensorType:
    """The type of an input that the op always has."""
    found = call.inputs[slot]
    if found is None:
        raise InternalError(f"{call.op}: input {slot} is missing")
    return found


def read_steps(call: Call, slot: int) -> Ints:
    """Strides, in elements, of an input that the op always has."""
    steps = call.reads[slot] if call.reads else None
    return steps or contiguous(given(call, slot).dims)


def write_steps(call: Call) -> Ints:
    """Strides, in elements, of output 0."""
    steps = call.writes[0] if call.writes else None
    return steps or contiguous(call.outputs[0].dims)


def has(call: Call, slot: int) -> bool:
    """Whether the optional input ``slot`` is there."""
    return slot < len(call.inputs) and call.inputs[slot] is not None


def optional(call: Call, slot: int) -> Word:
    """The address of an optional input; 0 where it is absent."""
    return In(slot) if has(call, slot) else 0


def all_f32(call: Call) -> bool:
    """Whether every input and output is float32."""
    types = (*call.inputs, *call.outputs)
    return all(t is None or t.dtype is F32 for t in types)


def only_f32(make: Make) -> Make:
    """``make`` for calls on float32 alone; other calls are declined."""

    def bind(call: Call) -> Binding | None:
        return make(call) if all_f32(call) else None

    return bind


def flat(call: Call, symbol: str, *params: Word, block: int = BLOCK) -> Binding:
    """One launch over all elements of input 0, in blocks."""
    size = math.prod(call.outputs[0].dims)
    words: tuple[Word, ...] = (In(0), Out(0), size, block, *params)
    return Binding((Launch(symbol, words, blocks(size, block)),))


def spread(call: Call, symbol: str, *params: Word) -> Binding | None:
    """One launch of a kernel that broadcasts its inputs to the output.

    The inputs need not lie in one piece, but along the innermost axis.
    """
    target = call.outputs[0].dims
    count = len(call.inputs)
    operands = (
        broadcast(given(call, i).dims, target, read_steps(call, i))
        for i in range(count)
    )
    path = walk(target, *operands)
    if path is None or (any(call.reads) and not {0, 1}.issuperset(path.inner_steps)):
        return None
    pointers: list[Word] = [In(slot) for slot in range(count)]
    words = (*pointers, Out(0), *params, *path.words)
    return Binding((Launch(symbol, words, path.tasks),))
