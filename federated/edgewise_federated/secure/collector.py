"""What the server does at the end of a round: it takes the masks off the sum."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from edgewise.errors import FederatedError
from edgewise_federated.secure.masks import Words, blend, checked, pair_seed, public
from edgewise_federated.secure.messages import OWN, PAIRWISE, Keys, Reveal
from edgewise_federated.secure.shamir import at_zero, enough, joined


@dataclass(frozen=True, slots=True)
class Collector:
    """The server's side of one round.

    Attributes:
        threshold: Parties that must stay to the end, as every party was told.
    """

    threshold: int

    def unmask(
        self,
        total: Words,
        keys: Mapping[int, Keys],
        survivors: Collection[int],
        reveals: Mapping[int, Mapping[int, bytes]],
    ) -> Words:
        """The exact sum of the survivors' words, modulo 2**32.

        Args:
            total: Sum of the masked words of the survivors.
            keys: Keys of every party whose shares were passed on to the others.
            survivors: Parties whose masked words are in the total.
            reveals: What survivors revealed, by their index; not all need be there.
        """
        out = checked(total, "sum of masked words").copy()
        alive = sorted(set(survivors))
        if outside := (set(alive) - keys.keys()) | (reveals.keys() - set(alive)):
            raise FederatedError(f"party {min(outside)} is not one of this round's")
        enough(len(alive), len(keys), self.threshold)
        enough(len(reveals), len(keys), self.threshold)
        coefficients = at_zero(sorted(reveals)[: self.threshold])
        for i in alive:
            blend(
                joined(values(reveals, coefficients, i, OWN), coefficients),
                np.subtract,
                out,
            )
        for i in sorted(keys.keys() - set(alive)):
            shares = values(reveals, coefficients, i, PAIRWISE)
            key = X25519PrivateKey.from_private_bytes(joined(shares, coefficients))
            if public(key) != keys[i].pairwise:
                raise FederatedError(f"the revealed key of party {i} is not its own")
            for j in alive:
                seed = pair_seed(key, keys[j].pairwise)
                blend(seed, np.add if i > j else np.subtract, out)
        return out


def values(
    reveals: Mapping[int, Mapping[int, bytes]],
    holders: Collection[int],
    owner: int,
    kind: int,
) -> dict[int, int]:
    """The shares of one owner's secret, by holder."""
    shares = {}
    for holder in holders:
        data = reveals[holder].get(owner)
        if data is None:
            raise FederatedError(f"party {holder} revealed no share of party {owner}")
        share = Reveal.from_bytes(data)
        if share.kind != kind:
            raise FederatedError(
                f"party {holder} revealed the other kind of share of party {owner}"
            )
        shares[holder] = share.value
    return shares
