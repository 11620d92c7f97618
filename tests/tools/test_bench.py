"""Timing calls."""

import pytest

from edgewise.errors import ConfigError
from edgewise.tools.bench import Timing, measure


def test_warm_up_runs_come_first_and_are_not_timed() -> None:
    calls: list[int] = []
    ticks: list[int] = []
    timing = measure(
        lambda: calls.append(1),
        runs=3,
        warmup=2,
        after_each=lambda: ticks.append(len(calls)),
    )
    assert len(calls) == 5
    assert len(timing.seconds) == 3
    assert ticks == [3, 4, 5]
    assert all(second >= 0 for second in timing.seconds)


def test_quantiles_lie_between_calls() -> None:
    timing = Timing((4.0, 1.0, 3.0, 2.0))
    assert timing.min == 1.0
    assert timing.median == 2.5
    assert timing.p90 == pytest.approx(3.7)
    assert timing.quantile(0) == 1.0
    assert timing.quantile(1) == 4.0


def test_one_call_is_its_own_summary() -> None:
    assert Timing((0.5,)).figures() == {
        "runs": 1,
        "min_ms": 500.0,
        "median_ms": 500.0,
        "p90_ms": 500.0,
    }


@pytest.mark.parametrize(("runs", "warmup"), [(0, 0), (-1, 0), (1, -1)])
def test_no_runs_are_refused(runs: int, warmup: int) -> None:
    with pytest.raises(ConfigError, match="want at least 1 and 0"):
        measure(lambda: None, runs=runs, warmup=warmup)
