"""A whole round of secure aggregation in one process, for simulation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgewise.errors import FederatedError
from edgewise_federated.secure.collector import Collector
from edgewise_federated.secure.masks import Words, checked
from edgewise_federated.secure.party import Party
from edgewise_federated.secure.shamir import enough


def aggregated(words: Mapping[int, Words | None], threshold: int) -> Words:
    """The sum of words modulo 2**32, by the same steps as between real devices.

    Args:
        words: By index of the party; None for one that vanished after it shared.
        threshold: Parties that must stay to the end.
    """
    present = {i: checked(w, f"party {i}") for i, w in words.items() if w is not None}
    enough(len(present), len(words), threshold)
    if len(sizes := {len(w) for w in present.values()}) > 1:
        raise FederatedError(f"parties have unequal numbers of words: {sorted(sizes)}")
    parties = {i: Party(i, threshold) for i in words}
    keys = {i: party.advertise() for i, party in parties.items()}
    sealed = {i: party.share(keys) for i, party in parties.items()}
    total = np.zeros(max(sizes, default=0), np.uint32)
    for i, row in present.items():
        boxes = {j: sealed[j][i] for j in sealed if j != i}
        total += parties[i].mask(row, boxes)
    reveals = {i: parties[i].reveal(present.keys()) for i in present}
    return Collector(threshold).unmask(total, keys, present.keys(), reveals)
