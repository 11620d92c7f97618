"""Tables of model files with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from edgewise.errors import ModelFormatError
from edgewise.format._generated import schema
from edgewise.format.read import read_bytes

Change: TypeAlias = Callable[[schema.Model], object]


def refuse(data: bytes, reason: str) -> None:
    with pytest.raises(ModelFormatError, match=reason):
        read_bytes(data)


def put(record: str, **values: object) -> Change:
    """Set fields of what a path like ``functions.0.nodes.1`` leads to."""

    def change(model: schema.Model) -> None:
        found: object = model
        for step in record.split(".") if record else ():
            is_place = step.isdecimal() and isinstance(found, tuple)
            found = found[int(step)] if is_place else getattr(found, step)
        found.__dict__.update(values)

    return change
