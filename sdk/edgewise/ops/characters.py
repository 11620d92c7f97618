"""Sets of characters as RE2 names them."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeAlias

Test: TypeAlias = Callable[[str], bool]
Range: TypeAlias = tuple[str, str]


def inside(*ranges: Range) -> Test:
    """Whether a character lies in one of the ranges."""
    return lambda char: any(low <= char <= high for low, high in ranges)


def opposite(test: Test) -> Test:
    """Whether a character fails the test."""
    return lambda char: not test(char)


def either(tests: Sequence[Test]) -> Test:
    """Whether a character passes one of the tests."""
    return lambda char: any(test(char) for test in tests)


def folded(test: Test) -> Test:
    """Whether a character, or what it is in another case, passes the test."""
    return lambda char: any(map(test, _cases().get(_folded(char), char)))


def _folded(char: str) -> str:
    for other in (char.casefold(), char.lower()):
        if len(other) == 1:
            return other
    return char


@functools.cache
def _cases() -> dict[str, str]:
    """The characters that are equal but for their case, by what they fold to."""
    found: dict[str, str] = {}
    for char in map(chr, range(0x1F000)):  # no letter with a case lies beyond
        if char != _folded(char):
            found[_folded(char)] = found.get(_folded(char), _folded(char)) + char
    return found


_DIGITS, _UPPER, _LOWER = ("0", "9"), ("A", "Z"), ("a", "z")
word = inside(_DIGITS, _UPPER, _LOWER, ("_", "_"))
PERL = {
    "\\d": inside(_DIGITS),
    "\\s": inside(("\t", "\n"), ("\f", "\r"), (" ", " ")),
    "\\w": word,
}
POSIX = {
    "alnum": inside(_DIGITS, _UPPER, _LOWER),
    "alpha": inside(_UPPER, _LOWER),
    "ascii": inside(("\0", "\x7f")),
    "blank": inside(("\t", "\t"), (" ", " ")),
    "cntrl": inside(("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": inside(_DIGITS),
    "graph": inside(("!", "~")),
    "lower": inside(_LOWER),
    "print": inside((" ", "~")),
    "punct": inside(("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": inside(("\t", "\r"), (" ", " ")),
    "upper": inside(_UPPER),
    "word": word,
    "xdigit": inside(_DIGITS, ("A", "F"), ("a", "f")),
}
SINGLES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NAMES = (
    "Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S"
    " Sc Sk Sm So Z Zl Zp Zs"
)
_CATEGORIES = frozenset(_NAMES.split())


def category(name: str) -> Test | None:
    """Whether a character is of a general category; ``None``: there is none such."""
    if name not in _CATEGORIES:
        return None
    if name == "Any":
        return lambda _: True
    if name == "C":  # RE2's is that of characters which are assigned
        return lambda char: unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")
    return lambda char: unicodedata.category(char).startswith(name)
