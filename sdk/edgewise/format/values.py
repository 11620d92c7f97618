"""What a file may say of any value: bounds that keep its reader safe."""

from __future__ import annotations

from collections.abc import Iterable

from edgewise.dims import Expr
from edgewise.format.tables import DamageError
from edgewise.types import TensorType, Unranked, ValueType

MAX_RANK = 32
MAX_ELEMENTS = 1 << 44
MAX_EXPRESSION = 4096


def want_unique(what: str, names: Iterable[str]) -> None:
    """Raise ``DamageError`` where a name is empty or given twice."""
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            why = "is given twice" if name else "is empty"
            raise DamageError(f"the {what} name {name!r} {why}")
        seen.add(name)


class Sizes:
    """Checks types; remembers the expressions it has measured.

    Inference on a hostile graph could double an expression or a size with every node:
    what is checked after each node stays small.
    """

    def __init__(self) -> None:
        self._measured: set[Expr] = set()

    def want_sane(self, type_: ValueType | Unranked) -> None:
        """Raise ``DamageError`` where a type is beyond any memory."""
        if not isinstance(type_, TensorType):
            if not isinstance(type_, Unranked):
                self.want_sane(type_.element)
            return
        if len(type_.shape) > MAX_RANK:
            raise DamageError(f"{len(type_.shape)} axes; at most {MAX_RANK} are known")
        elements = 1
        for dim in type_.shape:
            if isinstance(dim, Expr):
                self._measure(dim)
            elif dim < 0:
                raise DamageError("a tensor has a negative size")
            else:
                # Axes beside an empty one count too: numpy wants their product to fit.
                elements *= dim or 1
        if elements > MAX_ELEMENTS:
            raise DamageError(f"a tensor has more than {MAX_ELEMENTS} elements")

    def _measure(self, dim: Expr) -> None:
        if dim in self._measured:
            return
        if len(str(dim)) > MAX_EXPRESSION:
            raise DamageError(f"a size is longer than {MAX_EXPRESSION} characters")
        self._measured.add(dim)
