"""Rounds over a transport: who is late, who is lost, and what arrives spoilt."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.federated.conftest import World
from tests.federated.crews import wired

import edgewise as ew
from edgewise_federated import FederatedHistory
from edgewise_federated.order import Reply

Arrivals = list[tuple[float, Reply]]


KINDS = ["good", "late", "lost", "nan", "shape", "name", "large", "text", "none"]


def at_once(reply: Reply) -> Arrivals:
    return [(0.0, reply)]


def parameters(history: FederatedHistory) -> dict[str, np.ndarray]:
    return history.model.parameters()


def same(one: FederatedHistory, other: FederatedHistory) -> bool:
    a, b = parameters(one), parameters(other)
    return all((a[name] == b[name]).all() for name in a)


def odd(reply: Reply) -> bool:
    return reply.device % 4 == 1


def test_who_is_late_is_not_waited_for_and_counted(world: World) -> None:
    def fate(reply: Reply) -> Arrivals:
        return [(70.0 if odd(reply) else 20.0, reply)]

    history, wire = wired(world, fate, clients_per_round=8, deadline_s=60.0)
    assert [one.failures for one in history.rounds] == [2, 2, 2]
    assert [one.waited for one in history.rounds] == [60.0] * 3
    assert wire.now() == 180.0


def test_late_is_as_if_it_never_came(world: World) -> None:
    """An answer of the last round that arrives in this one changes nothing."""

    def late(reply: Reply) -> Arrivals:
        return [(75.0 if odd(reply) else 20.0, reply)]

    def never(reply: Reply) -> Arrivals:
        return [] if odd(reply) else [(20.0, reply)]

    runs = [wired(world, fate, clients_per_round=8)[0] for fate in (late, never)]
    assert same(*runs)


def test_the_order_in_which_replies_arrive_decides_nothing(world: World) -> None:
    def backwards(reply: Reply) -> Arrivals:
        return [(50.0 - reply.device, reply)]

    runs = [wired(world, fate)[0] for fate in (at_once, backwards)]
    assert same(*runs)
    assert runs[1].rounds[0].waited > 40


def test_replies_that_come_twice_count_once(world: World) -> None:
    def twice(reply: Reply) -> Arrivals:
        return [(1.0, reply), (1.0, reply), (2.0, reply)]

    assert same(wired(world, twice)[0], wired(world, at_once)[0])


def test_replies_of_others_are_not_taken(world: World) -> None:
    """Of devices that were not asked, of rounds that are over, of rounds to come."""

    def noisy(reply: Reply) -> Arrivals:
        return [
            (0.1, reply._replace(number=reply.number + 1)),
            (0.2, reply._replace(number=reply.number - 1)),
            (0.3, reply._replace(device=99)),
            (1.0, reply),
        ]

    assert same(wired(world, noisy)[0], wired(world, at_once)[0])


def test_too_few_in_time_end_the_run_and_not_the_patience(world: World) -> None:
    def slow(reply: Reply) -> Arrivals:
        return [(1e9, reply)]

    with pytest.raises(ew.FederatedError, match="0 of 4 devices"):
        wired(world, slow)


def test_a_clock_that_jumps_makes_answers_late_and_harms_nothing(world: World) -> None:
    """As after a sleep of the whole machine: what had its time had it."""
    history, _ = wired(world, at_once, jump=1000.0, quorum=0.0)
    assert [one.failures for one in history.rounds] == [3, 3, 3]
    assert all(np.isfinite(one.loss) for one in history.rounds if one.loss is not None)


def test_a_wall_clock_that_jumps_does_not_matter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, _ = wired(world, at_once)
    jumps = itertools.cycle([0.0, 4e9, -4e9])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    jumping, _ = wired(world, at_once)
    assert same(plain, jumping)
    assert all(one.seconds >= 0 for one in jumping.rounds)


@hypothesis.settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.sampled_from(KINDS),
        min_size=8,
        max_size=8,
    )
)
def test_whatever_devices_do_the_good_ones_are_joined(
    world: World, fates: list[str]
) -> None:
    """The model is that of a run in which the others are simply not there."""

    def fate(reply: Reply) -> Arrivals:
        kind, update = fates[reply.device], reply.update
        assert update is not None
        arrays = dict(update.arrays)
        if kind == "nan":
            arrays["b1"] = np.full_like(arrays["b1"], np.inf)
        elif kind == "shape":
            arrays["b1"] = arrays["b1"][None]
        elif kind == "name":
            del arrays["b1"]
        elif kind == "large":
            arrays["b1"] = np.full(8, 1e300)
        elif kind == "text":
            arrays["b1"] = np.full(8, "much")
        if kind == "none":
            return [(1.0, reply._replace(update=None, failure="memory"))]
        changed = reply._replace(update=update.replace(arrays=arrays))
        return {"late": [(99.0, reply)], "lost": []}.get(kind, [(1.0, changed)])

    def only(reply: Reply) -> Arrivals:
        return [(1.0, reply)] if fates[reply.device] == "good" else []

    setting = {"clients_per_round": 8, "rounds": 2, "quorum": 0.0}
    if "good" not in fates:
        with pytest.raises(ew.FederatedError, match="0 of 8"):
            wired(world, fate, **setting)
        return
    runs = [wired(world, one, **setting)[0] for one in (fate, only)]
    assert same(*runs)
    bad = sum(kind != "good" for kind in fates)
    assert [one.failures for one in runs[0].rounds] == [bad, bad]


def test_what_was_not_used_is_not_remembered(world: World) -> None:
    """A codec's losses and a control change with updates that were used, alone."""

    def fate(reply: Reply) -> Arrivals:
        return [] if reply.device == 2 else [(1.0, reply)]

    for setting in ({"codec": "int4"}, {"strategy": "scaffold"}):
        _, wire = wired(world, fate, clients_per_round=8, **setting)
        kept = {name.partition("/")[0] for name in wire.memory()} - {"agenda"}
        assert kept == set("0134567")


