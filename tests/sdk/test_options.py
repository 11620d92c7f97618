"""Configurations behave as frozen dataclasses do."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from edgewise import SessionConfig


def test_equal_options_are_equal_and_hash_alike() -> None:
    one, same, other = (SessionConfig(threads=n) for n in (2, 2, 3))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != 2


def test_all_options_are_shown() -> None:
    shown = repr(SessionConfig(threads=2))
    assert shown.startswith("SessionConfig(threads=2, cores='auto', precision=")


@pytest.mark.parametrize("change", [setattr, lambda x, name, _: delattr(x, name)])
def test_nothing_changes(change: Any) -> None:
    config = SessionConfig(threads=2)
    with pytest.raises(AttributeError, match="never changes"):
        change(config, "threads", 3)
    assert config.threads == 2


@pytest.mark.parametrize(("args", "named"), [((), {"thread": 2}), ((2,), {})])
def test_unknown_options_are_type_errors(args: Any, named: Any) -> None:
    with pytest.raises(TypeError):
        SessionConfig(*args, **named)


def test_options_can_be_copied() -> None:
    config = SessionConfig(threads=2, cores=(0,))
    pickled = pickle.loads(pickle.dumps(config))  # noqa: S301 - made here
    assert config == copy.copy(config) == copy.deepcopy(config) == pickled


def test_some_options_can_be_replaced() -> None:
    changed = SessionConfig(threads=2, max_plans=3).__replace__(threads=4)
    assert (changed.threads, changed.max_plans) == (4, 3)
