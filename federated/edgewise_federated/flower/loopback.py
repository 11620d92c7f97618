"""A Grid whose nodes live in this process: Flower's apps without sockets or Ray."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from edgewise_federated.flower.identity import identify

FAILED = 2  # Flower's code of an app that raised
POLL_S = 0.001
Fault = Callable[[Message, Message], "Message | None"]


class Loopback(Grid):
    """Nodes that run a client app in threads of this process.

    Args:
        app: What they run.
        nodes: How many; node ``i`` of them has the id ``i + 1`` and ``partition-id``
            ``i``, as Flower's simulated nodes have one.
        node_config: More of what each is told.
        fault: Sees each request and its reply, and gives the reply, another, or None
            for a reply that never comes; it may raise and sleep. For tests.
        workers: Threads.
    """

    def __init__(
        self,
        app: ClientApp,
        nodes: int,
        node_config: Mapping[str, str | int | float | bool] | None = None,
        fault: Fault | None = None,
        workers: int = 1,
    ) -> None:
        identify()
        self._app, self._fault = app, fault
        self._run: Any = None
        self._contexts = {
            i + 1: Context(
                run_id=1,
                node_id=i + 1,
                node_config={
                    **(node_config or {}),
                    "partition-id": i,
                    "num-partitions": nodes,
                },
                state=RecordDict(),
                run_config={},
            )
            for i in range(nodes)
        }
        self._pool = ThreadPoolExecutor(workers)
        self._replies: dict[str, Future[Message | None]] = {}

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._pool.shutdown(cancel_futures=True)

    def context(self, node: int) -> Context:
        """What a node is told, and keeps."""
        return self._contexts[node]

    @property
    def run(self) -> Any:
        """What ``set_run`` was given."""
        return self._run

    def set_run(self, run: Any) -> None:
        """Remember a run; nothing here needs one."""
        self._run = run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """As Flower's deprecated way of ``Message(...)``."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """All nodes."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Begin to run the app over each message."""
        names = []
        for message in messages:
            name = uuid4().hex
            # As Flower's own grids set it: a message has no public way to be named.
            message.metadata.__dict__["_message_id"] = name
            self._replies[name] = self._pool.submit(self._answer, message)
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies that are there."""
        done = [name for name in message_ids if name in self._replies]
        done = [name for name in done if self._replies[name].done()]
        found = [self._replies.pop(name).result() for name in done]
        return [reply for reply in found if reply is not None]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Push messages, and pull until all replies are there or time is up."""
        left, found = set(self.push_messages(messages)), []
        end = None if timeout is None else time.monotonic() + timeout
        while left and (end is None or time.monotonic() < end):
            replies = list(self.pull_messages(left))
            found += replies
            left -= {reply.metadata.reply_to_message_id for reply in replies}
            time.sleep(POLL_S)
        return found

    def _answer(self, message: Message) -> Message | None:
        """What comes back of a node: it owns a copy of what it was sent."""
        context = self._contexts[message.metadata.dst_node_id]
        try:
            reply = self._app(copy.deepcopy(message), context)
            return self._fault(message, reply) if self._fault else reply
        except Exception as error:  # noqa: BLE001 - as Flower's runtime answers it
            return Message(Error(FAILED, repr(error)), reply_to=message)
