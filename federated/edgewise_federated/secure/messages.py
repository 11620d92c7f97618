"""What parties and server send each other, and its form as bytes.

A first byte tells the kind, and with it the length. Numbers are little-endian.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from edgewise.errors import FederatedError
from edgewise_federated.secure.shamir import PRIME, SHARE_BYTES

KEY_BYTES = 32
SIGNATURE_BYTES = 64
MAX_INDEX = 2**32 - 2

UNSIGNED_KEYS, SIGNED_KEYS, SHARE, OWN, PAIRWISE = range(1, 6)


def body(data: bytes, what: str, sizes: dict[int, int]) -> tuple[int, bytes]:
    """Kind and content of a message of one of these kinds, by length of content."""
    kind = data[0] if data else 0
    if kind not in sizes:
        raise FederatedError(
            f"{what}: damaged, its first byte tells no kind known here"
        )
    if len(data) != 1 + sizes[kind]:
        raise FederatedError(f"{what}: got {len(data)} bytes, want {1 + sizes[kind]}")
    return kind, data[1:]


def number(data: bytes, what: str) -> int:
    """A number of the field that shares are in."""
    value = int.from_bytes(data, "little")
    if value >= PRIME:
        raise FederatedError(f"{what}: damaged, a number is not below the prime")
    return value


def written(kind: int, content: bytes, what: str, size: int) -> bytes:
    """A message as bytes; refuses one that could not be read again."""
    if len(content) != size:
        raise FederatedError(f"{what}: got {len(content)} bytes to write, want {size}")
    return bytes((kind,)) + content


class Keys(NamedTuple):
    """Public keys of one party for one round.

    Attributes:
        channel: X25519 key that shares are sealed with.
        pairwise: X25519 key that the masks of two parties come from.
        signature: Ed25519, over the party's index and both keys; empty without one.
    """

    channel: bytes
    pairwise: bytes
    signature: bytes = b""

    def to_bytes(self) -> bytes:
        """The form to send."""
        kind = SIGNED_KEYS if self.signature else UNSIGNED_KEYS
        signature = SIGNATURE_BYTES if self.signature else 0
        if len(self.channel) != KEY_BYTES or len(self.pairwise) != KEY_BYTES:
            raise FederatedError(f"keys: each must have {KEY_BYTES} bytes")
        return written(kind, b"".join(self), "keys", 2 * KEY_BYTES + signature)

    @classmethod
    def from_bytes(cls, data: bytes) -> Keys:
        """Read what ``to_bytes`` wrote."""
        two = 2 * KEY_BYTES
        sizes = {UNSIGNED_KEYS: two, SIGNED_KEYS: two + SIGNATURE_BYTES}
        _, rest = body(data, "keys", sizes)
        return cls(rest[:KEY_BYTES], rest[KEY_BYTES:two], rest[two:])


class Share(NamedTuple):
    """What a party entrusts to another; travels sealed.

    Attributes:
        owner: Party whose secrets these are shares of.
        holder: Party that keeps them.
        own: Share of the seed of the owner's own mask.
        pairwise: Share of the owner's private key for masks of two.
    """

    owner: int
    holder: int
    own: int
    pairwise: int

    def to_bytes(self) -> bytes:
        """The form to seal."""
        try:
            content = struct.pack("<II", self.owner, self.holder) + b"".join(
                value.to_bytes(SHARE_BYTES, "little")
                for value in (self.own, self.pairwise)
            )
        except (struct.error, OverflowError) as error:
            raise FederatedError("share: a number is out of range") from error
        return written(SHARE, content, "share", 8 + 2 * SHARE_BYTES)

    @classmethod
    def from_bytes(cls, data: bytes) -> Share:
        """Read what ``to_bytes`` wrote."""
        _, rest = body(data, "share", {SHARE: 8 + 2 * SHARE_BYTES})
        owner, holder = struct.unpack_from("<II", rest)
        own, pairwise = rest[8 : 8 + SHARE_BYTES], rest[8 + SHARE_BYTES :]
        return cls(owner, holder, number(own, "share"), number(pairwise, "share"))


class Reveal(NamedTuple):
    """One share that a party gives to the server.

    Attributes:
        kind: ``OWN`` for one that survived, ``PAIRWISE`` for one that dropped out.
        value: The share.
    """

    kind: int
    value: int

    def to_bytes(self) -> bytes:
        """The form to send."""
        if self.kind not in {OWN, PAIRWISE}:
            raise FederatedError(f"revealed share: {self.kind} is no kind of share")
        try:
            content = self.value.to_bytes(SHARE_BYTES, "little")
        except OverflowError as error:
            raise FederatedError("revealed share: it is out of range") from error
        return written(self.kind, content, "revealed share", SHARE_BYTES)

    @classmethod
    def from_bytes(cls, data: bytes) -> Reveal:
        """Read what ``to_bytes`` wrote."""
        sizes = {OWN: SHARE_BYTES, PAIRWISE: SHARE_BYTES}
        kind, rest = body(data, "revealed share", sizes)
        return cls(kind, number(rest, "revealed share"))
