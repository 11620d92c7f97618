"""What quantisation did to a model, layer by layer."""

from __future__ import annotations

import json
from math import isfinite
from typing import NamedTuple, Self

from edgewise.errors import ModelFormatError

KEY = "edgewise.quantization"
TITLES = ("layer", "precision", "SQNR dB", "range", "clipped")


class LayerReport(NamedTuple):
    """One layer.

    Attributes:
        name: That of its weight.
        precision: Of its products: int8, int16 where its image has 16 bits, or float32
            where it was kept.
        sqnr: Signal to noise of its weights, in dB; infinite where nothing was lost.
        low: The least number of its image; minus infinity where weights alone have few
            bits, so that it does not matter.
        high: The largest.
        clipped: Share of the numbers of its image that lie outside its range.
        sensitivity: What it alone takes from the outputs, as noise over signal; None
            where that was not measured.
    """

    name: str
    precision: str
    sqnr: float
    low: float
    high: float
    clipped: float
    sensitivity: float | None = None


class QuantizationReport(NamedTuple):
    """All layers, and what was tried.

    Attributes:
        layers: One report each.
        weights: What weights are stored as.
        activations: What runs between layers.
        method: How ranges were found.
        notes: What users should know.
    """

    layers: tuple[LayerReport, ...]
    weights: str
    activations: str
    method: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.weights} weights, {self.activations} activations, {self.method}"
        measured = any(layer.sensitivity is not None for layer in self.layers)
        titles = (*TITLES, "sensitivity") if measured else TITLES
        rows = [titles, *(_cells(layer)[: len(titles)] for layer in self.layers)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join((head, *lines, *self.notes))

    def text(self) -> str:
        """As a file keeps it."""
        rows = [list(layer) for layer in self.layers]
        return json.dumps({**self._asdict(), "layers": rows})

    @classmethod
    def of(cls, text: str) -> Self:
        """From what a file kept.

        Raises:
            ModelFormatError: That is no report.
        """
        try:
            facts = json.loads(text)
            layers = tuple(LayerReport(*row) for row in facts.pop("layers"))
            return cls(layers=layers, **(facts | {"notes": tuple(facts["notes"])}))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = f"{KEY}: got {text[:40]!r}; want a report"
            raise ModelFormatError("", reason) from error


def _cells(layer: LayerReport) -> tuple[str, ...]:
    """A line of the table."""
    cost, seen = layer.sensitivity, isfinite(layer.low)
    return (
        layer.name,
        layer.precision,
        f"{layer.sqnr:7.1f}",
        f"{layer.low:.4g} to {layer.high:.4g}" if seen else "any",
        f"{layer.clipped:.2%}",
        "" if cost is None else f"{cost:.2e}",
    )
