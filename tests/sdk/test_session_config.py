"""A configuration that makes no sense is refused where it is made, by name."""

from __future__ import annotations

from typing import Any

import pytest

import edgewise
from edgewise import ConfigError, SessionConfig


@pytest.mark.parametrize("threads", [0, -1, 1025, 10**9, 1.5, "2", True])
def test_absurd_thread_counts_are_refused(threads: Any) -> None:
    with pytest.raises(ConfigError, match="threads="):
        SessionConfig(threads=threads)


@pytest.mark.parametrize(
    "cores", ["fast", "", (), (0, 0), (-1,), [0, 1], (1.5,), (True,), 3, None]
)
def test_cores_that_cannot_be_are_refused(cores: Any) -> None:
    with pytest.raises(ConfigError, match="cores="):
        SessionConfig(cores=cores)


@pytest.mark.parametrize("option", ["arena_limit", "max_plans"])
@pytest.mark.parametrize("value", [0, -5, 2.0])
def test_limits_are_whole_numbers_from_one(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{option}="):
        SessionConfig(**{option: value})


def test_a_precision_that_is_unknown_is_refused() -> None:
    with pytest.raises(ConfigError, match="precision='float8'"):
        SessionConfig(precision="float8")


@pytest.mark.parametrize("delegates", ["gpu", (1,)])
def test_delegates_are_a_tuple_of_names(delegates: Any) -> None:
    with pytest.raises(ConfigError, match="delegates="):
        SessionConfig(delegates=delegates)


def test_a_configuration_never_changes() -> None:
    config = edgewise.SessionConfig(threads=2)
    with pytest.raises(AttributeError):
        config.threads = 3  # type: ignore[misc]  # what is tested


def test_defaults_leave_the_choice_to_the_machine() -> None:
    config = SessionConfig()
    assert (config.threads, config.cores, config.arena_limit) == (None, "auto", None)


@pytest.mark.parametrize("odd", [None, 5, "opencl", (1,)])
def test_delegates_that_are_no_names_are_refused(odd: object) -> None:
    with pytest.raises(ConfigError, match="want a tuple of names"):
        SessionConfig(delegates=odd)
