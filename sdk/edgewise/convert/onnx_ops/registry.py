"""How an ONNX operator is declared: ``@onnx_op("Relu", since=1)`` over a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from edgewise.convert.context import OpContext
from edgewise.errors import InternalError
from edgewise.ir.graph import Value

Outputs: TypeAlias = "Value | tuple[Value | None, ...]"
Importer: TypeAlias = Callable[[OpContext], Outputs]

_IMPORTERS: dict[str, list[tuple[int, Importer]]] = {}


def onnx_op(*names: str, since: int = 1) -> Callable[[Importer], Importer]:
    """Register a function for main-domain operators, from operator set ``since`` on.

    The function gives the operator's outputs; ``None`` stands for one it cannot give.
    """

    def register(importer: Importer) -> Importer:
        for name in names:
            versions = _IMPORTERS.setdefault(name, [])
            if any(version == since for version, _ in versions):
                raise InternalError(f"{name} since {since} is declared twice")
            versions.append((since, importer))
            versions.sort(key=lambda item: -item[0])
        return importer

    return register


def importer_of(name: str, opset: int) -> Importer | None:
    """The function that imports ``name`` as operator set ``opset`` has it."""
    for since, importer in _IMPORTERS.get(name, ()):
        if since <= opset:
            return importer
    return None


def supported() -> tuple[str, ...]:
    """Names of all operators that can be imported."""
    return tuple(sorted(_IMPORTERS))
