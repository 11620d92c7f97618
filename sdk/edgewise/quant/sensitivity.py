"""How much of a model's outputs each layer costs that is quantised alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from edgewise.ir.graph import Node
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.session import Session

ENOUGH = 4  # batches: ranks settle early, and every layer takes a session of its own

Batch = Mapping[str, Array]


def sensitivities(
    source: Model,
    layers: Sequence[Node],
    alone: Callable[[Node], Model],
    batches: Sequence[Batch],
) -> dict[Node, float]:
    """The noise in the outputs as a share of them, for every layer.

    Args:
        source: The model as it is.
        layers: Its layers.
        alone: The model with one of them quantised.
        batches: Data to run them over.
    """
    few = batches[:ENOUGH]
    wanted = _outputs(source, few)
    power = [max(float(np.square(y).sum()), np.finfo(float).tiny) for y in wanted]
    found = {}
    for layer in layers:
        given = _outputs(alone(layer), few)
        noise = [np.square(a - b).sum() for a, b in zip(given, wanted, strict=True)]
        found[layer] = float(sum(n / p for n, p in zip(noise, power, strict=True)))
    return found


def _outputs(model: Model, batches: Sequence[Batch]) -> list[Array]:
    """Every real output, over all batches."""
    with Session(model) as session:
        results = [list(session.run(batch).values()) for batch in batches]
    return [
        np.concatenate([array.astype(np.float64).reshape(-1) for array in arrays])
        for arrays in zip(*results, strict=True)
        if isinstance(arrays[0], np.ndarray) and arrays[0].dtype.kind == "f"
    ]
