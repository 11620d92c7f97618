"""What weights lost on average, for shifts to give back."""

from __future__ import annotations

import numpy as np

from edgewise.ir.op import Array, Op
from edgewise.ops.pack import PackPanels


def lost_on_average(lost: Array, packing: Op, means: Array) -> Array:
    """What sums lack for every output channel, over images of these means.

    Where a window leaves the image it lacks less; that is left out of account.

    Args:
        lost: What rounding took from each weight, in the logical shape.
        packing: Of the weight.
        means: Of the channels of the image.
    """
    if not isinstance(packing, PackPanels):  # taps: a channel is made of itself
        return np.asarray(lost.reshape(len(means), -1).sum(1) * means)
    ordered = lost.transpose(packing.axes)
    each = ordered.reshape(-1, *ordered.shape[-2:]).sum(0)  # [channels, outputs]
    groups = packing.groups
    seen = means.reshape(groups, 1, -1)
    parts = each.reshape(each.shape[0], groups, -1).transpose(1, 0, 2)
    return np.asarray((seen @ parts).reshape(-1))
