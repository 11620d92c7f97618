"""What goes without certificates: this machine, or what somebody asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgewise.errors import ConfigError
from edgewise_federated.flower.certificates import make_certificates
from edgewise_federated.flower.trust import (
    is_loopback,
    place_of,
    split,
    want_certificates,
)

CA, KEY = Path("ca.crt"), Path("key")
HERE = ("127.0.0.1:8000", "127.8.9.1:1", "localhost:65535", "[::1]:8000")
THERE = ("192.168.1.4:8000", "fleet.example.org:8000", "[fe80::1]:8000", "0.0.0.0:80")


@pytest.mark.parametrize("address", HERE)
def test_this_machine_may_go_without(address: str) -> None:
    assert place_of(address, None, None, insecure=False).address == address


@pytest.mark.parametrize("address", THERE)
@pytest.mark.parametrize("given", [(None, None), (CA, None)])
def test_others_may_not(address: str, given: tuple[Path | None, Path | None]) -> None:
    with pytest.raises(ConfigError, match=r"want --ca and --key.*certificates"):
        place_of(address, *given, insecure=False)


@pytest.mark.parametrize("address", THERE)
def test_others_may_with_both_or_where_it_was_asked_for(address: str) -> None:
    assert place_of(address, CA, KEY, insecure=False) == (address, CA, KEY)
    assert place_of(address, None, None, insecure=True) == (address, None, None)


def test_a_key_wants_tls() -> None:
    with pytest.raises(ConfigError, match="--key without --ca"):
        place_of("localhost:8000", None, KEY, insecure=True)


@pytest.mark.parametrize(
    "address",
    [
        *("", "host", ":8000", "host:", "host:x", "host:0", "host:65536"),
        *("::1:80", "h:-1", "[]:80", "host:\u0661", "host:100000"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="want HOST:PORT"):
        split(address)


def test_names_and_numbers() -> None:
    assert split("[::1]:8000") == ("::1", 8000)
    assert split("a.b:1") == ("a.b", 1)
    assert not is_loopback("localhost.example.org")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "a.org"])  # noqa: S104 - nothing is opened
def test_an_open_server_wants_certificates(host: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="want --certificates"):
        want_certificates(host, None, insecure=False)
    want_certificates(host, None, insecure=True)
    with pytest.raises(ConfigError, match=r"ca\.crt: is not there"):
        want_certificates(host, tmp_path, insecure=False)
    make_certificates(tmp_path, [host])
    want_certificates(host, tmp_path, insecure=False)


def test_a_server_for_this_machine_wants_none() -> None:
    want_certificates("127.0.0.1", None, insecure=False)
