"""Aligned memory: arrays, the arena that a session's plans share, and what it holds."""

from __future__ import annotations

import ctypes
import math
import os

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.named import NamedTuple
from edgewise.types import TensorType

ALIGNMENT = 64
_address_of, _first_byte = ctypes.addressof, ctypes.c_char.from_buffer


class MemoryReport(NamedTuple):
    """Memory of a session, in bytes.

    Attributes:
        arena_bytes: Working memory: values between ops, packing, scratch areas.
        lower_bound_bytes: Largest sum of live bytes over the steps; no arena is
            smaller.
        weights_bytes: Variables and constants, the derived ones included.
        prepared_bytes: Weights once more, in the form that the fastest kernels want;
            see ``SessionConfig.winograd``.
    """

    arena_bytes: int
    lower_bound_bytes: int
    weights_bytes: int
    prepared_bytes: int


def share_of_machine() -> int:
    """Half of the bytes of the machine's memory: more would push out all else."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def address(array: Array) -> int:
    """Where the first element lies.

    Asked twice a run: a buffer's address takes 0.3 us to learn, numpy's own answer 1.3.
    """
    try:
        return _address_of(_first_byte(array))  # type: ignore[arg-type]  # a buffer
    except (TypeError, ValueError, BufferError):  # read-only, empty, or a foreign type
        return int(array.ctypes.data)


def empty(nbytes: int) -> Array:
    """That many bytes, not initialised, on a cache line of their own."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -address(raw) % ALIGNMENT
    return raw[start : start + nbytes]


def zeros(type_: TensorType) -> Array:
    """An aligned array of zeros."""
    array = view(empty(type_.bytes), 0, type_)
    array.fill(0)
    return array


def words(count: int) -> Array:
    """That many 64-bit words of zero, aligned: what native code reads and writes."""
    array = empty(8 * max(count, 1)).view(np.int64)
    array.fill(0)
    return array


def view(memory: Array, offset: int, type_: TensorType) -> Array:
    """A tensor inside a piece of memory."""
    return np.ndarray(type_.dims, type_.dtype.numpy, memory, offset)


def part(array: Array, offset: int, type_: TensorType) -> Array:
    """A tensor inside an array of such elements, from byte ``offset`` on."""
    start = offset // array.itemsize
    return array.reshape(-1)[start : start + math.prod(type_.dims)].reshape(type_.dims)


class Arena:
    """Working memory that grows to the largest plan and never shrinks."""

    __slots__ = ("_place", "limit")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        # Both at once: an interrupt must not leave the address of other memory.
        self._place = _placed(0)

    @property
    def memory(self) -> Array:
        """The bytes; replaced when the arena grows."""
        return self._place[0]

    @property
    def base(self) -> int:
        """Their address."""
        return self._place[1]

    def reserve(self, nbytes: int) -> None:
        """Make room for a plan.

        Raises:
            ConfigError: The plan needs more than the session may use.
        """
        if self.limit is not None and nbytes > self.limit:
            raise ConfigError(
                f"arena_limit={self.limit}: a plan for these sizes needs {nbytes} bytes"
            )
        if nbytes > self.memory.nbytes:
            self._place = _placed(nbytes)


def _placed(nbytes: int) -> tuple[Array, int]:
    memory = empty(nbytes)
    return memory, address(memory)
