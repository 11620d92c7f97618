"""Patterns of RE2, the language that ONNX names, read into trees.

What RE2 itself does not have (look-around, back references, possessive repeats) is
refused, and so are the names of scripts, which Python has no table of.
"""

from __future__ import annotations

import sys
from string import hexdigits, octdigits

from edgewise.errors import ConfigError
from edgewise.ops.characters import (
    PERL,
    POSIX,
    SINGLES,
    Test,
    category,
    either,
    folded,
    inside,
    opposite,
    word,
)
from edgewise.ops.regex_tree import Chars, Choice, Place, Repeat, Row, Tree

NEW_LINE = ("\n", "\n")
MAX_REPEATS = 1000  # as RE2 has it
MAX_DEPTH = 100  # groups within groups
MAX_LENGTH = 1 << 14

_EDGES = {
    "\\A": "text start",
    "\\z": "text end",
    "\\b": "word edge",
    "\\B": "no word edge",
}
_TIMES: dict[str, tuple[int, int | None]] = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
}


def parse(pattern: str) -> Tree:
    """The tree of a pattern.

    Raises:
        ConfigError: It is none of RE2's, or beyond what is here.
    """
    if len(pattern) > MAX_LENGTH:
        raise ConfigError(
            f"the pattern {pattern[:80]!r}… has {len(pattern)} characters; want at most"
            f" {MAX_LENGTH}"
        )
    reader = _Reader(pattern)
    tree = reader.choice("")
    if reader.at < len(pattern):
        raise reader.refuse("an unmatched )")
    return tree


