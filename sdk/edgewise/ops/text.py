"""Text: joined, split, matched, normalised.  Its tensors are arrays of Python's str."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Call, Op, Sample
from edgewise.ops.automaton import compiled
from edgewise.ops.checks import STRINGS, broadcast, want, want_room
from edgewise.types import DType, TensorType

POINTER = 8  # bytes of an element beside its text
CASES = ("NONE", "LOWER", "UPPER")


def texts(items: Sequence[str], shape: Sequence[int] | None = None) -> Array:
    """An array of texts, whatever their number."""
    array = np.empty(len(items), object)
    array[:] = items
    return array if shape is None else array.reshape(shape)


def weight(array: Array) -> int:
    """Bytes that texts take, at about one a character."""
    return POINTER * array.size + sum(map(len, array.flat))


class StringConcat(Op, name="string_concat"):
    """Texts of ``a``, each followed by its text of ``b``; numpy broadcasting."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        want(self, (a, b), STRINGS)
        return a.with_shape(broadcast(self, a.shape, b.shape))

    def execute(self, call: Call, a: Array, b: Array) -> Array:
        shape = np.broadcast_shapes(a.shape, b.shape)
        room = sum(weight(x) * math.prod(shape) // max(x.size, 1) for x in (a, b))
        want_room(self, room, call.limit)
        return self.reference(a, b)

    def reference(self, a: Array, b: Array) -> Array:
        return np.asarray(a + b, object)

    @staticmethod
    def samples() -> Iterator[Sample]:
        yield Sample(StringConcat(), (texts(["a", "", "ü"]), texts(["x", "y", ""])))
        yield Sample(StringConcat(), (texts(["a", "b"], (2, 1)), texts(["x", "y"])))
        yield Sample(StringConcat(), (texts(["a"], ()), texts(["b"], ())))
        yield Sample(StringConcat(), (texts([]), texts(["b"])))


class StringSplit(Op, name="string_split"):
    """The parts of every text along a new last axis, and how many each has.

    An empty ``delimiter`` stands for any run of white space; ``limit`` is the largest
    number of splits, -1 for no limit.  Short rows are filled with empty texts to
    ``size``, the largest number of parts.
    """

    dynamic = True
    size: Dim
    delimiter: str = ""
    limit: int = -1

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        want(self, (x,), STRINGS)
        shape = (*x.shape, self.size)
        return x.with_shape(shape), TensorType(DType.I64, x.shape)

    def execute(self, call: Call, x: Array) -> tuple[Array, ...]:
        rows = self._rows(x)
        width = max(map(len, rows), default=0)
        want_room(self, POINTER * width * len(rows), call.limit)
        return self._filled(rows, x.shape)

    def reference(self, x: Array) -> tuple[Array, ...]:
        return self._filled(self._rows(x), x.shape)

    def _rows(self, x: Array) -> list[list[str]]:
        return [text.split(self.delimiter or None, self.limit) for text in x.flat]

    @staticmethod
    def _filled(parts: list[list[str]], before: tuple[int, ...]) -> tuple[Array, ...]:
        counts = [len(row) for row in parts]
        width = max(counts, default=0)
        filled = [text for row in parts for text in (*row, *[""] * (width - len(row)))]
        lengths = np.array(counts, np.int64).reshape(before)
        return texts(filled, (*before, width)), lengths

    @staticmethod
    def samples() -> Iterator[Sample]:
        words = texts(["a b  c", " d", "", "e"], (2, 2))
        yield Sample(StringSplit(3), (words,))
        yield Sample(StringSplit(2, limit=1), (words,))
        yield Sample(StringSplit(4, " "), (words,))
        yield Sample(StringSplit(0), (texts([]),))
        yield Sample(StringSplit(2, "--"), (texts(["x--y"], ()),))


class StringNormalize(Op, name="string_normalize"):
    """A row of texts without the stop words, in another case; "" where none is left.

    Attributes:
        size: How many are left.
        case: NONE, LOWER or UPPER: what happens to those that are left.
        sensitive: Whether stop words must agree in case.
        stopwords: What goes away.
    """

    dynamic = True
    size: Dim
    case: str
    sensitive: bool
    stopwords: tuple[str, ...]

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), STRINGS)
        one = x.rank == 2 and x.shape[0] == 1
        if (x.rank != 1 and not one) or self.case not in CASES:
            raise self.refuse((x,), f"[C] or [1, C] and one of {CASES}")
        return x.with_shape((*x.shape[:-1], self.size))

    def reference(self, x: Array) -> Array:
        fold = str if self.sensitive else str.lower
        stop = {fold(word) for word in self.stopwords}
        kept = [text for text in x.flat if fold(text) not in stop] or [""]
        if self.case != "NONE":
            change = str.lower if self.case == "LOWER" else str.upper
            kept = [change(text) for text in kept]
        return texts(kept, (*x.shape[:-1], len(kept)))

    @staticmethod
    def samples() -> Iterator[Sample]:
        days = texts(["Monday", "tuesday", "MONDAY"])
        yield Sample(StringNormalize(2, "UPPER", True, ("Monday",)), (days,))
        yield Sample(StringNormalize(1, "LOWER", False, ("monday",)), (days,))
        yield Sample(StringNormalize(3, "NONE", True, ()), (days.reshape(1, 3),))
        yield Sample(StringNormalize(1, "NONE", True, ("a",)), (texts(["a", "a"]),))


class RegexFullMatch(Op, name="regex_full_match"):
    """Whether the whole of every text matches a pattern of RE2."""

    pattern: str

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), STRINGS)
        compiled(self.pattern)
        return TensorType(DType.BOOL, x.shape)

    def reference(self, x: Array) -> Array:
        matches = compiled(self.pattern).matches
        found = [matches(text) for text in x.flat]
        return np.array(found, bool).reshape(x.shape)

    @staticmethod
    def samples() -> Iterator[Sample]:
        mails = texts(["a@b.c", "@", "no", "a@b.c\n"], (2, 2))
        yield Sample(RegexFullMatch(r"\w+@\w+\.\w+"), (mails,))
        yield Sample(RegexFullMatch(r"\w"), (texts(["ü"], ()),))
        yield Sample(RegexFullMatch("a*"), (texts([]),))
        long = texts(["a" * 99, "a" * 99 + "b", "\u212a"])
        yield Sample(RegexFullMatch("(a+)+b|(?i)k"), (long,))
