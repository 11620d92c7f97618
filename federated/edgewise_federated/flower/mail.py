"""Messages over a Grid whose replies are waited for until a time, and never longer.

A pull of Flower's waits for a reply that is being uploaded, whatever the caller's
deadline: a device that died on the way was seen to hold it for 190 s. So each reply is
pulled alone, in a thread that is given up when time is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple, TypeVar

from flwr.app import Message
from flwr.serverapp import Grid

logger = logging.getLogger(__name__)
T = TypeVar("T")
SHORTEST, LONGEST = 0.01, 0.3  # seconds between two looks for a reply
RATE = 50  # looks in a second, for all replies together
AT_ONCE = 8  # looks that run at the same time, stuck ones not counted
STUCK_S = 5.0


class Sent(NamedTuple):
    """A message whose reply is still to come.

    Attributes:
        key: What the sender calls it.
        since: When it was sent.
    """

    key: int
    since: float


class Mail:
    """Sends messages, and gives replies as they come.

    Args:
        grid: Flower's.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._outbox: list[tuple[int, Message]] = []
        self._waiting: dict[str, Sent] = {}
        self._looks: dict[str, float] = {}  # that run, and since when
        self._due: dict[str, float] = {}
        self._found: SimpleQueue[tuple[str, list[Message]]] = SimpleQueue()

    def post(self, key: int, message: Message) -> None:
        """Send a message with the next look for replies."""
        self._outbox.append((key, message))

    def waiting(self) -> Collection[int]:
        """Keys of messages whose replies are still to come."""
        sent = [sent.key for sent in self._waiting.values()]
        return [*sent, *(key for key, _ in self._outbox)]

    def drop(self, keys: Collection[int]) -> None:
        """Replies to these are not wanted any more."""
        self._outbox = [one for one in self._outbox if one[0] not in keys]
        left = {n: sent for n, sent in self._waiting.items() if sent.key not in keys}
        self._waiting = left

    def next(self, until: float) -> tuple[int, Message] | None:
        """The next reply and its key; None at ``until``, or when none is to come."""
        self._push(until)
        while self._waiting:
            self._look()
            left = until - time.monotonic()
            if left <= 0:
                return None
            try:
                name, replies = self._found.get(timeout=min(SHORTEST, left))
            except Empty:
                continue
            self._looks.pop(name, None)
            sent = self._waiting.get(name)
            for reply in replies:
                if sent is not None and reply.metadata.reply_to_message_id == name:
                    del self._waiting[name]
                    return sent.key, reply
        return None

    def _push(self, until: float) -> None:
        """Send what is in the outbox; what cannot be sent will have no reply."""
        if not self._outbox:
            return
        batch, self._outbox = self._outbox, []
        messages = [message for _, message in batch]
        names = within(until, lambda: list(self._grid.push_messages(messages)))
        now = time.monotonic()
        for (key, _), name in zip(batch, names or (), strict=False):
            if name:  # Flower gives None for what it could not send
                self._waiting[name] = Sent(key, now)
                self._due[name] = now + SHORTEST

    def _look(self) -> None:
        """Begin to pull replies whose turn it is."""
        now = time.monotonic()
        fresh = sum(now - since < STUCK_S for since in self._looks.values())
        for name, sent in list(self._waiting.items()):
            if fresh >= AT_ONCE:
                return
            if name in self._looks or self._due.get(name, 0.0) > now:
                continue
            longest = max(LONGEST, len(self._waiting) / RATE)
            pause = min(max((now - sent.since) / 4, SHORTEST), longest)
            self._looks[name], self._due[name] = now, now + pause
            Thread(target=self._pull, args=(name,), daemon=True).start()
            fresh += 1

    def _pull(self, name: str) -> None:
        replies: list[Message] = []
        try:
            replies = list(self._grid.pull_messages([name]))
        except Exception as error:  # noqa: BLE001 - it is tried again until time is up
            logger.warning("no replies could be fetched: %s", error)
        self._found.put((name, replies))


def within(until: float, call: Callable[[], T]) -> T | None:
    """What a call gives before a time; None if it fails, or takes longer."""
    found: SimpleQueue[T | None] = SimpleQueue()

    def run() -> None:
        try:
            found.put(call())
        except Exception as error:  # noqa: BLE001 - a transport may fail in any way
            logger.warning("the transport failed: %s", error)
            found.put(None)

    Thread(target=run, daemon=True).start()
    try:
        return found.get(timeout=max(until - time.monotonic(), 0.0))
    except Empty:
        logger.warning("the transport did not answer in time")
        return None


def asked(
    grid: Grid, messages: Mapping[int, Message], until: float
) -> Iterator[tuple[int, Message]]:
    """Replies to messages, by their keys, as they come; until a time at most."""
    mail = Mail(grid)
    for key, message in messages.items():
        mail.post(key, message)
    while (found := mail.next(until)) is not None:
        yield found
