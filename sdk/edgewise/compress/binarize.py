"""Weights of one bit: a sign, and one size for every output channel."""

from __future__ import annotations

import numpy as np

from edgewise.compress.signs import with_signs
from edgewise.compress.weights import first_layers, logical, weights_of, with_weights
from edgewise.errors import ConfigError
from edgewise.ir.module import Coding
from edgewise.ir.op import Array
from edgewise.model import Model, want_model
from edgewise.ops.pack import output_axis


def binarize(
    model: Model,
    *,
    keep: tuple[str, ...] | None = None,
    activations: bool = False,
) -> Model:
    """The model with weights that differ within an output channel in sign alone.

    Their size is the mean of those that were there (Rastegari et al., 2016).  The model
    has to be trained after: a trainer keeps real weights, takes their signs, and lets
    gradients pass straight through.  Files hold a bit a weight; sessions unpack them.

    Args:
        model: Stays as it is.
        keep: Patterns (as of fnmatch) of the names of weights that stay real; None:
            those of the first layers, which are small and meet the input itself.
        activations: Whether such layers read signs, too: those that read sums, whose
            ReLU goes. Once trained, ``pack_binary`` makes them products of bits.

    Raises:
        ConfigError: The model has no weights to make binary.
    """
    want_model(model)
    early = first_layers(model) if keep is None else frozenset()
    infos = model.module.variables
    changes = {
        key: _signs(logical(model, key), output_axis(infos[key].packing))
        for key in weights_of(model, keep or ())
        if key not in early
    }
    if not changes:
        raise ConfigError("binarize: got a model of first layers alone")
    made = with_weights(model, changes, Coding.BINARY)
    return with_signs(made, changes) if activations else made


def _signs(weight: Array, axis: int) -> Array:
    others = tuple(j for j in range(weight.ndim) if j != axis)
    size = np.abs(weight).mean(others, dtype=np.float64, keepdims=True)
    size = size.astype(weight.dtype)
    return np.asarray(np.where(weight < 0, -size, size))
