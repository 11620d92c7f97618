"""What the planner knows of a kernel: which calls it takes, its argument words, tasks.

Every native kernel is ``int32 kernel(const int64 *args, int64 begin, int64 end,
int64 worker)``: it does tasks ``[begin, end)`` and returns 0 or a status of
``errors.STATUS``.
``args`` are raw 64-bit words: addresses, sizes, strides, the bits of floats.

The number of tasks depends on shapes only, never on the number of threads, so that any
thread count gives the same bits; no two tasks write the same memory.
"""

from __future__ import annotations

import importlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from edgewise.errors import InternalError
from edgewise.ir.op import Op
from edgewise.named import NamedTuple
from edgewise.types import TensorType

MAX_RANK = 8
OUT = -1  # the slot of the output


class In(NamedTuple):
    """Address of input ``slot``, plus ``offset`` bytes; 0 where the input is absent."""

    slot: int
    offset: int = 0


class Out(NamedTuple):
    """Address of output ``slot``, plus ``offset`` bytes."""

    slot: int
    offset: int = 0


class Temp(NamedTuple):
    """Address of temporary ``slot`` of the call, shared by its launches."""

    slot: int
    offset: int = 0


class Scratch(NamedTuple):
    """Address of the scratch area; worker ``w`` owns the ``w``-th ``scratch`` bytes."""


class Prepared(NamedTuple):
    """Address of memory ``number`` of those that the call wants prepared."""

    number: int


Word: TypeAlias = int | In | Out | Temp | Scratch | Prepared


class Call(NamedTuple):
    """An op on static types, for which a kernel is wanted.

    Attributes:
        op: What to compute.
        inputs: Types of what it reads.
        outputs: Types of what it makes.
        reads: Strides, in elements, of every input that does not lie in one piece;
            ``None`` for those that do; empty where all do.
        writes: The same of the outputs.
        placed: Inputs of a concat that lie in their places of its output.
        fixed: Slots of inputs that are variables which no run assigns.
    """

    op: Op
    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType, ...]
    reads: tuple[tuple[int, ...] | None, ...] = ()
    writes: tuple[tuple[int, ...] | None, ...] = ()
    placed: frozenset[int] = frozenset()
    fixed: frozenset[int] = frozenset()

    def strided(self) -> Iterator[int]:
        """The slots of what does not lie in one piece; ``OUT`` for the output."""
        if self.reads:
            yield from (slot for slot, steps in enumerate(self.reads) if steps)
        if self.writes:
            yield from (OUT - slot for slot, steps in enumerate(self.writes) if steps)


class Launch(NamedTuple):
    """One step of a plan: a native function, its words, its tasks."""

    symbol: str
    words: tuple[Word, ...]
    tasks: int


class Preparation(NamedTuple):
    """Memory made from a variable once, before all runs.

    Attributes:
        slot: The input that is the variable, one of ``Call.fixed``.
        size: Bytes; 64-byte aligned.
        launch: Fills them; its only addresses are ``In`` of the slot and ``Out(0)``,
            the memory.
    """

    slot: int
    size: int
    launch: Launch


class Binding(NamedTuple):
    """How kernels carry out one call: launches in order, and the memory they share.

    Attributes:
        launches: The steps; each is complete before the next begins.
        temps: Bytes of every temporary; 64-byte aligned.
        scratch: Bytes of scratch that each worker needs; a multiple of 64.
        prepared: Other forms of variables that the launches read.
    """

    launches: tuple[Launch, ...]
    temps: tuple[int, ...] = ()
    scratch: int = 0
    prepared: tuple[Preparation, ...] = ()


Bind: TypeAlias = Callable[[Call], "Binding | None"]


class Kernel(NamedTuple):
    """A catalogue entry.

    Attributes:
        op: The op it serves.
        symbols: The functions it needs.
        bind: How it takes a call; ``None`` where it does not.
        strided: Slots that need not lie in one piece: ``bind`` reads their strides.
    """

    op: str
    symbols: tuple[str, ...]
    bind: Bind
    strided: range


