"""A device's part in secure sums, on its disk: each step may be another process.

What a step needs of the last is kept until the device has revealed its shares, and is
gone then: nobody can ask it twice.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from edgewise.errors import CheckpointError, FederatedError
from edgewise.format.whole import replace
from edgewise_federated.secure.masks import Words
from edgewise_federated.secure.messages import Keys
from edgewise_federated.secure.party import Party, Secrets, listed

IDENTITY, PINS, STATE, LOCK = "identity", "known.json", "round.json", "vault.lock"
FEWEST = 3  # parties: of two each knows the other's part of the sum
UNKNOWN = 2  # a threshold, until the parties of a round are known


class Vault:
    """The keys of one device, and its part in the round that is under way.

    Args:
        folder: Where; who else runs here cannot read it.
        known: Public identity keys of all nodes, by their names; None: whoever is seen
            first under a name keeps it.
    """

    def __init__(self, folder: Path, known: Mapping[str, bytes] | None = None) -> None:
        self._folder, self._known = folder, known

    def identity(self) -> bytes:
        """The public half of the device's lasting key, which is made if need be."""
        with self._locked():
            return self._key().public_key().public_bytes_raw()

    def keys(self, run: str, number: int, index: int) -> bytes:
        """Begin a round: public keys for the others, signed."""
        with self._locked():
            party = Party(index, UNKNOWN, self._key())
            self._keep(run, number, party)
            return party.advertise().to_bytes()

    def shares(
        self,
        run: str,
        number: int,
        threshold: int,
        keys: Mapping[int, bytes],
        names: Mapping[int, str],
        identities: Mapping[int, bytes],
    ) -> dict[int, bytes]:
        """Sealed shares of the device's secrets for all others.

        Args:
            run: Of the server.
            number: Of the round.
            threshold: Parties that must stay to the end.
            keys: What all parties sent, by index.
            names: Of their nodes.
            identities: Public identity keys, as the server has them.

        Raises:
            FederatedError: The others are too few, or not who they should be.
        """
        count = len(keys)
        if count < FEWEST or not count < 2 * threshold <= 2 * count:
            raise FederatedError(
                f"secure aggregation of {count} devices of whom {threshold} are enough:"
                f" want {FEWEST} devices, and more than half of them"
            )
        with self._locked():
            facts = self._round(run, number)
            facts["threshold"] = threshold
            party = Party.restored(facts)
            trusted = self._trusted(names, identities)
            sealed = party.share(
                {i: Keys.from_bytes(data) for i, data in keys.items()}, trusted
            )
            self._keep(run, number, party)
            return sealed

    def masks(
        self, run: str, number: int, boxes: Mapping[int, bytes]
    ) -> Callable[[Words], Words]:
        """What hides the words of the device, once.

        Args:
            run: Of the server.
            number: Of the round.
            boxes: Shares that others made for this device, by their index.
        """

        def mask(words: Words) -> Words:
            with self._locked():
                party = Party.restored(self._round(run, number))
                hidden = party.mask(words, boxes)
                self._keep(run, number, party)
                return hidden

        return mask

    def reveal(
        self, run: str, number: int, survivors: Collection[int]
    ) -> dict[int, bytes]:
        """Shares to take masks off with; the device's part ends, and is forgotten.

        Raises:
            FederatedError: It has ended before, or the survivors are not enough.
        """
        with self._locked():
            party = Party.restored(self._round(run, number))
            shares = party.reveal(survivors)
            (self._folder / STATE).unlink()
            return shares

    def _trusted(
        self, names: Mapping[int, str], identities: Mapping[int, bytes]
    ) -> dict[int, bytes]:
        """The identity key of each party, as this device knows it."""
        if self._known is not None:
            strange = [i for i, name in names.items() if name not in self._known]
            if strange:
                raise FederatedError(f"parties that nobody knows: {listed(strange)}")
            return {i: self._known[name] for i, name in names.items()}
        path = self._folder / PINS
        try:
            pins = json.loads(path.read_bytes()) if path.exists() else {}
            new = {name: identities[i].hex() for i, name in names.items()} | pins
            found = {i: bytes.fromhex(new[name]) for i, name in names.items()}
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{path}: damaged: {error}") from error
        if new != pins:
            self._write(path, new)
        return found

    def _key(self) -> Ed25519PrivateKey:
        path = self._folder / IDENTITY
        if not path.exists():
            self._write(path, Secrets.drawn().own.hex())
        try:
            secret = bytes.fromhex(json.loads(path.read_bytes()))
            return Ed25519PrivateKey.from_private_bytes(secret)
        except ValueError as error:
            raise CheckpointError(f"{path}: damaged: {error}") from error

    def _keep(self, run: str, number: int, party: Party) -> None:
        facts = {"run": run, "number": number, **party.facts()}
        self._write(self._folder / STATE, facts)

    def _round(self, run: str, number: int) -> dict[str, Any]:
        """The facts of the round that is under way.

        Raises:
            FederatedError: It is another, or over.
        """
        path = self._folder / STATE
        try:
            facts: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise FederatedError(
                f"round {number}: this device takes no part in it, or has done so"
            ) from error
        except ValueError as error:
            raise CheckpointError(f"{path}: damaged: {error}") from error
        if (facts["run"], facts["number"]) != (run, number):
            raise FederatedError(f"round {number}: this device is in another")
        return facts

    def _write(self, path: Path, content: object) -> None:
        text = json.dumps(content).encode()
        try:
            replace(path, lambda file: file.write(text))
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be written: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise CheckpointError(f"{self._folder}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
