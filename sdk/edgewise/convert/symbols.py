"""Names for sizes that only a run knows: the file's own, and fresh ones."""

from __future__ import annotations

import re

from edgewise.convert.symbolic_rules import RUN_TIME
from edgewise.dims import Expr, Shape, symbol
from edgewise.types import ANY


class Symbols:
    """The names that symbols have so far; no two things share one."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = {str(ANY)}

    def keep(self, text: str) -> None:
        """Reserve a name of the file, so that it is used as it stands."""
        if re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII) and text != str(ANY):
            self._names[text] = text
            self._taken.add(text)

    def named(self, text: str) -> Expr:
        """The symbol for a size that the file calls ``text``."""
        return self._of(text, text)

    def of_axis(self, owner: str, axis: int) -> Expr:
        """The symbol for a size that the file leaves open."""
        text = f"{owner}_{axis}"
        return self._of(text, f"\0{text}")

    def fresh(self, count: int) -> Shape:
        """New symbols, of which nothing is known but that they are not negative."""
        found = []
        for _ in range(count):
            name = self._unique(f"{RUN_TIME}{len(self._taken)}")
            found.append(symbol(name))
        return tuple(found)

    def _of(self, text: str, key: str) -> Expr:
        if key not in self._names:
            clean = re.sub(r"\W", "_", text, flags=re.ASCII)
            self._names[key] = self._unique(
                f"_{clean}" if clean[:1].isdigit() or not clean else clean
            )
        return symbol(self._names[key])

    def _unique(self, base: str) -> str:
        name, count = base, 1
        while name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return name