@pytest.mark.parametrize("count", [0, -5, 2**40, 1.5, float("nan"), None, np.int64(-1)])
def test_weights_that_no_device_has_are_refused(world: World, count: object) -> None:
    """A negative weight would turn what others learned around."""

    def fate(reply: Reply) -> Arrivals:
        if reply.update is None or reply.device:
            return [(1.0, reply)]
        lying = reply.update.replace(examples=count)
        return [(1.0, reply._replace(update=lying))]

    history, _ = wired(world, fate, clients_per_round=8, rounds=1)
    assert history.rounds[0].failures == 1
    assert np.isfinite(history.rounds[0].loss or 0)


@pytest.mark.parametrize("wrong", ["nan", "short", "matrix"])
def test_controls_are_looked_at_too(world: World, wrong: str) -> None:
    def fate(reply: Reply) -> Arrivals:
        control = reply.control
        assert control is not None
        if reply.device == 3:
            spoilt = {"nan": control * np.nan, "short": control[1:]}
            control = spoilt.get(wrong, control[None])
        return [(1.0, reply._replace(control=control))]

    history, _ = wired(world, fate, clients_per_round=8, strategy="scaffold")
    assert [one.failures for one in history.rounds] == [1, 1, 1]


def test_a_model_that_left_the_finite_numbers_ends_the_run(
    world: World, tmp_path: Path
) -> None:
    """Before it is kept: what was kept of the run goes on without that round."""

    def grow(reply: Reply) -> Arrivals:
        if reply.number < 2 or reply.update is None:
            return [(1.0, reply)]
        arrays = {k: np.full_like(v, 3e38) for k, v in reply.update.arrays.items()}
        return [(1.0, reply._replace(update=reply.update.replace(arrays=arrays)))]

    settings = {"options": {"server_lr": 10.0}, "checkpoint_dir": str(tmp_path)}
    with (
        np.errstate(over="ignore"),
        pytest.raises(ew.FederatedError, match="round 2: the model left"),
    ):
        wired(world, grow, **settings)
    history, _ = wired(world, at_once, **settings)
    assert len(history.rounds) == 3


def test_sums_are_of_words_alone(world: World) -> None:
    """What is no word under masks would spoil the sum for all."""

    def fate(reply: Reply) -> Arrivals:
        update = reply.update
        if reply.device == 2 and update is not None:
            plain = {k: np.full(v.shape, -1.5) for k, v in update.arrays.items()}
            reply = reply._replace(update=update.replace(arrays=plain))
        return [(1.0, reply)]

    setting = {"clients_per_round": 8, "secure_aggregation": True}
    hidden, _ = wired(world, fate, **setting)
    assert [one.failures for one in hidden.rounds] == [1, 1, 1]
    assert (hidden.rounds[-1].loss or 9) < (hidden.rounds[0].loss or 0)
