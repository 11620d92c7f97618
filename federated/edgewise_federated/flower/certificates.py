"""Who is who between real nodes: an authority, a server's certificate, keys of nodes.

The authority signs the server's certificate (X.509, RFC 5280), by which nodes know the
server; keys of nodes (ECDSA over P-384, in OpenSSH's format, as Flower wants them) are
registered with the server, by which it knows them.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edgewise.errors import ConfigError

AUTHORITY_YEARS = 10
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SERVER_DAYS = 397  # what browsers and others accept at most
HOST = re.compile(r"(?=.{1,253}$)(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}\w)?\.?)+")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Certificates(NamedTuple):
    """Files of a folder.

    Attributes:
        authority: Certificate by which nodes know the server.
        authority_key: Its private key: signs further servers, and stays at home.
        server: The server's certificate.
        server_key: Its private key.
    """

    authority: Path
    authority_key: Path
    server: Path
    server_key: Path


def files_of(folder: Path) -> Certificates:
    """What the files of a folder are called."""
    return Certificates(
        *(folder / name for name in ("ca.crt", "ca.key", "server.crt", "server.key"))
    )


def key_of(folder: Path, node: str) -> Path:
    """What a node's private key is called; the public one ends in ``.pub``."""
    return folder / "nodes" / node


def make_certificates(folder: Path, hosts: Sequence[str]) -> Certificates:
    """Write a server's certificate, and the authority that signed it.

    An authority that is there already signs; so a server gets a new certificate when
    ``server.crt`` and ``server.key`` are moved away.

    Args:
        folder: Made if it is not there.
        hosts: Names and addresses by which nodes on other machines dial the server.

    Raises:
        ConfigError: A host is none, a file is there already, or the authority is none.
        OSError: A file cannot be written.
    """
    # The server's own processes dial it, too.
    names = dict.fromkeys([*hosts, *LOOPBACK])
    alternatives = [_alternative(host) for host in names]
    files = files_of(folder)
    _want_free((files.server, files.server_key))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not files.authority.exists():
        _make_authority(files)
    authority, authority_key = _authority_of(files)
    key = ec.generate_private_key(ec.SECP256R1())
    server = _server(key, authority, authority_key, alternatives)
    _write(files.server_key, _private(key, PrivateFormat.PKCS8))
    _write(files.server, server.public_bytes(Encoding.PEM))
    return files


def make_node_keys(folder: Path, nodes: Sequence[str]) -> tuple[Path, ...]:
    """Write a pair of keys for each node; the paths of the private ones.

    Raises:
        ConfigError: A name is none, or a file is there already.
        OSError: A file cannot be written.
    """
    for node in nodes:
        if not NAME.fullmatch(node) or node.endswith(".pub"):
            raise ConfigError(f"node {node!r}: want a name of letters, digits, . _ -")
    paths = tuple(key_of(folder, node) for node in nodes)
    _want_free([file for path in paths for file in (path, public_of(path))])
    for path in paths:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP384R1())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        _write(path, _private(key, PrivateFormat.OpenSSH))
        _write(public_of(path), public + f" {path.name}\n".encode())
    return paths


def public_of(key: Path) -> Path:
    """Where the public half of a private key is."""
    return key.with_name(f"{key.name}.pub")


def public_keys(folder: Path) -> tuple[Path, ...]:
    """The public keys of all nodes of a folder, by name."""
    return tuple(sorted((folder / "nodes").glob("*.pub")))


def _alternative(host: str) -> x509.GeneralName:
    """A host as a certificate names it."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        if not HOST.fullmatch(host):
            raise ConfigError(
                f"host {host!r}: want a name or an address, without a port"
            ) from None
        return x509.DNSName(host)


def _make_authority(files: Certificates) -> None:
    """Write a certificate that may sign others, but no authorities."""
    _want_free((files.authority, files.authority_key))
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "edgewise authority")])
    usage = _usage(key_cert_sign=True, crl_sign=True)
    days = 365 * AUTHORITY_YEARS
    builder = (
        _builder(key, name, name, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    _write(files.authority_key, _private(key, PrivateFormat.PKCS8))
    made = builder.sign(key, hashes.SHA256())
    _write(files.authority, made.public_bytes(Encoding.PEM))


def _authority_of(
    files: Certificates,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """The authority of a folder.

    Raises:
        ConfigError: A file is missing or damaged, or they do not belong together.
    """
    try:
        authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
        key = load_pem_private_key(files.authority_key.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{files.authority_key}: no authority: {error}") from error
    if (
        not isinstance(key, ec.EllipticCurvePrivateKey)
        or key.public_key() != authority.public_key()
    ):
        raise ConfigError(f"{files.authority_key}: not the key of {files.authority}")
    return authority, key


def _server(
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    alternatives: Sequence[x509.GeneralName],
) -> x509.Certificate:
    """The certificate of a server that is dialled by any of these names."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "edgewise server")])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(
        authority_key.public_key()
    )
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = (
        _builder(key, name, authority.subject, SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(purpose, critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(issuer, critical=False)
    )
    return builder.sign(authority_key, hashes.SHA256())


def _builder(
    key: ec.EllipticCurvePrivateKey, name: x509.Name, issuer: x509.Name, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    subject = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))  # clocks of edge boards
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(subject, critical=False)
    )


def _usage(**uses: bool) -> x509.KeyUsage:
    names = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{name: uses.get(name, False) for name in names})


def _private(key: ec.EllipticCurvePrivateKey, form: PrivateFormat) -> bytes:
    """A key as a file holds it: without a password, for machines that start alone."""
    return key.private_bytes(Encoding.PEM, form, NoEncryption())


def _want_free(paths: Sequence[Path]) -> None:
    """Raise where something would be overwritten."""
    for path in paths:
        if path.exists() or path.is_symlink():
            raise ConfigError(f"{path}: is there already; name another folder or node")


def _write(path: Path, content: bytes) -> None:
    """A new file that its owner alone can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
