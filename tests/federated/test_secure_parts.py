"""The parts of secure aggregation: steps in order, messages, shares, fixed point."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import FederatedError
from edgewise_federated.secure import (
    Collector,
    Fixed,
    Keys,
    Party,
    Reveal,
    Share,
    aggregated,
)
from edgewise_federated.secure.messages import MAX_INDEX, OWN, PAIRWISE
from edgewise_federated.secure.shamir import PRIME, at_zero, joined, split

SHARES = st.integers(0, PRIME - 1)
INDICES = st.integers(0, MAX_INDEX)
KEY = st.binary(min_size=32, max_size=32)
KEYS = st.builds(Keys, KEY, KEY, st.just(b"") | st.binary(min_size=64, max_size=64))
MESSAGES = (
    KEYS
    | st.builds(Share, INDICES, INDICES, SHARES, SHARES)
    | st.builds(Reveal, st.sampled_from([OWN, PAIRWISE]), SHARES)
)
ZEROS = np.zeros(4, np.uint32)


def ended(count: int = 3, threshold: int = 2) -> tuple[Any, ...]:
    """A round whose last party vanished after it shared: what a collector is given."""
    parties = [Party(i, threshold) for i in range(count)]
    keys = {p.index: p.advertise() for p in parties}
    sent = [p.share(keys) for p in parties]
    total, alive = ZEROS.copy(), list(range(count - 1))
    for i in alive:
        total += parties[i].mask(
            ZEROS + 1, {j: sent[j][i] for j in range(count) if j != i}
        )
    return total, keys, alive, {i: parties[i].reveal(alive) for i in alive}


def test_steps_come_in_order_and_once() -> None:
    a, b = Party(0, 2), Party(1, 2)
    keys = {0: a.advertise(), 1: b.advertise()}
    assert a.advertise() == keys[0]
    with pytest.raises(FederatedError, match="party 0 must share first"):
        a.mask(ZEROS, {})
    to_a = b.share(keys)[0]
    a.share(keys)
    with pytest.raises(FederatedError, match="party 0 has shared"):
        a.share(keys)
    with pytest.raises(FederatedError, match="party 0 must mask"):
        a.reveal([0, 1])
    a.mask(ZEROS, {1: to_a})
    with pytest.raises(FederatedError, match="party 0 has masked its words already"):
        a.mask(ZEROS, {1: to_a})


def test_too_few_or_foreign_shares_mask_nothing() -> None:
    parties = [Party(i, 3) for i in range(3)]
    keys = {p.index: p.advertise() for p in parties}
    sent = [p.share(keys) for p in parties]
    boxes = {1: sent[1][0], 2: sent[2][0]}
    with pytest.raises(FederatedError, match=r"2 of 3 parties are there.* needs 3"):
        parties[0].mask(ZEROS, {1: boxes[1]})
    for extra in (0, 3):
        with pytest.raises(FederatedError, match=f"outside the round: {extra}"):
            parties[0].mask(ZEROS, {**boxes, extra: boxes[1]})
    for words in (ZEROS.astype(np.int32), ZEROS.reshape(2, 2)):
        with pytest.raises(FederatedError, match="want one axis of uint32"):
            parties[0].mask(words, boxes)
    assert parties[0].mask(ZEROS, boxes).shape == ZEROS.shape


def test_parties_that_protect_nothing_are_refused() -> None:
    for index, threshold in ((-1, 2), (MAX_INDEX + 1, 2), (0, 1), (0, 0)):
        with pytest.raises(FederatedError, match="got"):
            Party(index, threshold)


def test_rows_of_unequal_length_and_nobody_are_refused() -> None:
    with pytest.raises(FederatedError, match=r"unequal numbers of words: \[4, 5\]"):
        aggregated({0: ZEROS, 1: np.zeros(5, np.uint32)}, 2)
    with pytest.raises(FederatedError, match="party 1: got 1 axes of float64"):
        aggregated({0: ZEROS, 1: np.zeros(4)}, 2)
    with pytest.raises(FederatedError, match="0 of 0"):
        aggregated({}, 2)


def test_a_collector_refuses_what_does_not_fit() -> None:
    total, keys, alive, reveals = ended()
    collector = Collector(2)
    assert collector.unmask(total, keys, alive, reveals).tolist() == [2] * 4
    one = reveals[1]
    flipped = bytes((one[0][0], one[0][1] ^ 1)) + one[0][2:]
    other = bytes((PAIRWISE,)) + one[0][1:]
    cases: list[tuple[dict[int, bytes], str]] = [
        ({**one, 0: flipped}, "parties 0, 1 do not fit together"),
        ({**one, 0: other}, "party 1 revealed the other kind of share of party 0"),
        ({**one, 0: one[0][:-1]}, "revealed share: got 40 bytes, want 41"),
        ({0: one[0], 1: one[1]}, "party 1 revealed no share of party 2"),
    ]
    for wrong, message in cases:
        with pytest.raises(FederatedError, match=message):
            collector.unmask(total, keys, alive, {**reveals, 1: wrong})
    swapped = {**keys, 2: Party(2, 2).advertise()}
    with pytest.raises(FederatedError, match="key of party 2 is not its own"):
        collector.unmask(total, swapped, alive, reveals)
    for survivors, given_by in (([0, 1, 7], reveals), (alive, {**reveals, 2: one})):
        with pytest.raises(FederatedError, match="not one of this round's"):
            collector.unmask(total, keys, survivors, given_by)


@given(MESSAGES)
def test_messages_survive_bytes(message: Keys | Share | Reveal) -> None:
    assert type(message).from_bytes(message.to_bytes()) == message


@given(MESSAGES, st.data())
def test_cut_and_longer_messages_are_refused(
    message: Keys | Share | Reveal, data: st.DataObject
) -> None:
    whole = message.to_bytes()
    short = whole[: data.draw(st.integers(0, len(whole) - 1))]
    longer = whole + data.draw(st.binary(min_size=1, max_size=80))
    for wrong in (short, longer):
        with pytest.raises(FederatedError, match=r"got|damaged"):
            type(message).from_bytes(wrong)


@given(st.binary(max_size=140), st.sampled_from([Keys, Share, Reveal]))
def test_any_bytes_are_a_message_or_refused(
    data: bytes, kind: type[Keys | Share | Reveal]
) -> None:
    try:
        message = kind.from_bytes(data)
    except FederatedError:
        return
    assert message.to_bytes() == data


def test_one_message_is_not_taken_for_another() -> None:
    keys, share = Keys(bytes(32), bytes(32)), Share(0, 1, 2, 3)
    for data, kind in ((keys.to_bytes(), Share), (share.to_bytes(), Reveal)):
        with pytest.raises(FederatedError, match="no kind known here"):
            kind.from_bytes(data)
    with pytest.raises(FederatedError, match="not below the prime"):
        Reveal.from_bytes(bytes((OWN,)) + b"\xff" * 40)


@pytest.mark.parametrize(
    "message",
    [
        *(Keys(bytes(31), bytes(33)), Keys(bytes(32), bytes(32), bytes(63))),
        *(Share(-1, 0, 0, 0), Share(0, 2**32, 0, 0), Share(0, 0, -1, 0)),
        *(Share(0, 0, 0, 2**320), Reveal(OWN, -1), Reveal(OWN, 2**320), Reveal(9, 0)),
    ],
)
def test_messages_that_could_not_be_read_are_not_written(
    message: Keys | Share | Reveal,
) -> None:
    with pytest.raises(FederatedError):
        message.to_bytes()


def test_the_modulus_of_shares_is_prime() -> None:
    odd = (PRIME - 1) >> 1  # PRIME is 3 modulo 4: one step of Miller and Rabin's test
    assert PRIME > 2**256
    assert odd % 2 == 1
    g = np.random.default_rng(0)
    for _ in range(40):
        base = int.from_bytes(g.bytes(39), "little") + 2
        assert pow(base, odd, PRIME) in {1, PRIME - 1}


@given(st.binary(min_size=32, max_size=32), st.integers(2, 6), st.data())
def test_any_threshold_of_shares_gives_the_secret(
    secret: bytes, threshold: int, data: st.DataObject
) -> None:
    places = data.draw(st.lists(INDICES, min_size=threshold, max_size=8, unique=True))
    shares = split(secret, threshold, places)
    some = data.draw(st.permutations(places))[:threshold]
    assert joined(shares, at_zero(some)) == secret
    with pytest.raises(FederatedError, match="do not fit together"):
        joined(shares, at_zero(some[1:]))


def test_shares_of_one_secret_differ_from_time_to_time() -> None:
    secret = os.urandom(32)
    first, second = (split(secret, 2, range(3)) for _ in range(2))
    assert not set(first.values()) & set(second.values())


NUMBERS = st.floats(-3, 3, width=32)


@given(
    st.lists(st.tuples(NUMBERS, st.integers(1, 500)), min_size=1, max_size=20),
    st.floats(1e-3, 10),
    st.integers(0, 10**6),
)
def test_means_are_within_half_a_step(
    rows: list[tuple[float, int]], bound: float, spare: int
) -> None:
    weights = [weight for _, weight in rows]
    fixed = Fixed(bound, sum(weights) + spare)
    total = np.zeros(1, np.uint32)
    for value, weight in rows:
        total += fixed.encode(np.array([value], np.float32), weight)
    clipped = np.clip([value for value, _ in rows], -bound, bound)
    want = np.average(clipped, weights=weights)
    room = 0.5 * fixed.step + 1e-13 * bound  # beside it the rounding of float64
    assert abs(fixed.decode(total, sum(weights))[0] - want) <= room


@given(
    st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=30),
    st.sampled_from([-1, 1]),
    st.floats(1e-300, 1e300),
)
def test_sums_never_overflow(weights: list[int], sign: int, bound: float) -> None:
    while sum(weights) > 2**31 - 1:
        weights.pop()
    if not weights:
        return
    fixed = Fixed(bound, sum(weights))
    values = np.array([sign * np.inf, sign * bound, np.nextafter(sign * bound, 0)])
    exact = np.zeros(3, np.int64)
    for weight in weights:
        exact += fixed.encode(values, weight).view(np.int32)
    assert np.abs(exact).max() <= 2**31 - 1
    np.testing.assert_allclose(
        fixed.decode(exact.astype(np.int32).view(np.uint32), sum(weights)),
        np.full(3, sign * bound),
        rtol=1e-9,
    )


def test_numbers_out_of_range_are_refused() -> None:
    for bound, total in ((0.0, 1), (np.nan, 1), (np.inf, 1), (1.0, 0), (1.0, 2**31)):
        with pytest.raises(FederatedError, match="got"):
            Fixed(bound, total)
    fixed = Fixed(1.0, 10)
    for weight in (0, 11):
        with pytest.raises(FederatedError, match="weight is 1 to 10"):
            fixed.encode(np.zeros(1), weight)
        with pytest.raises(FederatedError, match="weight is 1 to 10"):
            fixed.decode(ZEROS, weight)
    with pytest.raises(FederatedError, match="NaN"):
        fixed.encode(np.array([0.0, np.nan]), 1)


def test_a_weighted_mean_through_a_whole_round() -> None:
    g = np.random.default_rng(3)
    fixed, weights = Fixed(2.0, 1000), {0: 100, 1: 250, 2: 40}
    values = {i: g.normal(size=300).astype(np.float32) * 0.4 for i in weights}
    words = {i: fixed.encode(values[i], weights[i]) for i in weights}
    got = fixed.decode(aggregated({**words, 1: None}, 2), 140)
    want = (values[0] * 100.0 + values[2] * 40.0) / 140
    np.testing.assert_allclose(got, want, rtol=0, atol=fixed.step)
