"""The server's side of secure sums over messages (Bonawitz et al., 2017, figure 4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from flwr.app import Message, RecordDict

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.flower.phases import (
    KEYS,
    REVEAL,
    SHARES,
    Place,
    boxes_of,
    keys_of,
    keys_wanted,
    reveal_wanted,
    reveals_of,
    shares_wanted,
)
from edgewise_federated.sealed import threshold
from edgewise_federated.secure import Collector, Keys
from edgewise_federated.secure.shamir import enough

logger = logging.getLogger(__name__)
STEP = 0.5  # of what is left of the deadline, for a step before the words
T = TypeVar("T")


class Line(NamedTuple):
    """How parties are reached.

    Attributes:
        ask: Sends a message of a kind to each device, and gives the replies that come
            until a time.
        now: The clock of that time.
        names: Of the nodes, by device.
        identities: Public identity keys, by device.
    """

    ask: Callable[[str, Mapping[int, RecordDict], float], Mapping[int, Message]]
    now: Callable[[], float]
    names: Mapping[int, str]
    identities: Mapping[int, bytes]


class Sealed:
    """A round of sums whose devices have exchanged keys and shares.

    Args:
        line: How devices are reached.
        place: Which round this is.
        devices: Who is asked.
        until: When the round's words are due.

    Attributes:
        devices: Who takes part: those that shared in time.

    Raises:
        FederatedError: They are so few that sums hide nobody.
    """

    def __init__(
        self, line: Line, place: Place, devices: Collection[int], until: float
    ) -> None:
        self._line, self._place = line, place
        self._bytes = dict.fromkeys(devices, 0)
        self._since, self._until = line.now(), until
        asked = {i: keys_wanted(place, i) for i in devices}
        self._keys: dict[int, Keys] = self._step(KEYS, asked, lambda _, m: keys_of(m))
        self._threshold = threshold(self._keys)
        content = shares_wanted(
            place, self._threshold, self._keys, line.names, line.identities
        )
        parties = set(self._keys)
        self._boxes = self._step(
            SHARES,
            dict.fromkeys(parties, content),
            lambda i, m: boxes_of(m, parties - {i}),
        )
        enough(len(self._boxes), len(parties), self._threshold)
        self.devices = tuple(sorted(self._boxes))

    def boxes(self, device: int) -> dict[int, bytes]:
        """The shares that the others made for a device."""
        others = self._boxes.keys() - {device}
        return {i: self._boxes[i][device] for i in sorted(others)}

    def overhead(self, device: int) -> int:
        """Bytes that a device sent beside its words."""
        return self._bytes[device]

    def total(self, sent: Mapping[int, Array], until: float) -> Array:
        """The sum modulo 2**32 of the words that arrived, without their masks.

        The words may have come at the last moment, so this takes time of its own: a
        quarter of what the round had.

        Raises:
            FederatedError: Too few stayed.
        """
        enough(len(sent), len(self.devices), self._threshold)
        total = np.zeros(len(next(iter(sent.values()))), np.uint32)
        for words in sent.values():
            total += words
        asked = dict.fromkeys(sent, reveal_wanted(self._place, sent))
        spare = STEP * (until - self._since)
        reveals = self._read(
            self._line.ask(REVEAL, asked, self._line.now() + spare),
            lambda _, m: reveals_of(m, self.devices),
        )
        return self._open(total, sent.keys(), reveals)

    def _open(
        self,
        total: Array,
        survivors: Collection[int],
        reveals: Mapping[int, Mapping[int, bytes]],
    ) -> Array:
        """The sum, of the shares of all, or of all but one whose shares do not fit."""
        keys = {i: self._keys[i] for i in self.devices}
        collector = Collector(self._threshold)
        try:
            return collector.unmask(total, keys, survivors, reveals)
        except FederatedError as error:
            for liar in sorted(reveals):
                rest = {i: shares for i, shares in reveals.items() if i != liar}
                try:
                    found = collector.unmask(total, keys, survivors, rest)
                except FederatedError:
                    continue
                logger.warning("device %d: its shares do not fit: %s", liar, error)
                return found
            raise

    def _step(
        self,
        kind: str,
        asked: Mapping[int, RecordDict],
        read: Callable[[int, Message], T],
    ) -> dict[int, T]:
        """What devices answer to a step before the words."""
        now = self._line.now()
        replies = self._line.ask(kind, asked, now + STEP * (self._until - now))
        return self._read(replies, read)

    def _read(
        self, replies: Mapping[int, Message], read: Callable[[int, Message], T]
    ) -> dict[int, T]:
        """Replies as they are read; who sends others has dropped out."""
        found = {}
        for device, message in replies.items():
            try:
                found[device] = read(device, message)
                self._bytes[device] += size_of(message)
            except FederatedError as error:
                logger.warning(
                    "round %d, device %d: %s", self._place.number, device, error
                )
        return found


def size_of(message: Message) -> int:
    """Bytes of what a message says."""
    rows = [v for r in message.content.config_records.values() for v in r.values()]
    parts = [p for row in rows for p in (row if isinstance(row, list) else [row])]
    return sum(len(part) for part in parts if isinstance(part, bytes))
