"""How a kernel walks tensors: axes merged to as few as possible, work cut into tasks.

A walk visits ``rows * chunks`` items: a row is one position on all axes but the last, a
chunk is a piece of the last axis.  A task is ``per_task`` items.
"""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import MAX_RANK, blocks
from edgewise.named import NamedTuple

BLOCK = 4096  # elements a task of an elementwise kernel: one to three microseconds

Ints = tuple[int, ...]


def contiguous(shape: Ints) -> Ints:
    """Strides, in elements, of a tensor that lies in one piece."""
    steps = []
    step = 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


def broadcast(shape: Ints, target: Ints, own: Ints | None = None) -> Ints:
    """Strides of ``shape``, whose are ``own``, read as ``target``, as numpy does it."""
    own = own or contiguous(shape)
    steps = tuple(
        0 if size == 1 else step for size, step in zip(shape, own, strict=True)
    )
    return (0,) * (len(target) - len(shape)) + steps


def collapse(dims: Ints, *operands: Ints) -> tuple[Ints, tuple[Ints, ...]]:
    """The same walk over fewer axes.

    Axes of one element go; neighbours merge where every operand steps through both as
    if they were one.

    Returns:
        Sizes, at least one; and the strides of each operand.
    """
    if 0 in dims:
        return (0,), ((1,),) * len(operands)
    kept: list[tuple[int, Ints]] = []
    for axis, size in enumerate(dims):
        if size == 1:
            continue
        steps = tuple(operand[axis] for operand in operands)
        if kept and all(
            outer == step * size for outer, step in zip(kept[-1][1], steps, strict=True)
        ):
            kept[-1] = (kept[-1][0] * size, steps)
        else:
            kept.append((size, steps))
    if not kept:
        kept = [(1, (1,) * len(operands))]
    sizes = tuple(size for size, _ in kept)
    return sizes, tuple(zip(*(steps for _, steps in kept), strict=True))


def pitch(dims: Ints, steps: Ints) -> int | None:
    """Elements from row to row, a row being the last axis; ``None`` where that varies.

    ``None``, too, where a row does not lie in one piece.
    """
    if 0 in dims or not dims:
        return dims[-1] if dims else 1
    if dims[-1] != 1 and steps[-1] != 1:
        return None
    if all(size == 1 for size in dims[:-1]):
        return dims[-1]
    sizes, (found,) = collapse(dims[:-1], steps[:-1])
    return found[0] if len(sizes) == 1 else None


class Walk(NamedTuple):
    """A walk cut into tasks.

    Attributes:
        items: Row chunks in all.
        per_task: Row chunks of one task.
        chunks: Chunks a row.
        chunk: Elements of a chunk; the last of a row may be shorter.
        inner: Elements of a row.
        inner_steps: Stride along the row, by operand.
        dims: The other axes.
        steps: Strides along those, by operand.
    """

    items: int
    per_task: int
    chunks: int
    chunk: int
    inner: int
    inner_steps: Ints
    dims: Ints
    steps: tuple[Ints, ...]

    @property
    def tasks(self) -> int:
        """Tasks that cover it."""
        return blocks(self.items, self.per_task)

    @property
    def words(self) -> Ints:
        """As kernels read it: see ``native/walk.py``."""
        head = (self.items, self.per_task, self.chunks, self.chunk, self.inner)
        flat = tuple(step for steps in self.steps for step in steps)
        return (*head, len(self.dims), *self.inner_steps, *self.dims, *flat)


def walk(dims: Ints, *operands: Ints, block: int = BLOCK) -> Walk | None:
    """The walk over ``dims``; ``None`` where it takes more axes than kernels have."""
    sizes, steps = collapse(dims, *operands)
    if len(sizes) > MAX_RANK:
        return None
    inner = sizes[-1]
    chunk = min(inner, block) or 1
    chunks = blocks(inner, chunk)
    return Walk(
        items=math.prod(sizes[:-1]) * chunks if inner else 0,
        per_task=max(1, block // chunk) if chunks == 1 else 1,
        chunks=chunks,
        chunk=chunk,
        inner=inner,
        inner_steps=tuple(operand[-1] for operand in steps),
        dims=sizes[:-1],
        steps=tuple(operand[:-1] for operand in steps),
    )


def around(shape: Ints, axis: int) -> tuple[int, int, int]:
    """``shape`` as (elements before ``axis``, its size, elements after)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
