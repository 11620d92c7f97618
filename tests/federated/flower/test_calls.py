"""Requests of a node: sent again where that helps, and an error at once where not."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from edgewise.errors import ConfigError, FederatedError
from edgewise_federated.flower import calls
from edgewise_federated.flower.calls import (
    Calls,
    OverError,
    Place,
    UnknownNodeError,
    waits,
)
from edgewise_federated.flower.certificates import make_certificates, make_node_keys
from edgewise_federated.flower.link import UNKNOWN, Link
from edgewise_federated.flower.version import private


class Door(ThreadingHTTPServer):
    """Answers with one status after the other, the last one for ever.

    Attributes:
        answers: (status, body) to come.
        asked: How many requests came.
    """

    answers: list[tuple[int, bytes]]
    asked = 0

    @property
    def place(self) -> Place:
        return Place(f"127.0.0.1:{self.server_port}")


class Answer(BaseHTTPRequestHandler):
    server: Door

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        door = self.server
        door.asked += 1
        status, body = door.answers.pop(0) if door.answers[1:] else door.answers[0]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the same
        """Say nothing."""


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.01)
    with Door(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def pull(place: Place, stop: Event | None = None) -> Any:
    """Ask for messages, as a node does all the time."""
    asked = Calls(place, stop or Event())
    request = private("flwr.proto.fleet_pb2", "PullMessagesRequest")
    with asked.client as client:
        return asked.send(client.PullMessages, request())


def test_what_passes_is_waited_for(door: Door) -> None:
    door.answers = [(503, b""), (429, b""), (502, b""), (504, b""), (200, b"")]
    assert len(pull(door.place).messages_list) == 0
    assert door.asked == 5


@pytest.mark.parametrize(
    ("status", "error"), [(401, UnknownNodeError), (412, UnknownNodeError)]
)
def test_a_node_that_is_not_known_hears_it(
    door: Door, status: int, error: type[Exception]
) -> None:
    door.answers = [(status, b'{"detail": "who?"}')]
    with pytest.raises(error):
        pull(door.place)
    assert door.asked == 1


def test_a_node_is_patient_with_a_server_that_just_began(
    door: Door, tmp_path: Path
) -> None:
    """Between the first answer of a SuperLink and the last key are some seconds."""
    response = private("flwr.proto.fleet_pb2", "ActivateNodeResponse")(node_id=7)
    door.answers = [(401, b""), (401, b""), (200, response.SerializeToString())]
    (key,) = make_node_keys(tmp_path, ["pi"])
    link = Link(door.place._replace(key=key), Event())
    link.open()
    assert link.node == 7


def test_a_node_that_stays_unknown_gives_up(door: Door, tmp_path: Path) -> None:
    door.answers = [(401, b"")]
    (key,) = make_node_keys(tmp_path, ["pi"])
    with pytest.raises(FederatedError, match="does not know this node's key"):
        Link(door.place._replace(key=key), Event()).open()
    assert door.asked == UNKNOWN


def test_a_run_that_is_over_is_over(door: Door) -> None:
    door.answers = [(403, b"")]
    with pytest.raises(OverError):
        pull(door.place)


@pytest.mark.parametrize("status", [400, 404, 418, 500])
def test_a_refusal_is_one_error(door: Door, status: int) -> None:
    door.answers = [(status, b"because " + b"x" * 10_000)]
    with pytest.raises(FederatedError, match=f"HTTP {status}: because") as caught:
        pull(door.place)
    assert len(str(caught.value)) < 400


def test_what_stands_in_between_is_no_superlink(door: Door) -> None:
    door.answers = [(200, b"<html>Log in to this network</html>")]
    with pytest.raises(FederatedError, match="is no SuperLink"):
        pull(door.place)


def test_a_node_that_stops_waits_no_longer(door: Door) -> None:
    door.answers = [(503, b"")]
    stop = Event()
    stop.set()
    with pytest.raises(OverError):
        pull(door.place, stop)
    assert door.asked == 1


def test_a_server_without_tls_is_refused(door: Door, tmp_path: Path) -> None:
    door.answers = [(200, b"")]
    files = make_certificates(tmp_path, [])
    place = door.place._replace(authority=files.authority)
    with pytest.raises(FederatedError, match="does not speak TLS"):
        pull(place)


def test_waits_grow_to_a_minute() -> None:
    assert list(islice(waits(), 9)) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("content", [None, b"", b"no key"])
def test_a_file_without_a_key_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="no private key"):
        Calls(Place("localhost:1", None, path), Event())


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    form = Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()
    path.write_bytes(Ed25519PrivateKey.generate().private_bytes(*form))
    with pytest.raises(ConfigError, match="want a key of ECDSA"):
        Calls(Place("localhost:1", None, path), Event())


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_without_a_certificate_is_refused(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="no certificate"):
        Calls(Place("localhost:1", path), Event())
