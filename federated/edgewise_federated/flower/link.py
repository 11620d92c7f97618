"""A node's line to a SuperLink: Flower's Fleet API, protobuf over HTTP.

What of Flower is used here is not public (see ``version.private``): it is the least
that a node needs, and what a stock SuperNode does with it starts three processes.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from threading import Event
from typing import Any

import httpx
from flwr.app import Message

from edgewise.errors import FederatedError
from edgewise_federated.flower.calls import (
    Calls,
    KnownKeyError,
    OverError,
    Place,
    UnknownNodeError,
    waits,
)
from edgewise_federated.flower.version import private

logger = logging.getLogger(__name__)
FLEET, WIRE = "flwr.proto.fleet_pb2", "flwr.proto.message_pb2"
TREES = "flwr.supercore.inflatable.inflatable_object"
HEARTBEAT = 30.0  # seconds after two of which a silent node is taken for gone
UNKNOWN = 4  # attempts, in 15 seconds, at a server that does not know this node
# Seconds between looks for a part that the server does not have whole yet, and looks
# until it is given up: a server app that was killed never sends the rest.
LOOK, LOOKS = 0.5, 40


class Link:
    """A line that comes back by itself, until it is told to stop.

    Args:
        place: Where to.
        stop: Set from outside: waits end.
    """

    def __init__(self, place: Place, stop: Event) -> None:
        self._place, self._stop = place, stop
        self._calls = Calls(place, stop)
        self._client = self._calls.client
        self._node: Any = None

    @property
    def node(self) -> int:
        """What the SuperLink calls this node."""
        return int(self._node.node_id)

    def open(self) -> None:
        """Tell the SuperLink that this node is there.

        Raises:
            OverError: This node was stopped before it was heard.
            FederatedError: It does not want this node, or is not who it should be.
        """
        if self._place.key is None:
            self._register()
        answer = self._activated()
        self._node = private("flwr.proto.node_pb2", "Node")(node_id=answer.node_id)

    def _activated(self) -> Any:
        """What the SuperLink calls this node; it may just be learning the fleet's keys.

        Raises:
            OverError: This node was stopped before it was heard.
            FederatedError: The SuperLink does not get to know it.
        """
        request = private(FLEET, "ActivateNodeRequest")
        message = request(public_key=self._calls.public, heartbeat_interval=HEARTBEAT)
        for _, wait in zip(range(UNKNOWN), waits(), strict=False):
            try:
                return self._calls.send(self._client.ActivateNode, message)
            except UnknownNodeError:
                address = self._place.address
                logger.info("%s does not know this node; again in %g s", address, wait)
            if self._stop.wait(wait):
                raise OverError
        raise FederatedError(
            f"{self._place.address} does not know this node's key, or the clocks of"
            " both differ by minutes; register it: edgewise federate server --node"
            " FILE.pub, or flwr supernode register FILE.pub"
        )

    def _register(self) -> None:
        """Make the new key of this node known."""
        request = private(FLEET, "RegisterNodeFleetRequest")
        message = request(public_key=self._calls.public)
        try:
            self._calls.send(self._client.RegisterNode, message)
        except KnownKeyError:
            logger.info("the server has kept this node")
        except UnknownNodeError as error:
            raise FederatedError(
                f"{self._place.address} wants nodes with keys: give --key"
            ) from error

    def close(self) -> None:
        """Tell the SuperLink that this node goes, if it can hear it."""
        leave: list[tuple[Callable[[Any], Any], str]] = [
            (self._client.DeactivateNode, "DeactivateNodeRequest")
        ]
        if self._place.key is None:
            leave.append((self._client.UnregisterNode, "UnregisterNodeFleetRequest"))
        with self._client:
            for call, request in leave if self._node is not None else ():
                try:
                    call(private(FLEET, request)(node_id=self.node))
                except httpx.HTTPError as error:
                    logger.info("not said good-bye: %s", error)
                    return

    def beat(self) -> bool:
        """Say that this node lives; whether that was heard."""
        request = private("flwr.proto.heartbeat_pb2", "SendNodeHeartbeatRequest")
        message = request(node=self._node, heartbeat_interval=HEARTBEAT)
        try:
            return bool(self._client.SendNodeHeartbeat(message).success)
        except httpx.HTTPError as error:
            logger.info("no heartbeat: %s", error)
            return False

    def receive(self) -> Message | None:
        """The next message to this node, whole; None where there is none.

        Raises:
            UnknownNodeError: The SuperLink has forgotten this node.
            OverError: Its run ended on the way, or sends no more of it.
        """
        request = private(FLEET, "PullMessagesRequest")
        answer = self._calls.send(self._client.PullMessages, request(node=self._node))
        if not answer.messages_list:
            return None
        metadata = answer.messages_list[0].metadata
        trees = private(TREES, "iterate_object_tree")
        names = [tree.object_id for tree in trees(answer.message_object_trees[0])]
        contents = {name: self._object(metadata.run_id, name) for name in names}
        inflate = private(
            "flwr.supercore.inflatable.inflatable_utils", "inflate_object_from_contents"
        )
        try:
            message = inflate(metadata.message_id, contents)
        except (KeyError, ValueError, TypeError) as error:
            raise FederatedError(f"a message is damaged: {error}") from error
        message.metadata.__dict__["_message_id"] = metadata.message_id
        received = private(WIRE, "ConfirmMessageReceivedRequest")(
            node=self._node,
            run_id=metadata.run_id,
            message_object_id=metadata.message_id,
        )
        self._calls.send(self._client.ConfirmMessageReceived, received)
        if not isinstance(message, Message):
            raise FederatedError(f"got a {type(message).__name__}, want a message")
        return message

    def send(self, reply: Message, seconds: float) -> None:
        """Answer a message.

        Args:
            reply: What to.
            seconds: The work took.

        Raises:
            UnknownNodeError: The SuperLink has forgotten this node.
            OverError: The run has ended.
        """
        reply.metadata.__dict__["_message_id"] = reply.object_id
        to_proto = private("flwr.common.serde", "message_to_proto")
        head = private("flwr.app.message.message", "remove_content_from_message")
        with private(TREES, "no_object_id_recompute")():
            objects = private(TREES, "get_all_nested_objects")(reply)
            tree = private(TREES, "get_object_tree")(reply)
            request = private(FLEET, "PushMessagesRequest")(
                node=self._node,
                messages_list=[to_proto(head(reply) if reply.has_content() else reply)],
                message_object_trees=[tree],
                clientapp_runtime_list=[seconds],
            )
            answer = self._calls.send(self._client.PushMessages, request)
            for name in answer.objects_to_push:
                message = private(WIRE, "PushObjectRequest")(
                    node=self._node,
                    run_id=reply.metadata.run_id,
                    object_id=name,
                    object_content=objects[name].deflate(),
                    session_id=answer.session_id,
                )
                if not self._calls.send(self._client.PushObject, message).stored:
                    raise OverError

    def _object(self, run: int, name: str) -> bytes:
        """One part of a message; parts are called by their content's SHA-256."""
        request = private(WIRE, "PullObjectRequest")
        message = request(node=self._node, run_id=run, object_id=name)
        for _ in range(LOOKS):
            answer = self._calls.send(self._client.PullObject, message)
            if not answer.object_found:
                break
            content: bytes = answer.object_content
            if answer.object_available:
                if hashlib.sha256(content).hexdigest() != name:
                    raise FederatedError("part of a message is damaged")
                return content
            if self._stop.wait(LOOK):
                break
        raise OverError
