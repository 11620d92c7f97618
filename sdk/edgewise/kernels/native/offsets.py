"""From a running number to the place of an element, by sizes and strides in words."""

from __future__ import annotations

from edgewise.kernels.native.abi import helper


@helper
def offset_of(args, at, operand, index):
    """Elements from the start of ``operand`` to item ``index``, the last axis fastest.

    The words from ``at`` on: rank, ``rank`` sizes, then ``rank`` strides an operand.
    """
    rank, offset = args[at], 0
    strides = at + 1 + rank * (1 + operand)
    for axis in range(rank - 1, -1, -1):
        size = args[at + 1 + axis]
        offset += index % size * args[strides + axis]
        index //= size
    return offset
