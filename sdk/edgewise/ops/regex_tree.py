"""What a pattern is, once it is read: characters, edges, rows, choices, repeats."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from edgewise.ops.characters import Test


class Chars(NamedTuple):
    """One character that passes a test."""

    test: Test


class Place(NamedTuple):
    """No character, but an edge: of the text, of a line or of a word."""

    kind: str


class Row(NamedTuple):
    """One part after the other."""

    parts: tuple[Tree, ...]


class Choice(NamedTuple):
    """Any of the parts."""

    parts: tuple[Tree, ...]


class Repeat(NamedTuple):
    """A part ``low`` to ``high`` times; ``None``: without end."""

    part: Tree
    low: int
    high: int | None


Tree: TypeAlias = "Chars | Place | Row | Choice | Repeat"
