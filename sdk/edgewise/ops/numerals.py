"""Numbers as texts, and texts as numbers: what ONNX's Cast does with strings."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from edgewise.errors import DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.checks import STRINGS, want
from edgewise.ops.text import texts
from edgewise.types import DType, TensorType

WRITTEN = frozenset(
    {DType.F64, DType.F32, DType.F16, DType.BOOL, DType.I64, DType.I32, DType.I16}
    | {DType.I8, DType.U64, DType.U32, DType.U16, DType.U8}
)
LONGEST = 4096  # characters of a number: Python takes ever longer over more
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_PLAIN = re.compile(r"[+-]?(\d+\.\d*|\.\d+)", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)


class FormatNumber(Op, name="format_number"):
    """Every number as a text: floats with 8 digits, ``NaN``, ``INF``; bools as 1, 0."""

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), WRITTEN)
        return x.with_dtype(DType.STRING)

    def reference(self, x: Array) -> Array:
        write = _float_text if x.dtype.kind == "f" else _whole_text
        return texts([write(number) for number in x.flat], x.shape)

    @staticmethod
    def samples() -> Iterator[Sample]:
        floats = [1.5, -2e-3, np.nan, np.inf, -np.inf, 1e10, 1 / 3, -0.0]
        for dtype in ("f8", "f4", "f2"):
            with np.errstate(over="ignore"):
                yield Sample(FormatNumber(), (np.array(floats).astype(dtype),))
        yield Sample(FormatNumber(), (np.array([[2**63, 0]], np.uint64),))
        yield Sample(FormatNumber(), (np.array(True),))
        yield Sample(FormatNumber(), (np.zeros((0, 2), np.int8),))


class ParseNumber(Op, name="parse_number"):
    """Every text as a number of the type ``to``, white space around it left out.

    Whole numbers lose a fraction; what is no number, or is beyond them, is an error.
    """

    to: str

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), STRINGS)
        if self.to not in {dtype.value for dtype in WRITTEN}:
            raise DTypeError(f"{self.name}: no text stands for a {self.to}")
        return x.with_dtype(DType(self.to))

    def reference(self, x: Array) -> Array:
        dtype = DType(self.to)
        read = self._float if dtype.is_float else self._whole
        numbers = [read(text) for text in x.flat]
        if not dtype.is_float and dtype is not DType.BOOL:
            self._want_within(numbers, np.iinfo(dtype.numpy.type))  # type: ignore[arg-type]  # an integer type
        with np.errstate(over="ignore"):
            wide = np.array(numbers, float if dtype.is_float else object)
            return wide.astype(dtype.numpy).reshape(x.shape)

    def _float(self, text: str) -> float:
        number = text.strip()
        if len(number) > LONGEST or not _FLOAT.fullmatch(number):
            raise self._no_number(text)
        return float(number)

    def _whole(self, text: str) -> int:
        number = text.strip()
        if len(number) <= LONGEST and _WHOLE.fullmatch(number):
            return int(number)
        if len(number) <= LONGEST and _PLAIN.fullmatch(number) and self.to != "bool":
            return int(number.partition(".")[0].strip("+-") or 0) * _sign(number)
        raise self._no_number(text)

    def _want_within(self, numbers: list[float], bounds: np.iinfo[np.integer]) -> None:
        for number in numbers:
            if not bounds.min <= number <= bounds.max:
                raise self._no_number(str(number))

    def _no_number(self, text: str) -> DTypeError:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        return DTypeError(f"{self.name}: got {shown!r}; want a number of {self.to}")

    @staticmethod
    def samples() -> Iterator[Sample]:
        floats = texts(["1.5", "-2e-3", "NaN", "+INF", "-inf", " 3\n", ".5", "5."])
        for to in ("f64", "f32", "f16"):
            yield Sample(ParseNumber(to), (floats,))
        yield Sample(ParseNumber("i8"), (texts(["-128", "+7", "007", "-1.9"], (2, 2)),))
        yield Sample(ParseNumber("u64"), (texts([str(2**64 - 1)], ()),))
        yield Sample(ParseNumber("bool"), (texts(["1", "0", "-2"]),))
        yield Sample(ParseNumber("i64"), (texts([]),))


def _sign(number: str) -> int:
    return -1 if number.startswith("-") else 1


def _float_text(number: float) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return f"{float(number):.8g}"


def _whole_text(number: object) -> str:
    return str(int(number))  # type: ignore[call-overload]  # of numpy, bools too
