"""How numbers travel: fewer bits, and what they lose is sent the next time.

Error feedback (Seide et al., 2014; Karimireddy et al., 2019): a device keeps what its
codec lost, and adds it to what it sends next.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array

BLOCK = 64  # numbers that share a scale
WHOLE = "<f4"  # what travels as it is


class Message(NamedTuple):
    """Numbers on their way.

    Attributes:
        data: The bytes.
        size: How many numbers they stand for.
        codec: Which codec reads them.
        whole: How many of them, the last ones, are float32 behind the rest.
    """

    data: bytes
    size: int
    codec: str
    whole: int = 0


class Codec(Protocol):
    """A way to write numbers."""

    @property
    def name(self) -> str:
        """As a config names it."""

    @property
    def exact(self) -> bool:
        """Whether nothing is lost."""

    def encode(self, values: Array, draw: np.random.Generator) -> bytes:
        """Float32 numbers as bytes."""

    def decode(self, data: bytes, size: int) -> Array:
        """The numbers that bytes stand for."""


class Float(NamedTuple):
    """Numbers of a float type."""

    name: str
    kind: str

    @property
    def exact(self) -> bool:
        """Only of float32."""
        return self.kind == "<f4"

    def encode(self, values: Array, draw: np.random.Generator) -> bytes:
        """Rounded to the nearest, the largest there is at most."""
        del draw
        most = np.finfo(self.kind).max
        return np.clip(values, -most, most).astype(self.kind).tobytes()

    def decode(self, data: bytes, size: int) -> Array:
        """As they are."""
        return np.frombuffer(data, self.kind, size).astype(np.float32)


class Steps(NamedTuple):
    """Whole steps of a scale for each block, rounded up or down by chance.

    The mean of many roundings is the number itself (Alistarh et al., 2017).
    """

    name: str
    bits: int

    @property
    def exact(self) -> bool:
        """Never."""
        return False

    def encode(self, values: Array, draw: np.random.Generator) -> bytes:
        """Scales, then steps, two in a byte where they have four bits."""
        most = 2 ** (self.bits - 1) - 1
        blocks = _in_blocks(values)
        scale = (np.abs(blocks).max(1, initial=0.0) / most).astype("<f4")
        safe = np.where(scale > 0, scale, np.float32(1))
        steps = np.floor(blocks / safe[:, None] + draw.random(blocks.shape))
        whole = np.clip(steps, -most, most).astype(np.int8).reshape(-1)
        whole = whole[: values.size]
        steps_ = whole if self.bits == 8 else _pairs(whole)
        return bytes(scale.tobytes() + steps_.tobytes())

    def decode(self, data: bytes, size: int) -> Array:
        """Steps times their scales."""
        count = -(-size // BLOCK)
        scale = np.frombuffer(data, "<f4", count)
        rest = np.frombuffer(data, np.int8, offset=4 * count)
        whole = rest if self.bits == 8 else _unpaired(rest)
        blocks = _in_blocks(whole[:size].astype(np.float32))
        found = (blocks * scale[:, None]).reshape(-1)[:size]
        return np.asarray(found.astype(np.float32))


class TopK(NamedTuple):
    """The largest numbers alone: their places and themselves."""

    name: str
    share: float

    @property
    def exact(self) -> bool:
        """Only where all are sent."""
        return self.share >= 1

    def encode(self, values: Array, draw: np.random.Generator) -> bytes:
        """Places in order, then numbers."""
        del draw
        count = min(max(round(self.share * values.size), 1), values.size)
        places = np.sort(np.argpartition(-np.abs(values), count - 1)[:count])
        return places.astype("<u4").tobytes() + values[places].astype("<f4").tobytes()

    def decode(self, data: bytes, size: int) -> Array:
        """Zero where nothing was sent."""
        count = len(data) // 8
        places = np.frombuffer(data, "<u4", count)
        found = np.zeros(size, np.float32)
        found[places] = np.frombuffer(data, "<f4", count, 4 * count)
        return found


def codec(name: str) -> Codec:
    """The codec of a name.

    Raises:
        ConfigError: There is none.
    """
    known: dict[str, Codec] = {
        "float32": Float("float32", "<f4"),
        "float16": Float("float16", "<f2"),
        "int8": Steps("int8", 8),
        "int4": Steps("int4", 4),
    }
    if name in known:
        return known[name]
    kind, _, share = name.partition(":")
    try:
        part = float(share)
    except ValueError:
        part = 0.0
    if kind != "topk" or not 0 < part <= 1:
        raise ConfigError(
            f"codec={name!r}: want {', '.join(known)}, or topk:SHARE from 0 to 1"
        )
    return TopK(name, part)


class Feedback:
    """A codec and what it lost so far.

    Args:
        codec: How numbers travel.
        whole: How many of them, the last ones, travel as they are: statistics of batch
            norms, which are few, and of which none may be lost.
        lost: Of the others, so far.
    """

    def __init__(self, codec: Codec, whole: int = 0, lost: Array | None = None) -> None:
        self.codec, self.lost, self._whole = codec, lost, whole

    def send(self, values: Array, draw: np.random.Generator) -> Message:
        """Numbers with what was lost before; what is lost now is kept."""
        every = values.astype(np.float32)
        rest, whole = np.split(every, [every.size - self._whole])
        if self.lost is not None:
            rest = rest + self.lost
        data = self.codec.encode(rest, draw)
        if not self.codec.exact:
            self.lost = rest - self.codec.decode(data, rest.size)
        data += whole.astype(WHOLE).tobytes()
        return Message(data, every.size, self.codec.name, self._whole)


def received(message: Message) -> Array:
    """The numbers of a message."""
    data, rest = message.data, message.size - message.whole
    end = len(data) - message.whole * np.dtype(WHOLE).itemsize
    numbers = codec(message.codec).decode(data[:end], rest)
    if not message.whole:
        return numbers
    whole = np.frombuffer(data, WHOLE, message.whole, end)
    return np.concatenate([numbers, whole.astype(np.float32)])


def _in_blocks(values: Array) -> Array:
    short = -values.size % BLOCK
    return np.pad(values, (0, short)).reshape(-1, BLOCK)


def _pairs(whole: Array) -> Array:
    even = np.pad(whole, (0, whole.size % 2)).view(np.uint8).reshape(-1, 2)
    return (even[:, 0] & 15) | (even[:, 1] << 4)


def _unpaired(pairs: Array) -> Array:
    low = (pairs.astype(np.int8) << 4).astype(np.int8) >> 4
    return np.stack([low, pairs.astype(np.int8) >> 4], 1).reshape(-1)
