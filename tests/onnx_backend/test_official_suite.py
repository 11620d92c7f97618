"""ONNX's whole test-suite for backends: what is not on the list passes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from edgewise.errors import UnsupportedOpError

Outcomes = Mapping[str, BaseException | None]
# Cases of each kind in onnx 1.23; a newer one may bring more.
AT_LEAST = 2000


def matching(pattern: str, outcomes: Outcomes) -> list[str]:
    return [name for name in outcomes if re.fullmatch(pattern, name)]


@pytest.fixture(scope="module")
def refused(outcomes: Outcomes, excluded: Mapping[str, str]) -> set[str]:
    return {name for pattern in excluded for name in matching(pattern, outcomes)}


def test_the_suite_is_whole(outcomes: Outcomes) -> None:
    assert len(outcomes) >= AT_LEAST
    for name in ("test_add", "test_Conv2d", "test_operator_conv", "test_vgg19"):
        assert name in outcomes


def test_every_case_that_is_not_on_the_list_passes(
    outcomes: Outcomes, refused: set[str]
) -> None:
    failed = [
        f"{name}: {type(error).__name__}: {str(error)[:300]}"
        for name, error in outcomes.items()
        if error is not None and name not in refused
    ]
    assert not failed, "\n".join(failed)


def test_every_case_on_the_list_is_refused_by_name(
    outcomes: Outcomes, refused: set[str]
) -> None:
    for name in refused:
        assert isinstance(outcomes[name], (UnsupportedOpError, type(None))), name


def test_no_case_on_the_list_passes(outcomes: Outcomes, refused: set[str]) -> None:
    assert not [name for name in sorted(refused) if outcomes[name] is None]


def test_every_line_of_the_list_names_a_case_and_a_reason(
    outcomes: Outcomes, excluded: Mapping[str, str]
) -> None:
    assert excluded
    for pattern, reason in excluded.items():
        assert matching(pattern, outcomes), pattern
        assert reason, pattern
