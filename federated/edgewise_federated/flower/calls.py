"""Requests to a SuperLink that are sent until they are answered, or make no sense."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, NoReturn

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from edgewise.errors import ConfigError, FederatedError
from edgewise_federated.flower.version import private

logger = logging.getLogger(__name__)
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds between two attempts
OVERLOADED = (429, 502, 503, 504)  # states of HTTP that pass
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")  # as OpenSSL says it


class UnknownNodeError(Exception):
    """The SuperLink does not know this node, or not any more."""


class KnownKeyError(Exception):
    """The SuperLink knows the key that was to be registered."""


class OverError(Exception):
    """Nothing more is to be done: the run of a message ended, or this node stops."""


class Place(NamedTuple):
    """Where a SuperLink is, and who this node is to it.

    Attributes:
        address: HOST:PORT.
        authority: Certificate by which the server is known; None: no TLS.
        key: Private key of this node; None: a new one, for servers that ask for none.
    """

    address: str
    authority: Path | None = None
    key: Path | None = None


class Calls:
    """The requests of one node, signed with its key.

    Args:
        place: Where to.
        stop: Set from outside: waits end.

    Attributes:
        client: Flower's; its methods go to ``send``.
        public: The public key, PEM.
    """

    def __init__(self, place: Place, stop: Event) -> None:
        self._place, self._stop = place, stop
        key = _key(place.key)
        to_bytes = "flwr.supercore.primitives.asymmetric", "public_key_to_bytes"
        self.public: bytes = private(*to_bytes)(key.public_key())
        self.client = _client(place, key)

    def send(self, call: Callable[[Any], Any], message: Any) -> Any:
        """Send a request until it is answered.

        Raises:
            UnknownNodeError: The SuperLink does not know this node.
            KnownKeyError: It knows the key that was to be registered.
            OverError: There is nobody to answer to any more.
            FederatedError: It refuses, or is not who it should be.
        """
        for wait in waits():
            try:
                return call(message)
            except httpx.HTTPStatusError as error:
                if error.response.status_code not in OVERLOADED:
                    self._refused(error.response)
                problem: Exception = error
            except httpx.TransportError as error:
                self._want_trust(error)
                problem = error
            except ValueError as error:  # as what stands between answers for the server
                raise FederatedError(
                    f"{self._place.address} is no SuperLink: {error}"
                ) from error
            except SystemExit as error:  # as Flower ends where versions do not fit
                raise FederatedError(
                    f"{self._place.address} runs a Flower that does not fit"
                ) from error
            logger.warning(
                "no answer from %s (%s); again in %.0f s",
                self._place.address,
                problem or type(problem).__name__,
                wait,
            )
            if self._stop.wait(wait):
                raise OverError from problem
        raise AssertionError("waits have no end")

    def _refused(self, response: httpx.Response) -> NoReturn:
        if is_known_key(response):
            raise KnownKeyError
        if response.status_code in (401, 412):
            raise UnknownNodeError
        if response.status_code == 403:
            raise OverError
        raise FederatedError(
            f"{self._place.address} refused a request: HTTP {response.status_code}:"
            f" {response.text[:200]}"
        )

    def _want_trust(self, error: BaseException) -> None:
        """Raise where trying again makes no certificate better."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise FederatedError(
                    f"{self._place.address} is not who it should be by"
                    f" {self._place.authority}: {cause.verify_message}"
                ) from error
            if isinstance(cause, ssl.SSLError) and cause.reason in NO_TLS:
                raise FederatedError(
                    f"{self._place.address} does not speak TLS"
                ) from error
            cause = cause.__cause__ or cause.__context__


def said_by(response: httpx.Response) -> Mapping[str, Any]:
    """What a SuperLink says of an error; nothing where it is none of its own."""
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def is_known_key(response: httpx.Response) -> bool:
    """Whether a key was refused because it is registered already."""
    codes = private("flwr.supercore.error", "ApiErrorCode")
    return bool(said_by(response).get("code") == codes.PUBLIC_KEY_ALREADY_IN_USE)


def waits() -> Iterator[float]:
    """Seconds to wait after each attempt: twice as long each time, up to a minute."""
    wait = FIRST_WAIT
    while True:
        yield wait
        wait = min(2 * wait, LONGEST_WAIT)


def _client(place: Place, key: ec.EllipticCurvePrivateKey) -> Any:
    """Flower's, which signs what it sends.

    Raises:
        ConfigError: The certificate is none.
    """
    client = private("flwr.supernode.fleet_http_client", "FleetHttpClient")
    signed = private(
        "flwr.supernode.node_auth_http_interceptor", "NodeAuthHttpInterceptor"
    )
    versions = private(
        "flwr.supercore.interceptors.http.runtime_version",
        "RuntimeVersionHttpInterceptor",
    )
    authority = place.authority
    try:
        return client.from_server_address(
            place.address,
            authority is None,
            None if authority is None else authority.read_bytes(),
            interceptors=[
                versions(component_name="SuperNode"),
                signed(key, key.public_key()),
            ],
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{authority}: no certificate: {error}") from error


def _key(path: Path | None) -> ec.EllipticCurvePrivateKey:
    """A node's key: of a file, or a new one.

    Raises:
        ConfigError: The file holds none.
    """
    if path is None:
        return ec.generate_private_key(ec.SECP384R1())
    try:
        key = load_ssh_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path}: no private key: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{path}: want a key of ECDSA, as for P-384")
    return key
