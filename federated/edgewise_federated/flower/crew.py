"""The nodes of a SuperLink as the devices of our loop."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Seal
from edgewise_federated.flower.mail import Mail, asked, within
from edgewise_federated.flower.messages import (
    MEMBER,
    ORDER,
    member_of,
    order_content,
    reply_of,
)
from edgewise_federated.flower.phases import Place, with_boxes
from edgewise_federated.flower.sealing import Line, Sealed
from edgewise_federated.order import Member, Order, Reply
from edgewise_federated.resident import Told
from edgewise_federated.update import Layout

logger = logging.getLogger(__name__)
LOOK_S = 0.3  # between two looks for nodes


class Nodes:
    """Devices behind a Grid; they have numbers in the order in which they came.

    Args:
        grid: Flower's.
        config: Of the run.
        layout: Of what travels.
    """

    def __init__(self, grid: Grid, config: FederatedConfig, layout: Layout) -> None:
        self._grid, self._config, self._layout = grid, config, layout
        self._mail = Mail(grid)
        self._run = secrets.token_hex(8)
        self._nodes: list[int] = []
        self._members: dict[int, Member] = {}  # by node
        self._identities: dict[int, bytes] = {}  # by node
        self._refused: set[int] = set()
        self._asked: dict[int, int] = {}  # number of the last order, by device
        self._used: dict[int, int] = {}  # of the last whose answer was used
        self._seal: Sealed | None = None

    @property
    def size(self) -> int:
        """How many have ever come."""
        return len(self._nodes)

    def now(self) -> float:
        """Seconds that no change of the wall clock moves."""
        return time.monotonic()

    def present(self, want: int) -> Sequence[int]:
        """Who is there; waits for those that are wanted, ``deadline_s`` at most.

        All of them are waited for at the beginning, later the quorum.

        Raises:
            FederatedError: Too few came.
        """
        end = self.now() + self._config.deadline_s
        least = max(math.ceil(self._config.quorum * want), 1) if want else 0
        enough = least if self._members else want
        there: list[int] = []
        while True:
            found = self._there(end)
            # A look that time ran out for tells nothing: the one before it counts.
            there = there if found is None else found
            if len(there) >= enough:
                return there
            if self.now() >= end:
                break
            time.sleep(LOOK_S)
        if len(there) >= least:
            return there
        raise FederatedError(
            f"{len(there)} nodes are there after {self._config.deadline_s:g} s; want"
            f" {least} at least (quorum={self._config.quorum:g} of {want})"
        )

    def _there(self, end: float) -> list[int] | None:
        """Devices that are connected; None if the transport does not say in time.

        New ones say first what they are.
        """
        connected = within(end, lambda: set(self._grid.get_node_ids()))
        if connected is None:
            return None
        # Who comes later would change the chances that privacy was accounted with.
        closed = self._config.privacy is not None and bool(self._nodes)
        new = connected - self._members.keys() - self._refused
        if new and not (closed and new.isdisjoint(self._nodes)):
            self._introduce(sorted(new), end, closed)
        return [
            device
            for device, node in enumerate(self._nodes)
            if node in connected and node in self._members
        ]

    def _introduce(self, new: Sequence[int], end: float, closed: bool) -> None:
        """Ask nodes what they are; those that do not say it are left out."""
        messages = {
            node: Message(RecordDict(), node, MEMBER, ttl=self._config.deadline_s)
            for node in new
            if not closed or node in self._nodes
        }
        for node, reply in asked(self._grid, messages, end):
            try:
                self._members[node], self._identities[node] = member_of(
                    reply, self._layout
                )
            except FederatedError as error:
                logger.warning("node %d is left out: %s", node, error)
        self._refused |= messages.keys() - self._members.keys()
        known = set(self._nodes)
        self._nodes += [n for n in new if n in self._members and n not in known]

    def member(self, device: int) -> Member:
        """What a node said of itself."""
        return self._members[self._nodes[device]]

    def seal(self, number: int, devices: Sequence[int], until: float) -> Seal:
        """Keys and shares, over messages."""
        whole = [i for i in devices if self.member(i).sends.hash == self._layout.hash]
        nodes = {device: self._nodes[device] for device in whole}
        line = Line(
            self._ask,
            self.now,
            {device: str(node) for device, node in nodes.items()},
            {device: self._identities[node] for device, node in nodes.items()},
        )
        self._seal = Sealed(line, Place(self._run, number), whole, until)
        return self._seal

    def _ask(
        self, kind: str, contents: Mapping[int, RecordDict], until: float
    ) -> dict[int, Message]:
        """Replies to a message to each of some devices, that come until a time."""
        messages = {
            device: self._message(device, kind, content)
            for device, content in contents.items()
        }
        return dict(asked(self._grid, messages, until))

    def _message(self, device: int, kind: str, content: RecordDict) -> Message:
        # Who comes to life later than this is not to do what is not wanted any more.
        ttl = self._config.deadline_s
        return Message(content, self._nodes[device], kind, ttl=ttl)

    def send(self, device: int, order: Order) -> None:
        """Ask a node; the message goes out with the next look for replies."""
        told = Told(self._run, device, self._used.get(device, 0))
        content = order_content(order, told, self._layout.hash)
        if order.sums is not None and self._seal is not None:
            content = with_boxes(content, self._seal.boxes(device))
        self._asked[device] = order.number
        self._mail.post(device, self._message(device, ORDER, content))

    def next(self, until: float) -> Reply | None:
        """The next reply."""
        found = self._mail.next(until)
        if found is None:
            return None
        device, message = found
        number, sends = self._asked[device], self.member(device).sends
        reply = reply_of(message, device, number, sends, self._seal is not None)
        if self._seal is None or reply.update is None:
            return reply
        sent = reply.bytes + self._seal.overhead(device)
        return reply._replace(update=reply.update.replace(bytes=sent), bytes=sent)

    def forget(self, devices: Collection[int]) -> None:
        """Late replies are dropped unread."""
        self._mail.drop(devices)

    def busy(self) -> Mapping[int, int]:
        """Nodes that have not answered yet."""
        return {device: self._asked[device] for device in self._mail.waiting()}

    def settle(self, taken: Collection[int]) -> None:
        """Nodes are told with their next order."""
        self._used |= {device: self._asked[device] for device in taken}

    def facts(self) -> dict[str, Any]:
        """Nothing: nodes come and go."""
        return {}

    def memory(self) -> dict[str, Array]:
        """Who has which number, and whose answers were used."""
        used = [self._used.get(device, 0) for device in range(self.size)]
        return {
            "run": np.frombuffer(self._run.encode(), np.uint8),
            "nodes": np.asarray(self._nodes, np.uint64),
            "used": np.asarray(used, np.int64),
        }

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave; nodes say anew what they are."""
        self._run = memory["run"].tobytes().decode()
        self._nodes = [int(node) for node in memory["nodes"]]
        self._used = {i: int(n) for i, n in enumerate(memory["used"]) if n}
        self._members.clear()
