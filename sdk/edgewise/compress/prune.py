"""Weights that are zero: the smallest ones, or whole channels."""

from __future__ import annotations

import numpy as np

from edgewise.compress.channels import without_channels
from edgewise.compress.weights import logical, weights_of, with_weights
from edgewise.errors import ConfigError
from edgewise.ir.module import Coding, Module
from edgewise.ir.op import Array
from edgewise.model import Model, want_model
from edgewise.wanted import want_part


def prune(
    model: Model,
    share: float,
    *,
    structured: bool = False,
    norm: str = "l2",
    keep: tuple[str, ...] = (),
) -> Model:
    """The model without its smallest weights, or without its weakest channels.

    Args:
        model: Stays as it is.
        share: Of the elements of every weight, or of the channels of every layer.
        structured: Whether whole output channels go, and with them all that reads
            them: the model computes less. Otherwise single weights become zero, and a
            trainer keeps them zero; files hold the others alone.
        norm: What the strength of a channel is: l1 or l2 of its weights.
        keep: Patterns (as of fnmatch) of the names of weights that stay.

    Raises:
        ConfigError: The share is none, or nothing can be pruned.
    """
    want_part("share", share)
    if norm not in ("l1", "l2"):
        raise ConfigError(f"norm={norm!r}: want l1 or l2")
    chosen = weights_of(model, keep)
    if structured:
        return without_channels(model, share, norm, chosen)
    changes = {key: _without_smallest(logical(model, key), share) for key in chosen}
    return with_weights(model, changes, Coding.SPARSE)


def pack_sparse(model: Model) -> Model:
    """The model whose file holds only a bit of every zero.

    Every variable with zeros enough to gain by it, quantised ones included.  Sessions
    unpack them at load, and run as fast as before.
    """
    want_model(model)
    module = model.module
    variables = {
        key: info.holding(info.initial, Coding.SPARSE)
        if info.coding is Coding.PLAIN and _gains(info.initial)
        else info
        for key, info in module.variables.items()
    }
    return Model(Module(module.functions, variables, module.metadata))


def _without_smallest(weight: Array, share: float) -> Array:
    """Zeros in place of exactly that share; among equals, the first go."""
    order = np.argsort(np.abs(weight), axis=None, kind="stable")
    kept = weight.reshape(-1).copy()
    kept[order[: int(share * weight.size)]] = 0
    return kept.reshape(weight.shape)


def _gains(stored: Array | None) -> bool:
    """Whether the zeros that a bit each stands for outweigh the bits of the rest."""
    if stored is None or stored.dtype.kind not in "fiu":
        return False
    zeros = stored.size - np.count_nonzero(stored)
    return bool(zeros * 8 * stored.itemsize > stored.size)
