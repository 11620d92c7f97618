"""Named tuples that are quick to define: a process that runs a model needs forty.

``typing.NamedTuple`` compiles code for every class, 0.2 ms each.  Type checkers see
that one; what runs behaves alike, by methods that all classes share.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Defining(type):
        """Makes the annotations of a class its fields, their values the defaults."""

        def __new__(
            cls, name: str, bases: tuple[type, ...], space: dict[str, Any]
        ) -> Self:
            """The class."""
            names = tuple(space.get("__annotations__", ()))
            defaults = {field: space.pop(field) for field in names if field in space}
            for place, field in enumerate(names):
                space[field] = property(itemgetter(place))
            space |= {
                "__slots__": (),
                "__match_args__": names,
                "_fields": names,
                "_field_defaults": defaults,
                "_tail": tuple(defaults.values()),
            }
            return super().__new__(cls, name, bases, space)

    class NamedTuple(tuple, metaclass=_Defining):
        """What a subclass annotates are the names of its items, in order."""

        __slots__ = ()

        def __new__(cls, *values: object, **named: object) -> Self:
            """One of them; the last fields may have defaults."""
            left = len(cls._fields) - len(values)
            if named or not 0 <= left <= len(cls._tail):
                values = _complete(cls, values, named)
            elif left:
                values += cls._tail[-left:]
            return tuple.__new__(cls, values)

        def __repr__(self) -> str:
            pairs = zip(self._fields, self, strict=True)
            inside = ", ".join(f"{name}={value!r}" for name, value in pairs)
            return f"{type(self).__name__}({inside})"

        def __getnewargs__(self) -> tuple[object, ...]:
            """What copies are made from."""
            return tuple(self)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes: object) -> Self:
            return type(self)(**(self._asdict() | changes))


def _complete(
    cls: Any, values: tuple[object, ...], named: dict[str, object]
) -> tuple[object, ...]:
    """All values in order, where some are named or left to their defaults.

    Raises:
        TypeError: As for any call: too many, too few, unknown, or given twice.
    """
    fields, defaults = cls._fields, cls._field_defaults
    rest = fields[len(values) :]
    strange = [name for name in named if name not in rest]
    missing = [name for name in rest if name not in named and name not in defaults]
    if len(values) > len(fields) or strange or missing:
        got = [*map(repr, values), *(f"{name}={named[name]!r}" for name in named)]
        raise TypeError(f"{cls.__name__} got ({', '.join(got)}); want {fields}")
    return (*values, *(named.get(name, defaults.get(name)) for name in rest))
