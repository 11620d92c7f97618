"""One call at a time: what several threads ask of one trainer happens in turn."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

T = TypeVar("T", bound=Any)
P = ParamSpec("P")
R = TypeVar("R")


def alone(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """The method, holding the lock ``_alone`` of its object, which lets itself in."""

    @functools.wraps(method)
    def waiting(self: T, *args: P.args, **options: P.kwargs) -> R:
        with self._alone:
            return method(self, *args, **options)

    return cast("Callable[Concatenate[T, P], R]", waiting)
