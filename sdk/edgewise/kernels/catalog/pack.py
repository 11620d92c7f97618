"""Which native functions put weights of a run in the order that kernels walk."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import Binding, Call, In, Launch, Out, Word, kernel
from edgewise.kernels.catalog.calls import given, integer, integers, only_f32
from edgewise.kernels.catalog.strides import Ints, collapse, contiguous

LANES = 16
FIXED_WORDS = 6


def panels_launch(
    source: Word,
    target: Word,
    *,
    shape: tuple[int, int, int],
    matrices: tuple[Ints, Ints],
    reduction: tuple[Ints, Ints],
) -> Launch:
    """Pack matrices, one after the other.

    Args:
        source: Address of the elements.
        target: Address of the panels.
        shape: K, columns of a matrix, elements from column to column.
        matrices: Sizes and strides of the axes over matrices.
        reduction: Sizes and strides of the axes that K flattens.
    """
    k, columns, step = shape
    outer = (len(matrices[0]), *matrices[0], *matrices[1])
    inner = (len(reduction[0]), *reduction[0], *reduction[1])
    words = (source, target, k, columns, step, FIXED_WORDS + len(outer))
    tasks = math.prod(matrices[0]) * -(-columns // LANES)
    return Launch("pack_panels_f32", (*words, *outer, *inner), tasks)


@kernel("pack_panels", "pack_panels_f32")
@only_f32
def pack_panels(call: Call) -> Binding:
    """Batch axes and groups are matrices; the axes before the last are K."""
    if not math.prod(call.outputs[0].dims):
        return Binding(())
    axes, groups = integers(call, "axes"), integer(call, "groups")
    dims, own = given(call, 0).dims, contiguous(given(call, 0).dims)
    sizes = tuple(dims[axis] for axis in axes)
    steps = tuple(own[axis] for axis in axes)
    batch, columns = integer(call, "batch"), sizes[-1] // groups
    rows, (row_steps,) = collapse(sizes[batch:-1], steps[batch:-1])
    launch = panels_launch(
        In(0),
        Out(0),
        shape=(math.prod(sizes[batch:-1]), columns, steps[-1]),
        matrices=(
            (*sizes[:batch], groups),
            (*steps[:batch], columns * steps[-1]),
        ),
        reduction=(rows, row_steps),
    )
    return Binding((launch,))


@kernel("pack_taps", "pack_taps_f32")
@only_f32
def pack_taps(call: Call) -> Binding:
    """A task is one tap."""
    taps, channels = call.outputs[0].dims
    if not taps * channels:
        return Binding(())
    words = (In(0), Out(0), channels, taps)
    return Binding((Launch("pack_taps_f32", words, taps),))
