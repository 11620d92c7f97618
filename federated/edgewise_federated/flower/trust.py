"""What may go without certificates: nothing that leaves this machine, unless asked."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from edgewise.errors import ConfigError
from edgewise_federated.flower.calls import Place
from edgewise_federated.flower.certificates import files_of

WAY_OUT = (
    "`edgewise federate certificates` makes them; --insecure is for networks that"
    " nobody else can reach"
)


def place_of(
    address: str, authority: Path | None, key: Path | None, *, insecure: bool
) -> Place:
    """Where a node dials, if it may.

    Args:
        address: HOST:PORT, [HOST]:PORT for IPv6.
        authority: Certificate by which the server is known.
        key: Private key of this node.
        insecure: Whether to do without, also beyond this machine.

    Raises:
        ConfigError: The address is none, or something is missing for it.
    """
    host = split(address)[0]
    if key is not None and authority is None:
        raise ConfigError("--key without --ca: keys of nodes go over TLS alone")
    if not (insecure or is_loopback(host)) and (authority is None or key is None):
        raise ConfigError(
            f"{address} is not this machine: want --ca and --key; {WAY_OUT}"
        )
    return Place(address, authority, key)


def want_certificates(host: str, folder: Path | None, *, insecure: bool) -> None:
    """Raise where a server would be open to others, or its certificates are missing.

    Raises:
        ConfigError: So it is.
    """
    if folder is None:
        if not (insecure or is_loopback(host)):
            raise ConfigError(
                f"--host {host} is reached by others: want --certificates; {WAY_OUT}"
            )
        return
    files = files_of(folder)
    for path in (files.authority, files.server, files.server_key):
        if not path.is_file():
            raise ConfigError(f"{path}: is not there; {WAY_OUT}")


def split(address: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``.

    Raises:
        ConfigError: It is none.
    """
    host, colon, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plain = port.isascii() and port.isdecimal() and len(port) < 6
    if not (colon and bare and plain and 0 < int(port) < 65536) or (
        bare == host and ":" in host
    ):
        raise ConfigError(f"{address!r}: want HOST:PORT, as fleet.example.org:8000")
    return bare, int(port)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine for all who dial it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
