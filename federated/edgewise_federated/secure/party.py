"""What one device does in a round of secure aggregation."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from edgewise.errors import FederatedError
from edgewise_federated.secure.masks import (
    Words,
    agreed,
    blend,
    checked,
    pair_seed,
    private_key,
    public,
)
from edgewise_federated.secure.messages import (
    KEY_BYTES,
    MAX_INDEX,
    OWN,
    PAIRWISE,
    Keys,
    Reveal,
    Share,
)
from edgewise_federated.secure.shamir import enough, split

NONCE_BYTES = 12


class Secrets(NamedTuple):
    """What a party draws for one round; each has 32 bytes.

    Attributes:
        channel: Private key that shares are sealed with.
        pairwise: Private key that the masks of two parties come from.
        own: Seed of the party's own mask.
    """

    channel: bytes
    pairwise: bytes
    own: bytes

    @classmethod
    def drawn(cls) -> Secrets:
        """New ones."""
        return cls(*(os.urandom(32) for _ in cls._fields))


class Party:
    """One device in one round; its four steps come in order, each once.

    Args:
        index: Number of the party in this round, from 0.
        threshold: Parties that must stay to the end; at least 2.
        identity: Lasting key to sign this round's keys with.
        secrets: Of this round; None: new ones.
    """

    def __init__(
        self,
        index: int,
        threshold: int,
        identity: Ed25519PrivateKey | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        if not 0 <= index <= MAX_INDEX:
            raise FederatedError(f"a party's index is 0 to {MAX_INDEX}, got {index}")
        if threshold < 2:
            raise FederatedError(f"a threshold is at least 2 parties, got {threshold}")
        self.index, self.threshold = int(index), threshold
        self._secrets = secrets or Secrets.drawn()
        self._channel = private_key(self._secrets.channel)
        self._pairwise = private_key(self._secrets.pairwise)
        self._own = self._secrets.own
        keys = Keys(public(self._channel), public(self._pairwise))
        if identity is not None:
            keys = keys._replace(signature=identity.sign(signed(index, keys)))
        self._keys = keys
        self._others: dict[int, Keys] = {}
        self._ciphers: dict[int, ChaCha20Poly1305] = {}
        self._held: dict[int, Share] = {}
        self._masked = False
        self._survivors: frozenset[int] | None = None

    def advertise(self) -> Keys:
        """Public keys for all others (round 0)."""
        return self._keys

    def share(
        self, keys: Mapping[int, Keys], known: Mapping[int, bytes] | None = None
    ) -> dict[int, bytes]:
        """One sealed share of this party's secrets for each other party (round 1).

        Args:
            keys: What all parties of the round advertised, this one included.
            known: Public identity keys (Ed25519, 32 bytes) by index; with them, keys
                without a right signature are refused.
        """
        if self._ciphers:
            raise FederatedError(f"party {self.index} has shared its secrets already")
        self._check(keys, known)
        others = {i: keys[i] for i in sorted(keys) if i != self.index}
        ciphers = {i: self._cipher(theirs) for i, theirs in others.items()}
        own = split(self._own, self.threshold, keys)
        pairwise = split(self._pairwise.private_bytes_raw(), self.threshold, keys)
        mine = {i: Share(self.index, i, own[i], pairwise[i]) for i in keys}
        self._others, self._ciphers = others, ciphers
        self._held = {self.index: mine[self.index]}
        return {i: sealed(cipher, mine[i]) for i, cipher in ciphers.items()}

    def mask(self, words: Words, sealed: Mapping[int, bytes]) -> Words:
        """The words under this party's own mask and those of pairs (round 2).

        Args:
            words: What to add up, modulo 2**32.
            sealed: Shares that others made for this party, by their index; parties
                without one have dropped out before.
        """
        if not self._ciphers or self._masked:
            order = (
                "has masked its words already" if self._masked else "must share first"
            )
            raise FederatedError(f"party {self.index} {order}")
        if unknown := sealed.keys() - self._ciphers.keys():
            raise FederatedError(
                f"shares of parties outside the round: {listed(unknown)}"
            )
        enough(len(sealed) + 1, len(self._ciphers) + 1, self.threshold)
        out = checked(words, "words to mask").copy()
        held = {
            i: opened(self._ciphers[i], i, self.index, data)
            for i, data in sealed.items()
        }
        seeds = {i: pair_seed(self._pairwise, self._others[i].pairwise) for i in held}
        for i, seed in seeds.items():
            blend(seed, np.add if self.index > i else np.subtract, out)
        blend(self._own, np.add, out)
        self._held |= held
        self._masked = True
        return out

    def reveal(self, survivors: Collection[int]) -> dict[int, bytes]:
        """Shares for the server to take masks off with (round 4).

        Of parties that survived, shares of their own masks; of those that dropped out
        since they shared, shares of their pairwise keys. Whoever had both could read
        the party's words, so the first request is the only one that is answered.
        """
        asked = frozenset(survivors)
        if not self._masked:
            raise FederatedError(f"party {self.index} must mask its words first")
        if self._survivors not in {None, asked}:
            raise FederatedError(
                f"party {self.index} has revealed shares for other survivors: both "
                "kinds of shares of one party would uncover its words"
            )
        if unknown := asked - self._held.keys():
            raise FederatedError(f"survivors that shared nothing: {listed(unknown)}")
        if self.index not in asked:
            raise FederatedError(f"party {self.index} is not among the survivors")
        enough(len(asked), len(self._held), self.threshold)
        self._survivors = asked
        return {
            i: (
                Reveal(OWN, share.own)
                if i in asked
                else Reveal(PAIRWISE, share.pairwise)
            ).to_bytes()
            for i, share in self._held.items()
        }

    def facts(self) -> dict[str, Any]:
        """All that the party is, as plain values that ``restored`` takes.

        Whoever reads them can read what the party sends in this round.
        """
        return {
            "index": self.index,
            "threshold": self.threshold,
            "secrets": [secret.hex() for secret in self._secrets],
            "keys": self._keys.to_bytes().hex(),
            "others": {i: k.to_bytes().hex() for i, k in self._others.items()},
            "held": {i: share.to_bytes().hex() for i, share in self._held.items()},
            "masked": self._masked,
        }

    @classmethod
    def restored(cls, facts: Mapping[str, Any]) -> Party:
        """A party as it was when it gave its facts, before it revealed anything."""
        secrets = Secrets(*map(bytes.fromhex, facts["secrets"]))
        party = cls(facts["index"], facts["threshold"], None, secrets)
        party._keys = Keys.from_bytes(bytes.fromhex(facts["keys"]))
        party._others = {
            int(i): Keys.from_bytes(bytes.fromhex(text))
            for i, text in facts["others"].items()
        }
        party._ciphers = {i: party._cipher(k) for i, k in party._others.items()}
        party._held = {
            int(i): Share.from_bytes(bytes.fromhex(text))
            for i, text in facts["held"].items()
        }
        party._masked = facts["masked"]
        return party

    def _check(
        self, keys: Mapping[int, Keys], known: Mapping[int, bytes] | None
    ) -> None:
        enough(len(keys), len(keys), self.threshold)
        if keys.get(self.index) != self._keys:
            raise FederatedError(f"the keys of party {self.index} are not what it sent")
        if wrong := [i for i in keys if not 0 <= i <= MAX_INDEX]:
            raise FederatedError(f"parties with an impossible index: {listed(wrong)}")
        halves = [half for theirs in keys.values() for half in theirs[:2]]
        if any(len(half) != KEY_BYTES for half in halves):
            raise FederatedError(f"a party's key does not have {KEY_BYTES} bytes")
        if len(set(halves)) != len(halves):
            raise FederatedError("two parties have the same key")
        if known is not None:
            for i, theirs in keys.items():
                verify(i, theirs, known.get(i))

    def _cipher(self, theirs: Keys) -> ChaCha20Poly1305:
        both = sorted(keys.channel + keys.pairwise for keys in (self._keys, theirs))
        label = b"edgewise secure channel 1" + b"".join(both)
        return ChaCha20Poly1305(agreed(self._channel, theirs.channel, label))


def signed(index: int, keys: Keys) -> bytes:
    """The bytes that a signature of keys is over."""
    place = int(index).to_bytes(4, "little")
    return b"edgewise secure keys 1" + place + keys.channel + keys.pairwise


def verify(index: int, keys: Keys, identity: bytes | None) -> None:
    """Refuse keys that the party of this index did not sign."""
    if identity is None:
        raise FederatedError(f"party {index}: no identity key is known to check it by")
    try:
        key = Ed25519PublicKey.from_public_bytes(identity)
        key.verify(keys.signature, signed(index, keys))
    except (InvalidSignature, ValueError) as error:
        raise FederatedError(f"party {index}: its keys are not signed by it") from error


def sealed(cipher: ChaCha20Poly1305, share: Share) -> bytes:
    """A share that only its holder can read."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, share.to_bytes(), None)


def opened(cipher: ChaCha20Poly1305, owner: int, holder: int, data: bytes) -> Share:
    """The share in what ``sealed`` made; it must be of this owner, for this holder."""
    try:
        content = cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None)
    except (InvalidTag, ValueError) as error:
        raise FederatedError(f"the sealed share of party {owner} is damaged") from error
    share = Share.from_bytes(content)
    if (share.owner, share.holder) != (owner, holder):
        raise FederatedError(f"the sealed share of party {owner} is not for {holder}")
    return share


def listed(indices: Collection[int]) -> str:
    """Indices as a text."""
    return ", ".join(map(str, sorted(indices)))
