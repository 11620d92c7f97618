"""The gradient of blocks that are summed up in their places."""

from __future__ import annotations

import itertools

from edgewise.dims import floordiv, product
from edgewise.ops import Concat, FoldColumns, Pad, Reshape, Slice
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(FoldColumns)
def fold_columns(at: Adjoint) -> Gradients:
    """Each block what lies in its window: a slice for each of its places."""
    op, axes = at.op, len(at.op.sizes)
    if not all(isinstance(size, int) for size in op.block):
        raise at.refuse("only a run knows its block")
    pads = (0, 0, *op.pads[:axes], 0, 0, *op.pads[axes:])
    wide = Pad(pads)(at.dy) if any(pads) else at.dy
    batch, channels, *sizes = wide.type.shape
    counts = tuple(
        floordiv(size - (block - 1) * dilation - 1, stride) + 1
        for size, block, dilation, stride in zip(
            sizes, op.block, op.dilations, op.strides, strict=True
        )
    )
    parts = []
    for tap in itertools.product(*map(range, op.block)):
        starts = (t * d for t, d in zip(tap, op.dilations, strict=True))
        shape, steps = (batch, channels, *counts), (1, 1, *op.strides)
        seen = Slice((0, 0, *starts), shape, steps)(wide)
        parts.append(Reshape((batch, channels, 1, product(counts)))(seen))
    return (Reshape(at.x.type.shape)(Concat(2)(*parts)),)
