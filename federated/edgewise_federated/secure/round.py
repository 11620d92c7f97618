"""A round of secure aggregation in one process, by the steps of real devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from edgewise.errors import FederatedError
from edgewise_federated.secure.collector import Collector
from edgewise_federated.secure.masks import Words, checked
from edgewise_federated.secure.party import Party
from edgewise_federated.secure.shamir import enough


class Round:
    """All parties of a round, after they have shared.

    Args:
        indices: Of the parties.
        threshold: Parties that must stay to the end.
    """

    def __init__(self, indices: Collection[int], threshold: int) -> None:
        self._threshold = threshold
        self._parties = {i: Party(i, threshold) for i in indices}
        self._keys = {i: party.advertise() for i, party in self._parties.items()}
        self._sealed = {i: p.share(self._keys) for i, p in self._parties.items()}

    def mask(self, index: int, words: Words) -> Words:
        """What a party sends: words under its own mask and those of pairs."""
        boxes = {j: box[index] for j, box in self._sealed.items() if j != index}
        return self._parties[index].mask(words, boxes)

    def overhead(self, index: int) -> int:
        """Bytes that a party sends beside its words: keys, and shares for others."""
        keys = len(self._keys[index].to_bytes())
        return keys + sum(map(len, self._sealed[index].values()))

    def total(self, sent: Mapping[int, Words]) -> Words:
        """The sum modulo 2**32 of the words of those that stayed, of what they sent.

        Raises:
            FederatedError: They are fewer than the threshold, or of unequal lengths.
        """
        enough(len(sent), len(self._parties), self._threshold)
        if len(sizes := {len(words) for words in sent.values()}) > 1:
            raise FederatedError(
                f"parties sent unequal numbers of words: {sorted(sizes)}"
            )
        total = np.zeros(max(sizes, default=0), np.uint32)
        for words in sent.values():
            total += words
        reveals = {i: self._parties[i].reveal(sent.keys()) for i in sent}
        collector = Collector(self._threshold)
        return collector.unmask(total, self._keys, sent.keys(), reveals)


def aggregated(words: Mapping[int, Words | None], threshold: int) -> Words:
    """The sum of words modulo 2**32.

    Args:
        words: By index of the party; None for one that vanished after it shared.
        threshold: Parties that must stay to the end.
    """
    present = {i: checked(w, f"party {i}") for i, w in words.items() if w is not None}
    enough(len(present), len(words), threshold)
    round_ = Round(words.keys(), threshold)
    return round_.total({i: round_.mask(i, row) for i, row in present.items()})
