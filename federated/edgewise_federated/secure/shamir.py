"""Shamir shares: any ``threshold`` of them give a secret back, fewer tell nothing.

Shamir (1979), "How to Share a Secret".
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping

from cryptography.hazmat.primitives.hashes import SHA256, Hash

from edgewise.errors import FederatedError

SECRET_BYTES = 32
SHARE_BYTES = 40
# The largest prime below 2**320: room for a secret and 64 bits of its digest, which
# tell damaged shares from whole ones where none are left over to compare with.
PRIME = 2**320 - 197


def enough(present: int, of: int, threshold: int) -> None:
    """Refuse to go on with fewer parties than the threshold."""
    if present < threshold:
        raise FederatedError(
            f"{present} of {of} parties are there; secure aggregation needs {threshold}"
        )


def digest(secret: bytes) -> bytes:
    """What follows a secret up to the length of a share."""
    sha = Hash(SHA256())
    sha.update(secret)
    return sha.finalize()[: SHARE_BYTES - SECRET_BYTES]


def split(secret: bytes, threshold: int, holders: Iterable[int]) -> dict[int, int]:
    """One share for each holder: a random polynomial of degree ``threshold - 1``.

    Holders count from 0; holder ``i`` has its value at ``i + 1``: at 0 is the secret.
    """
    rest = [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    constant = int.from_bytes(secret + digest(secret), "little")
    shares = {}
    for holder in map(int, holders):  # integers of numpy would overflow
        x, y = holder + 1, 0
        for a in rest:
            y = (y + a) * x % PRIME
        shares[holder] = (y + constant) % PRIME
    return shares


def at_zero(holders: Collection[int]) -> dict[int, int]:
    """Lagrange's coefficients at 0 for the points of these holders."""
    coefficients, places = {}, list(map(int, holders))
    for i in places:
        above, below = 1, 1
        for j in places:
            if j != i:
                above = above * (j + 1) % PRIME
                below = below * (j - i) % PRIME
        coefficients[i] = above * pow(below, -1, PRIME) % PRIME
    return coefficients


def joined(shares: Mapping[int, int], coefficients: Mapping[int, int]) -> bytes:
    """The secret of shares by holder, with coefficients of the same holders."""
    constant = sum(c * shares[holder] for holder, c in coefficients.items()) % PRIME
    whole = constant.to_bytes(SHARE_BYTES, "little")
    secret = whole[:SECRET_BYTES]
    if whole[SECRET_BYTES:] != digest(secret):
        holders = ", ".join(map(str, sorted(coefficients)))
        raise FederatedError(f"the shares of parties {holders} do not fit together")
    return secret