KERNELS: dict[str, list[Kernel]] = {}
COMPLETE: set[str] = set()  # modules of ops whose kernels are all there
# Modules of the catalogue by the module of an op: imported when a plan first has one,
# as all of them take ten milliseconds and most models need a third.
HOMES = {
    "activation": ("activation",),
    "softmax": ("activation",),
    "attention": ("attention",),
    "unary": ("elementwise",),
    "binary": ("elementwise",),
    "choose": ("elementwise",),
    "logic": ("elementwise",),
    "matmul": ("matmul",),
    "conv": ("winograd", "conv", "depthwise"),
    "bottleneck": ("bottleneck",),
    "bit_products": ("bit_products",),
    "byte_products": ("byte_products",),
    "byte_between": ("byte_between",),
    "narrow": ("winograd", "narrow"),
    "pack_narrow": ("narrow",),
    "pack": ("pack",),
    "activation_grad": ("activation_grad",),
    "pool_grad": ("pool_grad",),
    "conv_grad": ("winograd", "conv_grad", "weight_grad", "conv", "depthwise_grad"),
    "linear_grad": ("conv_grad", "weight_grad"),
    "pool": ("pool",),
    "norm": ("norm",),
    "statistics": ("batch_norm",),
    "batch_norm_train": ("batch_norm",),
    "update": ("update",),
    "image_norm": ("norm",),
    "reduce": ("reduce",),
    "order": ("reduce",),
    "shape": ("copy",),
    "pad": ("copy",),
    "create": ("copy",),
    "index": ("index", "copy"),
    "scatter": ("index",),
    "quantize": ("quantize",),
    "recurrent": ("recurrent",),
    "recurrent_grad": ("recurrent_grad",),
}


def kernel(op: str, *symbols: str, strided: range = range(0)) -> Callable[[Bind], Bind]:
    """Register ``bind`` for ``op``; the first of several not to decline wins."""

    def register(bind: Bind) -> Bind:
        KERNELS.setdefault(op, []).append(Kernel(op, symbols, bind, strided))
        return bind

    return register


def entries(op: type[Op]) -> Sequence[Kernel]:
    """What the catalogue has for an op, best first."""
    family = op.__module__.rpartition(".")[2]
    if family not in COMPLETE:
        # Not where the op has any: modules of other families import some of this one.
        _import(HOMES.get(family, ()))
        COMPLETE.add(family)
    return KERNELS.get(op.name, ())


def load_all() -> None:
    """Import the whole catalogue into ``KERNELS``."""
    _import(home for homes in HOMES.values() for home in homes)


def _import(modules: Iterable[str]) -> None:
    for module in modules:
        importlib.import_module(f"edgewise.kernels.catalog.{module}")


def find(call: Call) -> Binding | None:
    """The kernels for ``call``, or ``None`` where only the reference can do it."""
    strided = tuple(call.strided())
    for entry in entries(type(call.op)):
        if any(slot not in entry.strided for slot in strided):
            continue
        binding = entry.bind(call)
        if binding is not None:
            return binding
    return None


def f32_word(value: float) -> int:
    """The bits of a float32, as a word."""
    return _bits("<f", "<i", value)


def f16_word(value: float) -> int:
    """The bits of a float16, as a word."""
    return _bits("<e", "<h", value)


def f64_word(value: float) -> int:
    """The bits of a float64, as a word."""
    return _bits("<d", "<q", value)


def _bits(form: str, whole: str, value: float) -> int:
    try:
        packed = struct.pack(form, value)
    except OverflowError:  # to infinity, as numpy rounds
        packed = struct.pack(form, math.copysign(math.inf, value))
    return int(struct.unpack(whole, packed)[0])


def blocks(size: int, block: int) -> int:
    """Tasks that cover ``size`` items in blocks; at least one, so that steps end."""
    if block < 1:
        raise InternalError(f"a block of {block} items")
    return max(1, -(-size // block))
