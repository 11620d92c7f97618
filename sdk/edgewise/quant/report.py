"""What quantisation did to a model, layer by layer."""

from __future__ import annotations

import json
from typing import NamedTuple, Self

from edgewise.errors import ModelFormatError

KEY = "edgewise.quantization"


class LayerReport(NamedTuple):
    """One layer.

    Attributes:
        name: That of its weight.
        precision: Of its products: int8, or float32 where it was kept.
        sqnr: Signal to noise of its weights, in dB; infinite where nothing was lost.
        low: The least number of its image.
        high: The largest.
        clipped: Share of the numbers of its image that lie outside its range.
    """

    name: str
    precision: str
    sqnr: float
    low: float
    high: float
    clipped: float


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
        width = max((len(layer.name) for layer in self.layers), default=5)
        lines = [head, f"{'layer':{width}}  precision  SQNR dB  range  clipped"]
        lines += [
            f"{layer.name:{width}}  {layer.precision:9}  {layer.sqnr:7.1f}"
            f"  {layer.low:.4g} to {layer.high:.4g}  {layer.clipped:.2%}"
            for layer in self.layers
        ]
        return "\n".join((*lines, *self.notes))

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
