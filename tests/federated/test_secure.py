"""Secure aggregation: sums are exact, words stay hidden, what is wrong is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from edgewise.errors import FederatedError
from edgewise_federated.secure import Collector, Keys, Party, Reveal, aggregated
from edgewise_federated.secure.masks import PIECE
from edgewise_federated.secure.messages import OWN, PAIRWISE

Array = np.ndarray[Any, Any]


def drawn(count: int, size: int, seed: int = 0) -> dict[int, Array]:
    g = np.random.default_rng(seed)
    return {i: g.integers(0, 2**32, size, dtype=np.uint32) for i in range(count)}


def summed(rows: Iterable[Array]) -> Array:
    return np.sum(list(rows), axis=0, dtype=np.uint32)


def signers(count: int) -> tuple[list[Ed25519PrivateKey], dict[int, bytes]]:
    keys = [Ed25519PrivateKey.generate() for _ in range(count)]
    return keys, {i: key.public_key().public_bytes_raw() for i, key in enumerate(keys)}


class Round:
    """Parties that have shared their secrets; ``late`` ones never did."""

    def __init__(self, count: int, threshold: int, late: Iterable[int] = ()) -> None:
        self.parties = {i: Party(i, threshold) for i in range(count)}
        advertised = {i: party.advertise() for i, party in self.parties.items()}
        for i in late:
            del self.parties[i]
        sent = {i: party.share(advertised) for i, party in self.parties.items()}
        self.keys = {i: advertised[i] for i in sent}
        self.boxes = {i: {j: sent[j][i] for j in sent if j != i} for i in sent}

    def masked(self, words: dict[int, Array], who: Iterable[int]) -> Array:
        return summed(self.parties[i].mask(words[i], self.boxes[i]) for i in who)


@pytest.mark.parametrize("size", [0, 1, 15, 2410, PIECE, PIECE + 1])
def test_sums_are_those_of_numpy(size: int) -> None:
    words = drawn(4, size)
    np.testing.assert_array_equal(aggregated(words, 3), summed(words.values()))


@pytest.mark.parametrize("value", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_extremes_wrap_around(value: int) -> None:
    words = {i: np.full(7, value, np.uint32) for i in range(5)}
    assert aggregated(words, 2).tolist() == [5 * value % 2**32] * 7


def test_words_given_are_not_written() -> None:
    words = drawn(3, 50)
    before = {i: row.copy() for i, row in words.items()}
    aggregated(words, 2)
    for i, row in before.items():
        np.testing.assert_array_equal(words[i], row)


@pytest.mark.parametrize("lost", range(32))
def test_every_pattern_of_drop_outs(lost: int) -> None:
    words = drawn(5, 33, lost)
    gone = {i for i in words if lost >> i & 1}
    left = {i: None if i in gone else row for i, row in words.items()}
    if len(gone) <= 2:
        want = summed(row for row in left.values() if row is not None)
        np.testing.assert_array_equal(aggregated(left, 3), want)
    else:
        with pytest.raises(FederatedError, match=f"{5 - len(gone)} of 5 .* needs 3"):
            aggregated(left, 3)


def test_indices_may_have_gaps_and_come_from_numpy() -> None:
    rows = drawn(4, 20)
    places = np.array([7, 2**32 - 2, 0, 300])
    words = {place: rows[i] for i, place in enumerate(places)}
    np.testing.assert_array_equal(aggregated(words, 3), summed(rows.values()))
    words[places[1]] = None
    want = summed(rows[i] for i in (0, 2, 3))
    np.testing.assert_array_equal(aggregated(words, 3), want)


@pytest.mark.parametrize("revealing", [(1, 2), (1, 4), (2, 4), (1, 2, 4)])
def test_parties_vanish_before_and_after_each_step(revealing: tuple[int, ...]) -> None:
    words = drawn(5, 40)
    r = Round(5, 2, late=[3])
    total = r.masked(words, (1, 2, 4))
    reveals = {i: r.parties[i].reveal([1, 2, 4]) for i in revealing}
    got = Collector(2).unmask(total, r.keys, [1, 2, 4], reveals)
    np.testing.assert_array_equal(got, summed(words[i] for i in (1, 2, 4)))


def test_one_reveal_below_the_threshold_is_named() -> None:
    r = Round(5, 4)
    total = r.masked(drawn(5, 8), range(5))
    reveals = {i: r.parties[i].reveal(range(5)) for i in range(3)}
    with pytest.raises(FederatedError, match=r"3 of 5 parties are there.* needs 4"):
        Collector(4).unmask(total, r.keys, range(5), reveals)


def test_masked_words_look_uniform() -> None:
    size = 1 << 18
    r = Round(3, 2)
    masked = r.parties[0].mask(np.zeros(size, np.uint32), r.boxes[0])
    unit = masked / 2**32
    # Each within five deviations of its estimate.
    assert abs(unit.mean() - 0.5) < 5 * np.sqrt(1 / 12 / size)
    assert abs(unit.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / size)
    for place in range(4):
        counts = np.bincount(masked.view(np.uint8)[place::4], minlength=256)
        chi = ((counts - size / 256) ** 2 / (size / 256)).sum()
        assert abs(chi - 255) < 6 * np.sqrt(2 * 255)


def test_masks_differ_from_run_to_run_and_from_party_to_party() -> None:
    zeros = np.zeros(1000, np.uint32)
    rounds = Round(3, 2), Round(3, 2)
    rows = [r.parties[i].mask(zeros, r.boxes[i]) for r in rounds for i in r.parties]
    for a, b in itertools.combinations(rows, 2):
        assert (a == b).mean() < 0.01
        assert (a == -b).mean() < 0.01


def test_masks_of_pairs_alone_do_not_cancel_before_the_end() -> None:
    words = drawn(3, 1000)
    total = Round(3, 2).masked(words, range(3))
    assert (total == summed(words.values())).mean() < 0.01


@pytest.mark.parametrize("place", [0, 5, 12, 60, -1])
def test_a_tampered_sealed_share_is_refused(place: int) -> None:
    r = Round(3, 2)
    box = bytearray(r.boxes[0][1])
    box[place] ^= 1
    with pytest.raises(FederatedError, match="share of party 1 is damaged"):
        r.parties[0].mask(np.zeros(4, np.uint32), {**r.boxes[0], 1: bytes(box)})


@pytest.mark.parametrize("size", [0, 5, 12, 28, 116])
def test_a_cut_sealed_share_is_refused(size: int) -> None:
    r = Round(3, 2)
    with pytest.raises(FederatedError, match="damaged"):
        r.parties[0].mask(
            np.zeros(4, np.uint32), {**r.boxes[0], 1: r.boxes[0][1][:size]}
        )


def test_a_share_sealed_for_another_is_refused() -> None:
    r = Round(3, 2)
    own = r.boxes[1][0]  # sent back to the one that sealed it: the cipher is the same
    for wrong in (own, r.boxes[2][1], r.boxes[0][2]):
        with pytest.raises(FederatedError, match="share of party 1"):
            r.parties[0].mask(np.zeros(4, np.uint32), {**r.boxes[0], 1: wrong})


def test_keys_changed_on_the_way_open_no_share() -> None:
    a, b, c = (Party(i, 2) for i in range(3))
    keys = {p.index: p.advertise() for p in (a, b, c)}
    a.share(keys)
    sent = b.share(
        {**keys, 2: c.advertise()._replace(channel=Party(2, 2).advertise().channel)}
    )
    a.mask(np.zeros(4, np.uint32), {1: sent[0]})
    c.share(keys)
    with pytest.raises(FederatedError, match="share of party 1 is damaged"):
        c.mask(np.zeros(4, np.uint32), {1: sent[2]})


def test_a_round_with_signatures() -> None:
    lasting, known = signers(3)
    parties = [Party(i, 2, lasting[i]) for i in range(3)]
    keys = {p.index: Keys.from_bytes(p.advertise().to_bytes()) for p in parties}
    for party in parties:
        assert party.share(keys, known).keys() == {0, 1, 2} - {party.index}


def test_a_wrong_signature_is_refused() -> None:
    lasting, known = signers(3)
    parties = [Party(i, 2, lasting[i]) for i in range(3)]
    keys = {p.index: p.advertise() for p in parties}
    good = keys[1]
    stranger = Party(1, 2, Ed25519PrivateKey.generate()).advertise()
    elsewhere = Party(2, 2, lasting[1]).advertise()
    bad = bytes((good.signature[0] ^ 1,)) + good.signature[1:]
    swapped = good._replace(channel=good.pairwise, pairwise=good.channel)
    forged = good._replace(channel=stranger.channel)
    for wrong in (
        *(stranger, elsewhere, swapped, forged),
        *(good._replace(signature=s) for s in (bad, b"", good.signature[:-1])),
    ):
        with pytest.raises(FederatedError, match="party 1: its keys are not signed"):
            parties[0].share({**keys, 1: wrong}, known)
    with pytest.raises(FederatedError, match="party 1: no identity key"):
        parties[0].share(keys, {i: known[i] for i in (0, 2)})
    with pytest.raises(FederatedError, match="party 1: its keys"):
        parties[0].share(keys, {**known, 1: known[1][:-1]})


def test_wrong_keys_are_refused() -> None:
    party = Party(0, 3)
    keys = {0: party.advertise()} | {i: Party(i, 3).advertise() for i in (1, 2)}
    one = keys[1]
    cases: list[tuple[dict[int, Keys], str]] = [
        ({i: keys[i] for i in (0, 1)}, "2 of 2 parties are there.* needs 3"),
        ({**keys, 2: one}, "two parties have the same key"),
        ({**keys, 2: keys[2]._replace(pairwise=one.channel)}, "the same key"),
        ({**keys, 0: one}, "party 0 are not what it sent"),
        ({i: keys[i] for i in (1, 2)} | {3: one}, "party 0 are not what it sent"),
        ({**keys, 1: one._replace(channel=one.channel[:-1])}, "32 bytes"),
        ({**keys, 1: one._replace(channel=bytes(32))}, "public key is damaged"),
        ({**keys, -1: Party(1, 3).advertise()}, "impossible index"),
        ({**keys, 2**32: Party(1, 3).advertise()}, "impossible index"),
    ]
    for wrong, message in cases:
        with pytest.raises(FederatedError, match=message):
            party.share(wrong)
    party.share(keys)


def test_both_kinds_of_shares_of_one_party_are_never_given() -> None:
    r = Round(4, 2)
    r.masked(drawn(4, 8), range(4))
    party = r.parties[0]
    first = party.reveal([0, 1, 2])
    assert party.reveal({2, 1, 0}) == first
    kinds = {i: Reveal.from_bytes(data).kind for i, data in first.items()}
    assert kinds == {0: OWN, 1: OWN, 2: OWN, 3: PAIRWISE}
    for other in ([0, 1, 2, 3], [0, 1], [0, 1, 3]):
        with pytest.raises(FederatedError, match="other survivors: both kinds"):
            party.reveal(other)


def test_requests_that_fit_no_round_are_refused() -> None:
    r = Round(5, 3, late=[4])
    r.masked(drawn(4, 8), range(4))
    for asked, message in (
        ([1, 2, 3], "party 0 is not among the survivors"),
        ([0, 1], "2 of 4 parties are there.* needs 3"),
        ([0, 1, 2, 4], "shared nothing: 4"),
    ):
        with pytest.raises(FederatedError, match=message):
            r.parties[0].reveal(asked)
