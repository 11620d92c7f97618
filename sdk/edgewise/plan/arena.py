"""Offsets in one piece of memory for blocks that live at different times.

Placing the largest block first, each at the lowest offset free while it lives, is the
rule that arena planners use; the order matters, so a few orders are tried and the
smallest result is kept.  No order can go below the largest sum of live bytes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from itertools import accumulate

from edgewise.named import NamedTuple

ALIGNMENT = 64


class Block(NamedTuple):
    """Bytes needed from step ``first`` to step ``last``, both included."""

    size: int
    first: int
    last: int


class Layout(NamedTuple):
    """Where blocks lie.

    Attributes:
        offsets: One per block, in bytes, aligned.
        size: Bytes of the whole.
        lower_bound: Largest sum of live bytes over the steps.
    """

    offsets: list[int]
    size: int
    lower_bound: int


def arrange(blocks: Sequence[Block]) -> Layout:
    """Offsets such that no two blocks that live at one time overlap."""
    live = live_bytes(blocks)
    bound = max(live, default=0)
    padded = [-(-block.size // ALIGNMENT) * ALIGNMENT for block in blocks]
    least = max(
        live_bytes([b._replace(size=p) for b, p in zip(blocks, padded, strict=True)]),
        default=0,
    )
    layouts = []
    for order in ORDERS:
        ranking = order(blocks, live)
        offsets = _place(blocks, padded, sorted(range(len(blocks)), key=ranking))
        size = max(map(sum, zip(offsets, padded, strict=True)), default=0)
        layouts.append(Layout(offsets, size, bound))
        if size == least:
            break
    return min(layouts, key=lambda layout: layout.size)


def live_bytes(blocks: Sequence[Block]) -> list[int]:
    """Sum of the bytes that live at each step."""
    change = [0] * (max((block.last for block in blocks), default=-1) + 2)
    for size, first, last in blocks:
        change[first] += size
        change[last + 1] -= size
    return list(accumulate(change))


def _place(
    blocks: Sequence[Block], padded: Sequence[int], order: Sequence[int]
) -> list[int]:
    """Each block of ``order`` at the lowest gap between those it meets in time."""
    offsets = [0] * len(blocks)
    placed: list[tuple[int, int, int, int]] = []  # by offset: offset, end, first, last
    for number in order:
        size, (_, born, dead) = padded[number], blocks[number]
        if not size:
            continue
        start = 0
        for offset, end, first, last in placed:
            if first <= dead and last >= born:
                if offset - start >= size:
                    break
                start = max(start, end)
        offsets[number] = start
        insort(placed, (start, start + size, born, dead))
    return offsets


Ranking = Callable[[int], tuple[int, ...]]


def _by_size(blocks: Sequence[Block], live: Sequence[int]) -> Ranking:
    del live
    return lambda n: (-blocks[n].size, blocks[n].first)


def _by_lifetime(blocks: Sequence[Block], live: Sequence[int]) -> Ranking:
    del live
    return lambda n: (blocks[n].first - blocks[n].last, -blocks[n].size)


def _by_pressure(blocks: Sequence[Block], live: Sequence[int]) -> Ranking:
    """Blocks of the fullest step first, the largest of them foremost."""
    peak = [max(live[b.first : b.last + 1], default=0) for b in blocks]
    return lambda n: (-peak[n], -blocks[n].size, blocks[n].first)


ORDERS = (_by_size, _by_pressure, _by_lifetime)
