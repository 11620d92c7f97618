"""Whether a whole text matches a pattern, in time linear in the text.

The states that a pattern may be in after some characters are followed all at once
(Thompson, Regular expression search algorithm, 1968): there is nothing to try again.
"""

from __future__ import annotations

import functools
from itertools import chain
from typing import NamedTuple, TypeAlias

from edgewise.errors import ConfigError, ShapeError
from edgewise.ops.characters import Test, word
from edgewise.ops.regex import parse
from edgewise.ops.regex_tree import Chars, Choice, Repeat, Row, Tree

MAX_STATES = 5000
MAX_KEPT = 1 << 20  # states in all steps that are remembered
MAX_FOUND = 1 << 21  # states in all steps that one text may add: seconds

States: TypeAlias = frozenset[int]
Places: TypeAlias = frozenset[str]
NOWHERE: Places = frozenset()


class _State(NamedTuple):
    """Where a pattern may be.

    Attributes:
        test: What the next character must pass, on the way to ``then``.
        place: What must lie here instead; empty: nothing.
        then: The states behind.
    """

    test: Test | None
    place: str
    then: tuple[int, ...]


@functools.lru_cache(64)
def compiled(pattern: str) -> Automaton:
    """What matches a pattern of RE2.

    Raises:
        ConfigError: It is none, or needs too many states.
    """
    tree = parse(pattern)
    if _count(tree) > MAX_STATES:
        raise ConfigError(
            f"the pattern {pattern[:80]!r} takes more than {MAX_STATES} states; want"
            " fewer repeats, or smaller counts"
        )
    states = [_State(None, "", ())]
    return Automaton(states, _built(tree, 0, states))


def _count(tree: Tree) -> int:
    """How many states a tree takes."""
    if isinstance(tree, Row | Choice):
        return 1 + sum(map(_count, tree.parts))
    if isinstance(tree, Repeat):
        times = tree.low + 1 if tree.high is None else tree.high
        return 1 + times * (_count(tree.part) + 1)
    return 1


def _built(tree: Tree, then: int, states: list[_State]) -> int:
    """The state before ``tree``, which leads to ``then`` behind it."""
    if isinstance(tree, Row):
        for part in reversed(tree.parts):
            then = _built(part, then, states)
        return then
    if isinstance(tree, Choice):
        return _added(states, tuple(_built(part, then, states) for part in tree.parts))
    if isinstance(tree, Repeat):
        return _repeated(tree, then, states)
    if isinstance(tree, Chars):
        states.append(_State(tree.test, "", (then,)))
    else:
        states.append(_State(None, tree.kind, (then,)))
    return len(states) - 1


def _added(states: list[_State], then: tuple[int, ...]) -> int:
    states.append(_State(None, "", then))
    return len(states) - 1


def _repeated(tree: Repeat, then: int, states: list[_State]) -> int:
    end = then
    if tree.high is None:
        again = _added(states, ())
        states[again] = _State(None, "", (_built(tree.part, again, states), end))
        then = again
    for _ in range(0 if tree.high is None else tree.high - tree.low):
        then = _added(states, (_built(tree.part, then, states), end))
    for _ in range(tree.low):
        then = _built(tree.part, then, states)
    return then


class Automaton:
    """A pattern, ready to match; what it finds out on the way it remembers.

    Args:
        states: All of them; the first is the end.
        start: The number of that before the pattern.
    """

    def __init__(self, states: list[_State], start: int) -> None:
        self._states, self._start = states, start
        self._steps: dict[tuple[States, str], States] = {}
        self._here: dict[tuple[States, Places], States] = {}
        self._has_places = any(state.place for state in states)
        self._kept = self._found = 0

    def matches(self, text: str) -> bool:
        """Whether the pattern stands for the whole of ``text``.

        Raises:
            ShapeError: The text is long, and leads to ever new sets of states.
        """
        self._found = 0
        now, before = frozenset({self._start}), ""
        for after in text:
            now = self._step(self._reached(now, before, after), after)
            if not now:
                return False
            before = after
        return 0 in self._reached(now, before, "")

    def _step(self, states: States, char: str) -> States:
        """Where ``char`` leads to from any of the states."""
        known = self._steps.get((states, char))
        if known is None:
            found = [self._states[number] for number in states]
            # A repeat has one test in many states.
            passed = {test for test in {s.test for s in found} if test and test(char)}
            then = (s.then for s in found if s.test in passed)
            known = frozenset(chain.from_iterable(then))
            self._make_room(known)
            self._steps[states, char] = known
        return known

    def _reached(self, states: States, before: str, after: str) -> States:
        """All states that are reached between two characters."""
        places = _places(before, after) if self._has_places else NOWHERE
        known = self._here.get((states, places))
        if known is None:
            seen, left = set(states), list(states)
            while left:
                state = self._states[left.pop()]
                if state.test is None and (not state.place or state.place in places):
                    fresh = set(state.then) - seen
                    seen |= fresh
                    left += fresh
            known = frozenset(seen)
            self._make_room(known)
            self._here[states, places] = known
        return known

    def _make_room(self, states: States) -> None:
        """Forget what was found out when that would take too much memory."""
        self._found += 1 + len(states)
        if self._found > MAX_FOUND:
            raise ShapeError(
                "regex_full_match: a text is too long for what its pattern asks; want a"
                " shorter text, or smaller counts in the pattern"
            )
        self._kept += 1 + len(states)
        if self._kept > MAX_KEPT:
            self._steps.clear()
            self._here.clear()
            self._kept = 0


@functools.lru_cache(4096)
def _places(before: str, after: str) -> Places:
    """What lies between two characters, empty ones at the ends of the text."""
    edge = (before != "" and word(before)) != (after != "" and word(after))
    return _named(
        before == "", before in ("", "\n"), after == "", after in ("", "\n"), edge
    )


@functools.cache
def _named(*facts: bool) -> Places:
    names = ("text start", "line start", "text end", "line end", "word edge")
    found = {name for name, holds in zip(names, facts, strict=True) if holds}
    return frozenset(found if facts[-1] else {*found, "no word edge"})
