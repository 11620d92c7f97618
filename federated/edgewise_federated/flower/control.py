"""What a SuperLink is told to do: Flower's Control API.

The command ``flwr`` says the same, and takes seconds each time to be loaded. What of
Flower is used here is not public (see ``version.private``).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from edgewise.errors import ConfigError, FederatedError
from edgewise_federated.flower.calls import is_known_key, said_by
from edgewise_federated.flower.version import private

REQUESTS = "flwr.proto.control_pb2"
BUILD = "flwr.cli.build"


class State(NamedTuple):
    """What a run is at, in Flower's words.

    Attributes:
        status: pending, starting, running or finished.
        how: It ended: completed, failed or stopped.
        details: Why.
    """

    status: str
    how: str
    details: str


class Control:
    """Tells a SuperLink what to do.

    Args:
        address: HOST:PORT.
        authority: Certificate by which the server is known; None: no TLS.
    """

    def __init__(self, address: str, authority: Path | None) -> None:
        client = private("flwr.supercore.control", "ControlHttpClient")
        versions = private(
            "flwr.supercore.interceptors.http.runtime_version",
            "RuntimeVersionHttpInterceptor",
        )
        self._client = client.from_server_address(
            address,
            authority is None,
            None if authority is None else authority.read_bytes(),
            interceptors=[versions(component_name="flwr CLI")],
        )

    def __enter__(self) -> Self:
        """Keep the line open."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the line."""
        self._client.close()

    def register(self, public: Path) -> None:
        """Let the node with a key in; one that is in already stays.

        Raises:
            ConfigError: The file holds no key for nodes.
            FederatedError: The key was refused.
        """
        try:
            key = load_ssh_public_key(public.read_bytes())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{public}: no public key: {error}") from error
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise ConfigError(f"{public}: want a key of ECDSA, as for P-384")
        to_bytes = private(
            "flwr.supercore.primitives.asymmetric", "public_key_to_bytes"
        )
        request = private(REQUESTS, "RegisterNodeRequest")
        message = request(public_key=to_bytes(key), name=public.stem)
        try:
            self._client.RegisterNode(message)
        except httpx.HTTPStatusError as error:
            if not is_known_key(error.response):
                raise _refused(f"key {public}", error) from error

    def start(self, app: Path) -> int:
        """Run the app in a folder; the number of its run.

        Raises:
            FederatedError: Flower does not take it.
        """
        content = _packed(app)
        fab = private("flwr.supercore.fab", "Fab")
        to_proto = private("flwr.common.serde", "fab_to_proto")
        packed = to_proto(fab(hashlib.sha256(content).hexdigest(), content, {}))
        request = private(REQUESTS, "StartRunRequest")
        answer = self._asked("the app", self._client.StartRun, request(fab=packed))
        return int(answer.run_id)

    def state(self, run: int) -> State:
        """What a run is at."""
        request = private(REQUESTS, "ListRunsRequest")
        answer = self._asked("runs", self._client.ListRuns, request(run_id=run))
        status = answer.run_dict[run].status
        return State(status.status, status.sub_status, status.details)

    def stop(self, run: int) -> None:
        """End a run."""
        request = private(REQUESTS, "StopRunRequest")
        self._asked("the run", self._client.StopRun, request(run_id=run))

    def _asked(self, what: str, call: Callable[[Any], Any], message: Any) -> Any:
        try:
            return call(message)
        except httpx.HTTPStatusError as error:
            raise _refused(what, error) from error
        except httpx.TransportError as error:
            raise FederatedError(f"the SuperLink is gone: {error}") from error


def _packed(app: Path) -> bytes:
    """An app as Flower sends it.

    Raises:
        FederatedError: It is none, or too large.
    """
    build = private(BUILD, "build_fab_from_disk")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Flower's own affairs
            return bytes(build(app))
    except (OSError, ValueError) as error:
        text = " ".join(str(error).split())
        raise FederatedError(f"{app}: Flower takes no such app: {text}") from error


def _refused(what: str, error: httpx.HTTPStatusError) -> FederatedError:
    """What the server said, in our words."""
    said = said_by(error.response)
    reason = said.get("message") or said.get("detail") or error
    return FederatedError(f"the SuperLink refused {what}: {reason}")
