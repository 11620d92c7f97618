"""What configurations are: values by name, with defaults, checked, never changed.

``dataclasses`` offers the same, and takes 3 ms to import and to compile a class.
"""

from __future__ import annotations

from typing import Any, Self, dataclass_transform


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """Base of configurations: what a subclass annotates and gives a default to."""

    def __init__(self, **given: Any) -> None:
        for name in given:
            if name not in type(self).__annotations__:
                raise TypeError(f"{type(self).__name__} has no option {name!r}")
        self.__dict__.update(given)
        self.check()

    def check(self) -> None:
        """Raise ``ConfigError`` where a value is none of those that can be chosen."""
        raise NotImplementedError

    def __replace__(self, **changes: Any) -> Self:
        """The same with some values changed: what ``copy.replace`` calls."""
        return type(self)(**(self._values() | changes))

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).__annotations__}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} never changes")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} never changes")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={x!r}" for name, x in self._values().items())
        return f"{type(self).__name__}({inside})"
