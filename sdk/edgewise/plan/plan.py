"""A plan: everything a run of one function at given sizes needs, but addresses."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from edgewise.dims import Dim
from edgewise.errors import ShapeError
from edgewise.ir.op import Op
from edgewise.kernels.catalog.base import Binding, Preparation
from edgewise.kernels.catalog.base import find as find_kernel
from edgewise.named import NamedTuple
from edgewise.plan.arena import Block, Layout, arrange
from edgewise.plan.bind import bind
from edgewise.plan.bottlenecks import merge
from edgewise.plan.flat import ABSENT, Flat
from edgewise.plan.parts import Find, bind_kernel, has_parts, place
from edgewise.plan.room import Room
from edgewise.plan.segments import Segment, cut
from edgewise.plan.steps import Steps, Writer
from edgewise.plan.storage import ARENA, Base, Place, Storage, lay_out
from edgewise.types import TensorType, ValueType

NOWHERE = (ABSENT, 0)  # root and offset of a value that lies in no other


class Recipe(NamedTuple):
    """Memory that steps read, made before runs: from which variable, and how."""

    variable: str
    how: Preparation


class Plan(NamedTuple):
    """How a function runs at given sizes.

    Attributes:
        flat: The function's graph, numbered.
        ops: Its ops at these sizes, by node number.
        types: Types of its values, by value number.
        bindings: Kernels of every node; ``None`` where the reference does it, and for
            views, which are no work.
        storage: Buffers of the values.
        locations: Base and offset of every value.
        layout: Size of the arena, and the size below which none can be.
        segments: Runs of native steps, and single ops by reference.
        steps: The native launches.
        prepared: What they read besides values.
        output_copies: Positions of outputs that lie elsewhere, to be copied at the end.
        update_copies: Variables whose new value is copied when the run has ended well.
    """

    flat: Flat
    ops: list[Op]
    types: list[ValueType]
    bindings: list[Binding | None]
    storage: Storage
    locations: list[tuple[Base, int]]
    layout: Layout
    segments: tuple[Segment, ...]
    steps: Steps
    prepared: tuple[Recipe, ...]
    output_copies: tuple[int, ...]
    update_copies: tuple[str, ...]


def make_plan(
    flat: Flat,
    sizes: Mapping[str, Dim] | None = None,
    *,
    workers: int = 1,
    direct: Collection[str] = (),
    find: Find = find_kernel,
    limit: int | None = None,
) -> Plan:
    """Plan a function.

    Args:
        flat: Its graph, numbered.
        sizes: A size for every symbol in it.
        workers: Threads that may run it: each needs scratch memory of its own.
        direct: Variables that may be written while it runs (see ``lay_out``).
        find: Which kernels take a call.
        limit: Bytes that the arena and the outputs may take together; None: any.

    Raises:
        ShapeError: The sizes do not fit an op, or the limit.
    """
    ops, types, byte_sizes = bind(flat, sizes or {})
    # Before a kernel computes with sizes that no memory holds.
    _want_within(limit, max((*byte_sizes, *map(_references, types)), default=0))
    bindings = [bind_kernel(flat, types, n, op, find) for n, op in enumerate(ops)]
    inside: dict[int, tuple[int, int]] = {}
    if has_parts(ops):
        room = Room(lay_out(flat, ops, types, byte_sizes, direct), bindings)
        inside = place(flat, ops, types, bindings, find, room)
    roots = {number: root for number, (root, _) in inside.items()}
    flat, ops, bindings, gone = merge(flat, ops, types, bindings, find, inside)
    byte_sizes = [0 if n in gone else size for n, size in enumerate(byte_sizes)]
    slow = (n for n, op in enumerate(ops) if bindings[n] is None and not op.view)
    settled = max(slow, default=ABSENT) + 1
    storage = lay_out(flat, ops, types, byte_sizes, direct, roots, settled)
    recipes, numbers = _prepared(flat, bindings)
    layout, buffer_offsets, temps = _arrange(storage, bindings, workers)
    _want_within(limit, layout.size + sum(byte_sizes[n] for n in flat.outputs))
    locations = [
        (storage.buffers[of].base, buffer_offsets[of] + inside.get(number, NOWHERE)[1])
        for number, of in enumerate(storage.of)
    ]
    return Plan(
        flat=flat,
        ops=ops,
        types=types,
        bindings=bindings,
        storage=storage,
        locations=locations,
        layout=layout,
        segments=cut(ops, bindings),
        steps=_write_steps(flat, bindings, Writer(locations, numbers), temps),
        prepared=recipes,
        output_copies=tuple(
            position
            for position, number in enumerate(flat.outputs)
            if locations[number][0] != Base(Place.OUTPUT, position)
        ),
        update_copies=tuple(
            key
            for key, number in flat.updates.items()
            if locations[number] != (Base(Place.VARIABLE, key), 0)
        ),
    )


def _prepared(
    flat: Flat, bindings: Sequence[Binding | None]
) -> tuple[tuple[Recipe, ...], list[tuple[int, ...]]]:
    """What is prepared, each once, and its numbers for every node."""
    recipes: dict[Recipe, int] = {}
    numbers = []
    for reads, binding in zip(flat.reads, bindings, strict=True):
        wanted = [
            Recipe(flat.fixed[reads[how.slot]], how)
            for how in (binding.prepared if binding else ())
        ]
        numbers.append(tuple([recipes.setdefault(w, len(recipes)) for w in wanted]))
    return tuple(recipes), numbers


def _want_within(limit: int | None, needed: int) -> None:
    if limit is not None and needed > limit:
        raise ShapeError(
            f"these sizes need {needed} bytes at once; want at most {limit}, the"
            " session's memory_limit"
        )


def _references(type_: ValueType) -> int:
    """Bytes of a tensor of Python objects beside the objects."""
    if isinstance(type_, TensorType) and type_.is_object:
        return 8 * math.prod(type_.dims)
    return 0


def _arrange(
    storage: Storage, bindings: Sequence[Binding | None], workers: int
) -> tuple[Layout, list[int], list[list[int]]]:
    """The arena: its layout, the offset of every buffer, of every node's temporaries.

    A node's scratch area, which holds a part for each worker, is its last temporary.
    """
    blocks: list[Block] = []
    owners: list[int] = []
    for number, buffer in enumerate(storage.buffers):
        if buffer.base is ARENA:
            owners.append(number)
            blocks.append(Block(buffer.size, buffer.first, buffer.last))
    counts = []
    for index, binding in enumerate(bindings):
        areas = (*binding.temps, binding.scratch * workers) if binding else ()
        blocks += [Block(size, index, index) for size in areas]
        counts.append(len(areas))
    layout = arrange(blocks)
    offsets = [0] * len(storage.buffers)
    for number, offset in zip(owners, layout.offsets, strict=False):
        offsets[number] = offset
    rest = iter(layout.offsets[len(owners) :])
    temps = [[next(rest) for _ in range(count)] for count in counts]
    return layout, offsets, temps


def _write_steps(
    flat: Flat,
    bindings: Sequence[Binding | None],
    writer: Writer,
    temps: Sequence[Sequence[int]],
) -> Steps:
    for index, binding in enumerate(bindings):
        if binding is not None:
            reads, writes = flat.reads[index], flat.writes[index]
            writer.add(index, binding, reads, writes, temps[index])
    return writer.finish()