class _Reader:
    """A pattern and how far it is read, under the flags that are set there."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self._depth = pattern, 0, 0

    def refuse(self, what: str) -> ConfigError:
        """The error; the caller raises it."""
        return ConfigError(
            f"the pattern {self.pattern!r}: got {what} at {self.at}; want a pattern of"
            " RE2, without names of scripts and \\C"
        )

    def _next(self, count: int = 1) -> str:
        return self.pattern[self.at : self.at + count]

    def _take(self, text: str) -> bool:
        """Read ``text`` if it comes next."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _until(self, end: str, what: str) -> str:
        """Read up to ``end`` and beyond it."""
        stop = self.pattern.find(end, self.at)
        if stop < 0:
            raise self.refuse(f"{what} without its {end}")
        text, self.at = self.pattern[self.at : stop], stop + len(end)
        return text

    def choice(self, flags: str) -> Tree:
        """Alternatives up to the end, or to a parenthesis."""
        parts: list[Tree] = []
        items: list[Tree] = []
        while self._next() not in ("", ")"):
            if self._take("|"):
                parts.append(Row(tuple(items)))
                items = []
                continue
            changed = self._flags(flags)
            if changed is None:
                items += self._repeated(self._item(flags))
            else:
                flags = changed
        parts.append(Row(tuple(items)))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _flags(self, flags: str) -> str | None:
        """The flags from here on, where ``(?flags)`` comes next."""
        stop = self.pattern.find(")", self.at)
        inner = self.pattern[self.at + 2 : stop]
        if self._next(2) != "(?" or stop < 0 or inner.strip("imsU-"):
            return None
        self.at = stop + 1
        return self._changed(flags, inner)

    def _changed(self, flags: str, change: str) -> str:
        on, dash, off = change.partition("-")
        if "-" in off or (dash and not off):
            raise self.refuse(f"the flags {change!r}")
        return "".join(f for f in "imsU" if f in on or (f in flags and f not in off))

    def _repeated(self, items: list[Tree]) -> list[Tree]:
        """The items, the last as often as what comes next says."""
        times = self._times()
        if times is None:
            return items
        self._take("?")  # whether more or fewer are tried first decides nothing here
        start = self.at
        if self._times() is not None:
            self.at = start
            raise self.refuse("a repeat of a repeat")
        if not items:
            raise self.refuse("a repeat of nothing")
        return [*items[:-1], Repeat(items[-1], *times)]

    def _times(self) -> tuple[int, int | None] | None:
        if self._next() in _TIMES:
            self.at += 1
            return _TIMES[self.pattern[self.at - 1]]
        if self._next() != "{":
            return None
        stop = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : stop].partition(",")
        numbers = [low, high] if high else [low]
        if stop < 0 or not all(map(_is_number, numbers)):
            return None  # as text: RE2 takes a brace for what it is
        least = int(low)
        most = None if comma and not high else int(high or low)
        if max(least, most or 0) > MAX_REPEATS or (most is not None and most < least):
            raise self.refuse(f"the repeat {self.pattern[self.at : stop + 1]}")
        self.at = stop + 1
        return least, most

    def _item(self, flags: str) -> list[Tree]:
        """What the next piece of the pattern stands for."""
        if self._times() is not None:
            raise self.refuse("a repeat of nothing")
        if self._take("("):
            return [self._group(flags)]
        if self._take("["):
            return [Chars(self._class(flags))]
        if self._take("."):
            return [Chars(opposite(inside() if "s" in flags else inside(NEW_LINE)))]
        if self._take("^"):
            return [Place("line start" if "m" in flags else "text start")]
        if self._take("$"):
            return [Place("line end" if "m" in flags else "text end")]
        if self._take("\\Q"):
            end = self.pattern.find("\\E", self.at)
            end = len(self.pattern) if end < 0 else end
            text, self.at = self.pattern[self.at : end], min(end + 2, len(self.pattern))
            return [Chars(_one(char, flags)) for char in text]
        if self._next(2) in _EDGES:
            self.at += 2
            return [Place(_EDGES[self.pattern[self.at - 2 : self.at]])]
        return [Chars(self._group_of(flags) or _one(self._character(), flags))]

    def _group(self, flags: str) -> Tree:
        if self._take("?P<") or (
            self._next(2) == "?<" and self._next(3)[2:] not in "=!" and self._take("?<")
        ):
            name = self._until(">", "a name")
            if not name or not all(map(word, name)):
                raise self.refuse(f"the name {name!r}")
        elif self._take("?"):
            text = self._until(":", "a group")
            if text.strip("imsU-"):
                raise self.refuse(f"(?{text[:3]}")
            flags = self._changed(flags, text)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.refuse(f"more than {MAX_DEPTH} groups in each other")
        tree = self.choice(flags)
        self._depth -= 1
        if not self._take(")"):
            raise self.refuse("a group without its )")
        return tree

    def _class(self, flags: str) -> Test:
        """A class in brackets, of which the first is read."""
        outside = self._take("^")
        tests: list[Test] = []
        while self._next() != "]" or not tests:
            if not self._next():
                raise self.refuse("a class without its ]")
            test = self._posix(flags) or self._group_of(flags)
            tests.append(test or self._range(flags))
        self.at += 1
        return opposite(either(tests)) if outside else either(tests)

    def _range(self, flags: str) -> Test:
        low = high = self._character()
        if self._next() == "-" and self._next(2) not in ("-", "-]"):
            self.at += 1
            high = self._character()
        if high < low:
            raise self.refuse(f"the range {low}-{high}")
        test = inside((low, high))
        return folded(test) if "i" in flags else test

    def _posix(self, flags: str) -> Test | None:
        if self._next(2) != "[:" or self.pattern.find(":]", self.at) < 0:
            return None
        self.at += 2
        name = self._until(":]", "a class")
        test = POSIX.get(name.removeprefix("^"))
        if test is None:
            raise self.refuse(f"the class {name!r}")
        return _signed(test, flags, negative=name.startswith("^"))

    def _group_of(self, flags: str) -> Test | None:
        r"""What ``\d`` and its kin, ``\pL`` and its kin stand for."""
        kind = self._next(2)
        if kind.lower() in PERL:
            self.at += 2
            return _signed(PERL[kind.lower()], flags, negative=kind[1].isupper())
        if kind not in ("\\p", "\\P"):
            return None
        self.at += 2
        name = self._next()
        self.at += 1
        if name == "{":
            name = self._until("}", "a category")
        test = category(name.removeprefix("^"))
        if test is None:
            raise self.refuse(f"the category {name!r}")
        return _signed(test, flags, negative=name.startswith("^") != (kind == "\\P"))

    def _character(self) -> str:
        """One character, maybe escaped."""
        char = self._next()
        self.at += 1
        if char != "\\":
            return char
        char = self._next()
        self.at += 1
        if char in SINGLES:
            return SINGLES[char]
        if char == "x":
            return self._coded(self._hexadecimal(), 16)
        octal = [d in octdigits for d in self.pattern[self.at - 1 : self.at + 2]]
        if char == "0" or octal[:2] == [True, True]:
            count = [*octal, False].index(False)
            self.at += count - 1
            return self._coded(self.pattern[self.at - count : self.at], 8)
        if not char or char.isalnum() or not char.isascii():
            self.at -= 2
            raise self.refuse(f"\\{char}")
        return char

    def _hexadecimal(self) -> str:
        if self._take("{"):
            return self._until("}", "a number")
        digits = self._next(2)
        self.at += 2
        return digits if len(digits) > 1 else ""

    def _coded(self, digits: str, base: int) -> str:
        known = 0 < len(digits) < 9 and all(digit in hexdigits for digit in digits)
        code = int(digits, base) if known else sys.maxunicode + 1
        if code > sys.maxunicode:
            raise self.refuse(f"the code {digits!r}")
        return chr(code)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 8


def _one(char: str, flags: str) -> Test:
    test = inside((char, char))
    return folded(test) if "i" in flags else test


def _signed(test: Test, flags: str, *, negative: bool) -> Test:
    test = folded(test) if "i" in flags else test
    return opposite(test) if negative else test
