"""The steps of secure sums as messages: keys, shares, and what takes masks off.

The words themselves travel as the answer to an order, which brings a device the shares
that others made for it. A round's messages to a device name run and round; lists of the
same length stand for what is known by party.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from flwr.app import ConfigRecord, Message, RecordDict

from edgewise.errors import FederatedError
from edgewise_federated.flower.messages import whole
from edgewise_federated.secure.messages import Keys, Reveal
from edgewise_federated.secure.vault import Vault

KEYS, SHARES, REVEAL = "query.keys", "query.shares", "query.reveal"
FACTS, BOXES = "phase", "boxes"
T = TypeVar("T")


class Place(NamedTuple):
    """Which round a message belongs to.

    Attributes:
        run: Of the server.
        number: Of the round.
    """

    run: str
    number: int

    def facts(self) -> dict[str, Any]:
        """As a message has it."""
        return {"run": self.run, "number": self.number}


def keys_wanted(place: Place, party: int) -> RecordDict:
    """The server asks a party for its keys."""
    return _content({**place.facts(), "party": party})


def shares_wanted(
    place: Place,
    threshold: int,
    keys: Mapping[int, Keys],
    names: Mapping[int, str],
    identities: Mapping[int, bytes],
) -> RecordDict:
    """The server asks a party for shares for the others."""
    parties = sorted(keys)
    return _content(
        {
            **place.facts(),
            "threshold": threshold,
            "parties": parties,
            "keys": [keys[i].to_bytes() for i in parties],
            "names": [names[i] for i in parties],
            "identities": [identities[i] for i in parties],
        }
    )


def reveal_wanted(place: Place, survivors: Collection[int]) -> RecordDict:
    """The server asks a party for shares of the masks of the survivors."""
    return _content({**place.facts(), "survivors": sorted(survivors)})


def with_boxes(content: RecordDict, boxes: Mapping[int, bytes]) -> RecordDict:
    """An order that brings a device the shares of the others."""
    content[BOXES] = ConfigRecord(_by_party(boxes))
    return content


def keys_of(message: Message) -> Keys:
    """What a party answers to ``keys_wanted``.

    Raises:
        FederatedError: It answers something else.
    """
    return _read(message, lambda facts: Keys.from_bytes(facts["keys"]))


def boxes_of(message: Message, others: Collection[int]) -> dict[int, bytes]:
    """What a party answers to ``shares_wanted``: a box for each of the others.

    Raises:
        FederatedError: It answers something else.
    """
    boxes = _read(message, _of_party)
    if boxes.keys() != set(others):
        raise FederatedError("it made no share for each of the others")
    return boxes


def reveals_of(message: Message, parties: Collection[int]) -> dict[int, bytes]:
    """What a party answers to ``reveal_wanted``: a share of each of the parties.

    Raises:
        FederatedError: It answers something else.
    """
    reveals = _read(message, _of_party)
    if reveals.keys() != set(parties):
        raise FederatedError("it revealed no share of each of the parties")
    for data in reveals.values():
        Reveal.from_bytes(data)
    return reveals


def answered(message: Message, vault: Vault) -> Message:
    """A device's answer to any of the three.

    Raises:
        FederatedError: The device does not take that step.
    """
    facts = _facts(message.content)
    try:
        run, number = str(facts["run"]), whole(facts, "number", 0)
        kind = message.metadata.message_type
        if kind == KEYS:
            content = {"keys": vault.keys(run, number, whole(facts, "party", 0))}
        elif kind == SHARES:
            parties = facts["parties"]
            rows = (facts["keys"], facts["names"], facts["identities"])
            keys, names, known = (_zipped(parties, row) for row in rows)
            threshold = whole(facts, "threshold", 1)
            content = _by_party(
                vault.shares(run, number, threshold, keys, names, known)
            )
        else:
            content = _by_party(vault.reveal(run, number, facts["survivors"]))
    except (KeyError, TypeError, ValueError) as error:
        raise FederatedError(f"a damaged message: {error!r}") from error
    return Message(_content(content), reply_to=message)


def boxes_in(content: RecordDict) -> dict[int, bytes]:
    """The shares that an order brings; none where there are none."""
    record = content.config_records.get(BOXES)
    return {} if record is None else _of_party(record)


def _content(facts: Mapping[str, Any]) -> RecordDict:
    return RecordDict({FACTS: ConfigRecord(dict(facts))})


def _facts(content: RecordDict) -> dict[str, Any]:
    try:
        return dict(content.config_records[FACTS])
    except KeyError as error:
        raise FederatedError("a message without what it is about") from error


def _read(message: Message, read: Callable[[Mapping[str, Any]], T]) -> T:
    if message.has_error():
        raise FederatedError(str(message.error.reason))
    try:
        return read(_facts(message.content))
    except (KeyError, TypeError, ValueError) as error:
        raise FederatedError(f"a damaged message: {error!r}") from error


def _by_party(boxes: Mapping[int, bytes]) -> dict[str, Any]:
    parties = sorted(boxes)
    return {"parties": parties, "boxes": [boxes[i] for i in parties]}


def _of_party(facts: Mapping[str, Any]) -> dict[int, bytes]:
    return _zipped(facts["parties"], facts["boxes"])


def _zipped(parties: Any, rows: Any) -> dict[int, Any]:
    return dict(zip(map(int, parties), rows, strict=True))
