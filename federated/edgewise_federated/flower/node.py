"""A node in one process: it asks a SuperLink for messages and answers them.

A stock SuperNode runs code that the server sends, in a process for each message. This
one runs the app that is installed with it, in its own process, and nothing else: what
the server sends are arrays and numbers.
"""

from __future__ import annotations

import logging
import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from types import FrameType

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp

from edgewise.errors import FederatedError
from edgewise_federated.flower.calls import (
    FIRST_WAIT,
    OverError,
    Place,
    UnknownNodeError,
)
from edgewise_federated.flower.identity import identify
from edgewise_federated.flower.link import HEARTBEAT, Link

logger = logging.getLogger(__name__)
POLL = 0.3  # seconds; a tenth of it slows two cores down more than it gains
APP_RAISED, NODE_LEFT = 2, 5  # as Flower numbers errors
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupted(BaseException):
    """Raised into the work of a message where the node is told to stop."""


class Node:
    """Answers messages until it is told to stop.

    Args:
        app: What answers them.
        place: Where the SuperLink is.
        config: What the app is told of this node, as ``partition-id``.
        poll: Seconds between two looks for a message.
    """

    def __init__(
        self,
        app: ClientApp,
        place: Place,
        config: Mapping[str, bool | float | str],
        poll: float = POLL,
    ) -> None:
        self._app, self._config, self._poll = app, dict(config), poll
        self._stop, self._working = Event(), False
        self._state: dict[int, RecordDict] = {}
        self._link = Link(place, self._stop)

    def run(self) -> None:
        """Serve; returns when it was told to stop, by ``stop`` or a signal.

        Raises:
            FederatedError: The SuperLink does not take this node.
        """
        identify()
        with self._signals():
            try:
                self._link.open()
                logger.info("node %d is there", self._link.node)
                Thread(target=self._live, name="heartbeat", daemon=True).start()
                while not self._stop.is_set():
                    self._serve()
            except (OverError, Interrupted):
                logger.info("stopped")
            finally:
                self._stop.set()
                self._link.close()

    def stop(self) -> None:
        """End: at once, also in the middle of work, which is then answered so."""
        self._stop.set()
        if self._working and current_thread() is main_thread():
            raise Interrupted

    def _serve(self) -> None:
        """Answer one message, if there is one."""
        try:
            message = self._link.receive()
            if message is None:
                self._stop.wait(self._poll)
                return
            start = time.monotonic()
            reply = self._answer(message)
            seconds = time.monotonic() - start
            self._link.send(reply, seconds)
            if reply.has_content():
                logger.info("%s: %.2f s", message.metadata.message_type, seconds)
        except OverError:
            logger.info("a message was dropped: its run is over")
        except UnknownNodeError:  # a server without a database began anew
            logger.warning("forgotten by the server; back again")
            self._link.open()
        except FederatedError as error:
            logger.warning("a message was dropped: %s", error)
            self._stop.wait(FIRST_WAIT)

    def _answer(self, message: Message) -> Message:
        """What the app says; an error where it raises, as a stock node answers."""
        metadata = message.metadata
        context = Context(
            run_id=metadata.run_id,
            node_id=self._link.node,
            node_config=self._config,
            state=self._state.setdefault(metadata.run_id, RecordDict()),
            run_config={},
        )
        try:
            self._working = True
            reply = self._app(message, context)
        except Interrupted:
            return Message(Error(NODE_LEFT, "the node was stopped"), reply_to=message)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            logger.warning("%s failed: %s", metadata.message_type, text)
            logger.debug("as follows", exc_info=True)
            return Message(Error(APP_RAISED, text), reply_to=message)
        finally:
            self._working = False
        self._state = {metadata.run_id: context.state}  # of this run: others are over
        return reply

    def _live(self) -> None:
        """Say that this node lives, also while it is at work."""
        while not self._stop.wait(HEARTBEAT * random.uniform(0.5, 0.7)):  # noqa: S311
            self._link.beat()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """A signal stops the node; a second one of its kind does what it always did."""
        if current_thread() is not main_thread():
            yield
            return

        def stop(number: int, _frame: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)
            self.stop()

        before = {number: signal.signal(number, stop) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
