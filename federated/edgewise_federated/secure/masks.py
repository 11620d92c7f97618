"""Keys that two parties agree on, and the masks that keys stand for."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from edgewise.errors import FederatedError

Words: TypeAlias = NDArray[np.uint32]

PIECE = 1 << 15  # words: mask and sum stay in the cache between making and adding
ZEROS = bytes(4 * PIECE)


def checked(words: Words, what: str) -> Words:
    """The array, if it is a row of 32-bit words."""
    if words.dtype != np.uint32 or words.ndim != 1:
        raise FederatedError(
            f"{what}: got {words.ndim} axes of {words.dtype}, want one axis of uint32"
        )
    return words


def private_key(secret: bytes) -> X25519PrivateKey:
    """The key for one round that 32 random bytes are."""
    return X25519PrivateKey.from_private_bytes(secret)


def public(key: X25519PrivateKey) -> bytes:
    """The half to show."""
    return key.public_key().public_bytes_raw()


def agreed(key: X25519PrivateKey, other: bytes, label: bytes) -> bytes:
    """The 32 bytes that only two parties can know, the same for both.

    Args:
        key: Private key of the one.
        other: Public key of the other.
        label: What the bytes are for, and all that both must see alike.
    """
    try:
        secret = key.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError as error:
        raise FederatedError(
            "a party's public key is damaged: no key agreed"
        ) from error
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=label).derive(secret)


def pair_seed(key: X25519PrivateKey, other: bytes) -> bytes:
    """Seed of the mask of two parties, by their pairwise keys."""
    keys = b"".join(sorted((public(key), other)))
    return agreed(key, other, b"edgewise secure mask 1" + keys)


def blend(seed: bytes, combine: np.ufunc, out: Words) -> None:
    """Add or subtract the mask of a seed, modulo 2**32.

    A seed serves for one mask alone, so the nonce of ChaCha20 may be zero.
    """
    stream = Cipher(ChaCha20(seed, bytes(16)), mode=None).encryptor()
    for start in range(0, len(out), PIECE):
        piece = out[start : start + PIECE]
        zeros = ZEROS if len(piece) == PIECE else bytes(4 * len(piece))
        combine(piece, np.frombuffer(stream.update(zeros), "<u4"), out=piece)
