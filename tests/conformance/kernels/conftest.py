"""Runs bindings of the catalogue on arrays, the way a plan would."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import edgewise.ops
from edgewise.ir.op import Array, Op
from edgewise.kernels.catalog import base
from edgewise.kernels.catalog.base import (
    OUT,
    Binding,
    Call,
    In,
    Launch,
    Out,
    Prepared,
    Scratch,
    Temp,
    Word,
    find,
)
from edgewise.kernels.catalog.strides import contiguous
from edgewise.runtime import library
from edgewise.types import DType, TensorType

base.load_all()
assert edgewise.ops

Inputs = Sequence["Array | None"]
Outcome = list[Array] | int | None
WORKERS = 3
CTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
)
GUARD = 64  # bytes after every output and temporary, which no kernel may touch
FILL = 0xA5
MARGIN = 5  # elements between rows that lie apart


@functools.cache
def kernel(symbol: str) -> Callable[..., int]:
    """A kernel of this processor's library."""
    return CTYPE(library.load().address(symbol))


class Memory:
    """A block of bytes at an aligned address, with a guard behind it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.bytes = np.full(size + GUARD + 64, FILL, np.uint8)
        self.start = -self.bytes.ctypes.data % 64

    @property
    def address(self) -> int:
        return self.bytes.ctypes.data + self.start

    @property
    def intact(self) -> bool:
        guard = self.bytes[self.start + self.size :][:GUARD]
        return bool(np.all(guard == FILL))

    def array(self, type_: TensorType) -> Array:
        raw = self.bytes[self.start : self.start + self.size]
        return raw.view(type_.dtype.numpy).reshape(type_.dims)


def call_of(op: Op, inputs: Sequence[Array | None]) -> Call:
    """The call of ``op`` on arrays of these types."""
    types = tuple(
        None if x is None else TensorType(DType.of(x.dtype), x.shape) for x in inputs
    )
    return Call(op, types, op.infer_all(types))


class Run:
    """One binding on its memory: launches may be run in pieces of any order."""

    def __init__(self, call: Call, binding: Binding, inputs: Sequence[Array | None]):
        self.binding = binding
        self.inputs = [None if x is None else np.ascontiguousarray(x) for x in inputs]
        self.outputs = [Memory(t.bytes) for t in call.outputs]
        self.temps = [Memory(size) for size in binding.temps]
        self.scratch = Memory(binding.scratch * WORKERS)
        self.prepared = [Memory(how.size) for how in binding.prepared]
        self.types = call.outputs
        self.shared = -1

    def share(self, slot: int) -> None:
        """Give output 0 the memory of input ``slot``."""
        x = self.inputs[slot]
        assert x is not None
        target = self.outputs[0].array(self.types[0]).view(x.dtype).reshape(x.shape)
        target[...] = x
        self.shared = slot

    def word(self, word: Word) -> int:
        match word:
            case In(slot, offset) if slot == self.shared:
                return self.outputs[0].address + offset
            case In(slot, offset):
                x = self.inputs[slot]
                return 0 if x is None else x.ctypes.data + offset
            case Out(slot, offset):
                return self.outputs[slot].address + offset
            case Temp(slot, offset):
                return self.temps[slot].address + offset
            case Scratch():
                return self.scratch.address
            case Prepared(number):
                return self.prepared[number].address
        return word

    def prepare(self) -> None:
        """Fill what is made of variables."""
        outputs = self.outputs
        for how, memory in zip(self.binding.prepared, self.prepared, strict=True):
            self.outputs = [memory]
            assert self.launch(how.launch, odd(how.launch.tasks)) == 0
        self.outputs = outputs

    def launch(self, launch: Launch, cuts: Sequence[int]) -> int:
        """Run the tasks between neighbouring ``cuts``, the last piece first."""
        words = (ctypes.c_int64 * len(launch.words))(*map(self.word, launch.words))
        pieces = list(itertools.pairwise(cuts))
        function = kernel(launch.symbol)
        statuses = [
            function(words, begin, end, index % WORKERS)
            for index, (begin, end) in enumerate(reversed(pieces))
        ]
        return next((status for status in statuses if status), 0)

    def results(self) -> list[Array]:
        memories = [*self.outputs, *self.temps, *self.prepared, self.scratch]
        assert all(memory.intact for memory in memories), "wrote beyond its memory"
        pairs = zip(self.outputs, self.types, strict=True)
        return [memory.array(type_).copy() for memory, type_ in pairs]


def all_(tasks: int) -> list[int]:
    """One piece."""
    return [0, tasks]


def odd(tasks: int) -> list[int]:
    """Uneven pieces."""
    return sorted({0, tasks, tasks // 3, math.ceil(tasks * 5 / 7)})


def spread(x: Array | None) -> Array | None:
    """The same array, each row in the middle of a longer one of NaN."""
    if x is None:
        return None
    wide = np.full((*x.shape[:-1], x.shape[-1] + MARGIN), np.nan, x.dtype)
    wide[..., 2 : 2 + x.shape[-1]] = x
    return wide[..., 2 : 2 + x.shape[-1]]


def strides(x: Array) -> tuple[int, ...]:
    """In elements."""
    return tuple(step // x.itemsize for step in x.strides)


class Kernels:
    """Kernels of a call: all tasks of a launch at once, or in uneven pieces."""

    def whole(self, op: Op, inputs: Inputs) -> Outcome:
        return self._run(op, inputs, all_)

    def pieces(self, op: Op, inputs: Inputs) -> Outcome:
        return self._run(op, inputs, odd)

    def in_place(self, op: Op, inputs: Inputs, slot: int) -> Outcome:
        """With output 0 in the memory of input ``slot``."""
        return self._run(op, inputs, odd, slot)

    def apart(
        self,
        op: Op,
        inputs: Inputs,
        slots: Sequence[int],
        fixed: frozenset[int] = frozenset(),
    ) -> Outcome:
        """With rows of these inputs apart, and those of the output if ``OUT`` is there.

        What lies between the rows of the output has to stay as it is.
        """
        call = call_of(op, inputs)
        (made,) = call.outputs
        wide = made.with_shape((*made.dims[:-1], made.dims[-1] + MARGIN))
        held = [spread(x) if n in slots else x for n, x in enumerate(inputs)]
        call = call._replace(
            reads=tuple(
                None if n not in slots or x is None else strides(x)
                for n, x in enumerate(held)
            ),
            writes=(contiguous(wide.dims),) if OUT in slots else (),
            fixed=fixed,
        )
        binding = find(call)
        if binding is None:
            return None
        run = Run(call, binding, inputs)
        run.inputs = held
        run.outputs = [Memory((wide if OUT in slots else made).bytes)]
        run.prepare()
        for launch in binding.launches:
            status = run.launch(launch, odd(launch.tasks))
            if status:
                return status
        run.types = (wide,) if OUT in slots else (made,)
        (result,) = run.results()
        between = result[..., made.dims[-1] :].view(np.uint8)
        assert np.all(between == FILL)
        return [result[..., : made.dims[-1]]]

    def bound(
        self, call: Call, binding: Binding, inputs: Inputs, *, whole: bool
    ) -> Outcome:
        """With a binding that was chosen already."""
        return _run(Run(call, binding, inputs), all_ if whole else odd)

    def _run(
        self,
        op: Op,
        inputs: Inputs,
        cut: Callable[[int], list[int]],
        shared: int | None = None,
    ) -> Outcome:
        """Outputs; a status; or ``None`` where there are no kernels."""
        call = call_of(op, inputs)
        binding = find(call)
        if binding is None:
            return None
        run = Run(call, binding, inputs)
        if shared is not None:
            run.share(shared)
        return _run(run, cut)


def _run(run: Run, cut: Callable[[int], list[int]]) -> Outcome:
    run.prepare()
    for launch in run.binding.launches:
        status = run.launch(launch, cut(launch.tasks))
        if status:
            return status
    return run.results()


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    """Runs the kernels of an op: ``kernels.whole(op, inputs)``."""
    return Kernels()
