"""Learning rates at telling steps; numbers are those of PyTorch 2.13's schedulers.

Those of ``WarmUp`` are ``LinearLR``'s, which has no schedule to follow it.
"""

from __future__ import annotations

import pytest

import edgewise as ew
from edgewise_trainer import schedules


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (schedules.Constant(0.1), {0: 0.1, 99: 0.1}),
        (schedules.Steps(0.1, 3, 0.5), {0: 0.1, 2: 0.1, 3: 0.05, 7: 0.025}),
        (schedules.Cosine(0.1, 10), {0: 0.1, 5: 0.05, 10: 0.0, 20: 0.0}),
        (
            schedules.Cosine(0.1, 10, 0.02),
            {0: 0.1, 3: 0.08351141009169893, 5: 0.06, 10: 0.02},
        ),
        (
            schedules.WarmUp(0.1, 4, 0.25),
            {0: 0.025, 1: 0.04375, 3: 0.08125, 4: 0.1, 9: 0.1},
        ),
        (schedules.WarmUp(0.1, 4), {0: 0.0, 1: 0.025, 3: 0.075, 4: 0.1, 9: 0.1}),
        (
            schedules.WarmUp(schedules.Cosine(0.1, 10), 5),
            {0: 0.0, 5: 0.1, 10: 0.05, 15: 0.0},
        ),
        (
            schedules.OneCycle(0.1, 10),
            {0: 0.004, 1: 0.052, 2: 0.1, 5: 0.06112620219362893, 9: 4e-7},
        ),
        # PyTorch divides by zero where the first step is the peak.
        (schedules.OneCycle(0.1, 10, up=0.1), {0: 0.1, 9: 4e-7}),
    ],
)
def test_a_schedule_has_known_rates(
    schedule: schedules.Schedule, expected: dict[int, float]
) -> None:
    found = {step: schedule(step) for step in expected}
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_schedule_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ew.ConfigError, match="size"):
        schedules.Steps(0.1, 0)
    with pytest.raises(ew.ConfigError, match="rate"):
        schedules.Cosine(-1.0, 3)
