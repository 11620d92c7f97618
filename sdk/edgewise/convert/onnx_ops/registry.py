"""How an ONNX operator is declared: ``@onnx_op("Relu", since=1)`` over a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from edgewise.convert.context import OpContext
from edgewise.convert.source import MAIN_DOMAINS
from edgewise.errors import InternalError
from edgewise.ir.graph import Value

Outputs: TypeAlias = "Value | tuple[Value | None, ...]"
Importer: TypeAlias = Callable[[OpContext], Outputs]

_IMPORTERS: dict[tuple[str, str], list[tuple[int, Importer]]] = {}


def onnx_op(
    *names: str, since: int = 1, domain: str = ""
) -> Callable[[Importer], Importer]:
    """Register a function for operators of ``domain``, from version ``since`` on.

    The function gives the operator's outputs; ``None`` stands for one it cannot give.
    """

    def register(importer: Importer) -> Importer:
        for name in names:
            versions = _IMPORTERS.setdefault((domain, name), [])
            if any(version == since for version, _ in versions):
                raise InternalError(f"{name} since {since} is declared twice")
            versions.append((since, importer))
            versions.sort(key=lambda item: -item[0])
        return importer

    return register


def importer_of(name: str, opset: int, domain: str = "") -> Importer | None:
    """The function that imports ``name`` as version ``opset`` of its domain has it."""
    if domain in MAIN_DOMAINS:
        domain = ""
    for since, importer in _IMPORTERS.get((domain, name), ()):
        if since <= opset:
            return importer
    return None


def supported() -> tuple[tuple[str, str], ...]:
    """Domains and names of all operators that can be imported."""
    return tuple(sorted((domain or "ai.onnx", name) for domain, name in _IMPORTERS))
