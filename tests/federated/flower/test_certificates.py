"""Who is who: TLS accepts the server by our authority, and by no other."""

from __future__ import annotations

import json
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    load_ssh_private_key,
    load_ssh_public_key,
)

from edgewise.errors import ConfigError
from edgewise_federated.flower.certificates import (
    Certificates,
    make_certificates,
    make_node_keys,
    public_of,
)

HOSTS = ("localhost", "127.0.0.1", "::1", "fleet.example.org")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("c") / "certs", HOSTS)


def shake(files: Certificates, authority: Path, host: str) -> None:
    """A TLS handshake between a client and a server in memory."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.server, files.server_key)
    client = ssl.create_default_context(cafile=str(authority))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(down, up, server_hostname=host),
        server.wrap_bio(up, down, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


@pytest.mark.parametrize("host", HOSTS)
def test_a_client_accepts_the_server_by_every_name(
    files: Certificates, host: str
) -> None:
    shake(files, files.authority, host)


def test_a_client_refuses_another_name(files: Certificates) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake(files, files.authority, "other.example.org")


def test_a_client_refuses_another_authority(
    files: Certificates, tmp_path: Path
) -> None:
    other = make_certificates(tmp_path, HOSTS)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(files, other.authority, "localhost")


def test_others_cannot_read_what_was_written(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certs", HOSTS)
    make_node_keys(tmp_path / "certs", ["a"])
    found = [p for p in (tmp_path / "certs").rglob("*") if p.is_file()]
    assert len(found) == 6
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    make_certificates(tmp_path, HOSTS)
    make_node_keys(tmp_path, ["a"])
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(ConfigError, match="is there already"):
        make_certificates(tmp_path, HOSTS)
    with pytest.raises(ConfigError, match="is there already"):
        make_node_keys(tmp_path, ["b", "a"])
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_an_authority_signs_again_where_the_server_is_gone(tmp_path: Path) -> None:
    first = make_certificates(tmp_path, HOSTS)
    kept = first.authority.read_bytes()
    first.server.unlink()
    first.server_key.unlink()
    second = make_certificates(tmp_path, ["new.example.org"])
    assert second.authority.read_bytes() == kept
    shake(second, second.authority, "new.example.org")


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_authority_signs_nothing(
    tmp_path: Path, damage: bytes | None
) -> None:
    files = make_certificates(tmp_path, HOSTS)
    files.server.unlink()
    files.server_key.unlink()
    if damage is None:
        files.authority_key.unlink()
    else:
        files.authority_key.write_bytes(damage)
    with pytest.raises(ConfigError, match=r"ca\.key"):
        make_certificates(tmp_path, HOSTS)
    assert not files.server.exists()


def test_the_key_of_another_authority_signs_nothing(tmp_path: Path) -> None:
    files, other = (make_certificates(tmp_path / n, HOSTS) for n in ("a", "b"))
    files.server.unlink()
    files.server_key.unlink()
    files.authority_key.write_bytes(other.authority_key.read_bytes())
    with pytest.raises(ConfigError, match="not the key of"):
        make_certificates(tmp_path / "a", HOSTS)


@pytest.mark.parametrize("host", ["", "a b", "host:443", "http://x", "-x", "a" * 254])
def test_what_is_no_host_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError, match="without a port"):
        make_certificates(tmp_path / "certs", [host])
    assert not (tmp_path / "certs").exists()


def test_this_machine_is_in_it_anyway(tmp_path: Path) -> None:
    files = make_certificates(tmp_path, [])
    shake(files, files.authority, "127.0.0.1")


def test_keys_of_nodes_are_what_flower_reads(tmp_path: Path) -> None:
    (path,) = make_node_keys(tmp_path, ["pi-1"])
    key = load_ssh_private_key(path.read_bytes(), None)
    public = load_ssh_public_key(public_of(path).read_bytes())
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP384R1)
    assert key.public_key() == public


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x.pub", "a b"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="want a name"):
        make_node_keys(tmp_path, ["good", name])
    assert list(tmp_path.iterdir()) == []


def test_the_command_makes_all_and_adds_nodes(tmp_path: Path) -> None:
    def call(*arguments: str) -> list[str]:
        line = [sys.executable, "-m", "edgewise", "federate", "certificates"]
        done = subprocess.run(
            [*line, *arguments, "--json"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        return [Path(file).name for file in json.loads(done.stdout)["files"]]

    made = call("certs", "--host", "fleet.example.org", "--node", "a")
    assert made == ["ca.crt", "ca.key", "server.crt", "server.key", "a"]
    assert call("certs", "--node", "b") == ["b"]
