"""Gradients of packed weights: unpacked, for lanes beyond the columns are nobody's."""

from __future__ import annotations

from edgewise.dims import ceildiv, floordiv, product
from edgewise.ops import PackPanels, PackTaps, Reshape, Slice, Transpose
from edgewise.ops.pack import PANEL
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(PackPanels)
def pack_panels(at: Adjoint) -> Gradients:
    """Panels to rows to the axes of the weight."""
    op, shape = at.op, at.x.type.shape
    ordered = tuple(shape[axis] for axis in op.axes)
    batch, reduced, columns = ordered[: op.batch], ordered[op.batch : -1], ordered[-1]
    each = floordiv(columns, op.groups)
    outer, rows = product(batch), product(reduced)
    count = ceildiv(each, PANEL)
    tiles = Reshape((outer, op.groups, count, rows, PANEL))(at.dy)
    tiles = Transpose((0, 3, 1, 2, 4))(tiles)
    wide = Reshape((outer, rows, op.groups, count * PANEL))(tiles)
    kept = Slice((0,) * 4, (outer, rows, op.groups, each), (1,) * 4)(wide)
    permuted = Reshape(ordered)(kept)
    back = tuple(sorted(range(len(op.axes)), key=lambda j: op.axes[j]))
    return (Transpose(back)(permuted),)


@gradient(PackTaps)
def pack_taps(at: Adjoint) -> Gradients:
    """A row for each tap to a window for each channel."""
    return (Reshape(at.x.type.shape)(Transpose((1, 0))(at.dy)),)
