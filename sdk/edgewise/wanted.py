"""Options as they must be: numbers in their range, counts, names."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase

from edgewise.errors import ConfigError

LARGEST = 3.4028234663852886e38  # of float32, which steps reckon with


def want_number(
    name: str,
    value: object,
    want: str = "a number",
    fits: Callable[[float], bool] = math.isfinite,
) -> None:
    """Raise ``ConfigError`` unless it is a real number that fits."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = _float(value)
        if fits(number) and (abs(number) <= LARGEST or math.isinf(number)):
            return
    raise ConfigError(f"{name}={value!r}: want {want}")


def _float(value: numbers.Real) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.nan


def want_from_0(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless it is a finite number from 0 on."""
    want_number(name, value, "a number from 0 on", lambda x: 0.0 <= x < math.inf)


def want_positive(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless it is a finite number above 0."""
    want_number(name, value, "a number above 0", lambda x: 0.0 < x < math.inf)


def want_part(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless it is a part of what goes on."""
    want = "a number from 0 to below 1"
    want_number(name, value, want, lambda x: 0.0 <= x < 1.0)


def want_count(name: str, value: object, least: int = 1) -> None:
    """Raise ``ConfigError`` unless it is a whole number from ``least`` on."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]  # it is whole
        text = repr(value) if not whole or abs(int(value)) < 1 << 64 else "…"  # type: ignore[call-overload]  # likewise
        raise ConfigError(f"{name}={text}: want a whole number from {least} on")


def want_kinds(name: str, values: object, kind: type, want: str) -> None:
    """Raise ``ConfigError`` unless all of several are of a kind."""
    several = isinstance(values, Collection) and not isinstance(values, str | bytes)
    if not several or not all(isinstance(value, kind) for value in values):  # type: ignore[attr-defined]  # it is iterable
        raise ConfigError(f"{name}={values!r}: want {want}")


def fitting(name: str, patterns: object, names: Iterable[str]) -> set[str]:
    """The names that some pattern (as of fnmatch) fits.

    Args:
        name: Of the option.
        patterns: Its value.
        names: All that there are.

    Raises:
        ConfigError: They are no patterns, or one fits none of the names.
    """
    want_kinds(name, patterns, str, "patterns of names, as ('head.*',)")
    every, found = list(names), set[str]()
    for pattern in patterns:  # type: ignore[attr-defined]  # they are several texts
        fits = {each for each in every if fnmatchcase(each, pattern)}
        if not fits:
            raise ConfigError(
                f"{name}: no parameter is called {pattern!r}; there are "
                f"{', '.join(every[:8])}{', …' if len(every) > 8 else ''}"
            )
        found |= fits
    return found
