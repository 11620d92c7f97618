"""Numbers of bytes as people write them."""

from __future__ import annotations

import re

from edgewise.errors import ConfigError

UNITS = {"": 1, "B": 1}
UNITS |= {f"{p}B": 10 ** (3 * n) for n, p in enumerate("KMG", 1)}
UNITS |= {f"{p}IB": 2 ** (10 * n) for n, p in enumerate("KMG", 1)}


def in_bytes(budget: int | str) -> int:
    """A number of bytes, given as that or as ``"64MB"`` or ``"64MiB"``.

    Raises:
        ConfigError: It is neither.
    """
    if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
        return budget
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Z]*)", str(budget).strip().upper())
    if not isinstance(budget, str) or found is None or found[2] not in UNITS:
        raise ConfigError(
            f"memory_budget={budget!r}: want bytes, or a text like '64MB' or '64MiB'"
        )
    size = float(found[1]) * UNITS[found[2]]
    if not 1 <= size < float("inf"):
        raise ConfigError("memory_budget: want a number of bytes from 1 on")
    return int(size)
