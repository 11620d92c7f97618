"""Named tuples of our own behave as those of the standard library."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from edgewise.named import NamedTuple


class Ours(NamedTuple):
    """A class with defaults, a property and a method."""

    first: int
    second: str
    third: float = 1.5
    fourth: tuple[int, ...] = ()

    @property
    def twice(self) -> int:
        return 2 * self.first

    def plus(self, more: int) -> int:
        return self.first + more


class Theirs(typing.NamedTuple):
    """The same, as the standard library makes it."""

    first: int
    second: str
    third: float = 1.5
    fourth: tuple[int, ...] = ()


class Empty(NamedTuple):
    """No field at all."""


CALLS: list[tuple[tuple[typing.Any, ...], dict[str, typing.Any]]] = [
    ((1, "x"), {}),
    ((1, "x", 2.0), {}),
    ((1, "x", 2.0, (3,)), {}),
    ((1,), {"second": "y"}),
    ((), {"second": "y", "first": 4, "fourth": (1, 2)}),
    ((1, "x"), {"fourth": (9,)}),
    ((1, None), {"third": None}),
]
MISTAKES: list[tuple[tuple[typing.Any, ...], dict[str, typing.Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, "x", 2.0, (), 5), {}),
    ((1, "x"), {"first": 2}),
    ((1, "x"), {"fifth": 2}),
    ((1,), {"third": 2.0}),
]


@pytest.mark.parametrize(("values", "named"), CALLS)
def test_calls_give_what_the_standard_library_gives(
    values: tuple[typing.Any, ...], named: dict[str, typing.Any]
) -> None:
    ours, theirs = Ours(*values, **named), Theirs(*values, **named)
    assert ours == theirs
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert ours._replace(third=7.0) == theirs._replace(third=7.0)
    assert (ours.first, ours.second, ours.third, ours.fourth) == tuple(theirs)


@pytest.mark.parametrize(("values", "named"), MISTAKES)
def test_wrong_calls_are_type_errors(
    values: tuple[typing.Any, ...], named: dict[str, typing.Any]
) -> None:
    for cls in (Ours, Theirs):
        with pytest.raises(TypeError):
            cls(*values, **named)


def test_a_class_says_its_fields_and_defaults() -> None:
    assert Ours._fields == Theirs._fields
    assert Ours._field_defaults == Theirs._field_defaults
    assert Ours.__match_args__ == Theirs.__match_args__
    assert Ours.__doc__ == "A class with defaults, a property and a method."
    assert Empty() == ()


def test_methods_and_patterns_work() -> None:
    made = Ours(3, "x")
    assert made.twice == 6
    assert made.plus(4) == 7
    match made:
        case Ours(first, second):
            assert (first, second) == (3, "x")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_of_the_same_class(copied: typing.Callable[[Ours], Ours]) -> None:
    made = Ours(1, "x", fourth=(1, 2))
    again = copied(made)
    assert (type(again), again) == (Ours, made)


def test_pickles_are_of_the_same_class() -> None:
    made = Ours(1, "x", fourth=(1, 2))
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - made here
    assert (type(again), again) == (Ours, made)


@pytest.mark.parametrize("name", ["first", "other"])
def test_nothing_can_be_assigned(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Ours(1, "x"), name, 2)
