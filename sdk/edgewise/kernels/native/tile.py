"""The innermost loop of a product: some rows times some panels, sums in registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at, prefetch_at, store_at
from edgewise.kernels.native.vector import (
    F32,
    I64,
    Vector,
    constant,
    f32x16,
    fused_multiply_add,
    splat_lanes,
)

PANEL_STEP = 64  # bytes of one reduction index of a panel: 16 lanes
UNROLL = 4
CACHE_LINE = 16  # products in a cache line of a row


class Group(NamedTuple):
    """How a target adds products to the sums of all rows and panels of a tile at once.

    Meanwhile it holds the sums as it likes.

    Attributes:
        enter: ``enter(builder, sums, rows)``: the values that hold these sums.
        add: ``add(builder, place, a, b, values)`` adds the products at ``place``, an
            index and how far behind it each is.
        leave: ``leave(builder, values, rows)``: the sums.
    """

    enter: Callable[..., list[ir.Value]]
    add: Callable[..., list[ir.Value]]
    leave: Callable[..., list[ir.Value]]


def _no_group(context, count: int) -> Group | None:
    return None


class Sums(NamedTuple):
    """What is summed, sixteen lanes at a time: four bytes of a row, 64 of a panel.

    Attributes:
        vector: Type of sixteen sums.
        element: What one number of a row, broadcast to all lanes, is.
        of: The vector type of such numbers and of a panel's.
        align: Bytes to which rows are aligned.
        join: ``join(context, builder, left, right, sums)`` adds the products of
            two lists.
        rows: Of the largest tile whose sums stay in registers.
        at_once: How many products of a sum are joined at once, where there are so many.
        group: ``group(context, count)`` does so for all sums together, ``count``
            products at once; ``None`` where ``join`` is the way.
    """

    vector: Vector
    element: ir.Type
    of: Vector
    align: int
    join: Callable[..., ir.Value]
    rows: int = 6
    at_once: int = 1
    group: Callable[..., Group | None] = _no_group


def _add_real(context, builder, left, right, total):
    return fused_multiply_add(context, builder, *left, *right, total)


REALS = Sums(f32x16, F32, f32x16, 4, _add_real)


def make_tile(rows: int, panels: int, kind: Sums = REALS):
    """``tile(k, a, b, stride, sums)``: add ``k`` products to ``rows * panels`` sums.

    ``a`` holds an address for each row, ``b`` is that of the first panel and ``stride``
    the bytes from one panel to the next; ``sums`` is a tuple, panels of a row together.
    """
    sums_type = types.UniTuple(kind.vector, rows * panels)
    rows_type = types.UniTuple(types.int64, rows)
    arguments = (types.int64, rows_type, types.int64, types.int64, sums_type)

    @intrinsic
    def tile(context, k, a, b, stride, sums):
        def generate(cg, builder, _, args):
            k, a, b, stride, sums = args
            a = [builder.extract_value(a, row) for row in range(rows)]
            offsets = [builder.mul(stride, _word(p)) for p in range(panels)]
            b = [builder.add(b, offset) for offset in offsets]
            sums = [builder.extract_value(sums, i) for i in range(rows * panels)]
            whole = builder.and_(k, _word(-UNROLL))
            loop = partial(_loop, cg, builder, kind)
            state = loop((_word(0), whole), a, b, sums, UNROLL)
            state = loop((whole, k), a, b, state, 1)
            return cg.make_tuple(builder, sums_type, state)

        return sums_type(*arguments), generate

    return tile


def make_products(rows: int, most: int, fetch: str = "", kind: Sums = REALS):
    """``products(k, entry, b, sums, more)``: as a tile of one panel, with more to do.

    ``entry`` is where the addresses of the rows lie, ``sums`` a tuple of ``most``, of
    which the first ``rows`` are added to.  ``more`` says what to ask for meanwhile, if
    ``fetch`` is ``panel``: an address, and bytes from there on a product; or ``rows``:
    the bytes from these rows to those that come next, and nothing.
    """
    sums_type = types.UniTuple(kind.vector, most)
    more_type = types.UniTuple(types.int64, 2)
    asks = {"panel": _ask_panel, "rows": _ask_rows}

    @intrinsic
    def products(context, k, entry, b, sums, more):
        def generate(cg, builder, _, args):
            k, entry, b, sums, more = args
            a = [load_at(builder, entry, I64, 8 * row) for row in range(rows)]
            more = [builder.extract_value(more, i) for i in range(2)]
            sums = [builder.extract_value(sums, i) for i in range(most)]
            state, start = sums[:rows], _word(0)
            loop = partial(_loop, cg, builder, kind)
            if fetch:
                ask, end = (
                    partial(asks[fetch], a=a, more=more),
                    _multiple(builder, k, CACHE_LINE),
                )
                state = loop((start, end), a, [b], state, CACHE_LINE, ask)
                start = end
            for unroll in (UNROLL, 1):
                end = _multiple(builder, k, unroll)
                state = loop((start, end), a, [b], state, unroll)
                start = end
            return cg.make_tuple(builder, sums_type, [*state, *sums[rows:]])

        arguments = (types.int64,) * 3
        return sums_type(*arguments, sums_type, more_type), generate

    return products


def _multiple(builder, k, step: int):
    """The largest multiple of ``step`` up to ``k``."""
    return builder.and_(k, _word(-step))


def _ask_panel(builder, index, step, a, more):
    """Fetch what is next, at most two lines for sixteen products."""
    if step % (CACHE_LINE // 2) == 0:
        done = builder.mul(builder.add(index, _word(step)), more[1])
        prefetch_at(builder, builder.add(more[0], done))


def _ask_rows(builder, index, step, a, more):
    """Fetch the same line of each of the next rows."""
    if step < len(a):
        row = builder.add(builder.add(a[step], more[0]), builder.mul(index, _word(4)))
        prefetch_at(builder, row, 3)


def make_rows(rows: int):
    """``product(k, a, step, b, out, ahead)``: rows times a panel, stored as they are.

    The rows lie ``step`` bytes apart from ``a`` on, the sums one after the other.
    From ``ahead`` on memory is fetched that comes next, a line for two products: all
    at once would hold up the loads in between.
    """
    arguments = (types.int64,) * 6

    @intrinsic
    def product(context, k, a, step, b, out, ahead):
        def generate(cg, builder, _, args):
            k, a, step, b, out, ahead = args
            a = [builder.add(a, builder.mul(step, _word(row))) for row in range(rows)]
            whole = builder.and_(k, _word(-UNROLL))
            sums = [constant(f32x16, 0.0)] * rows
            span = _word(0), whole
            ask = partial(_ask_line, ahead=ahead)
            loop = partial(_loop, cg, builder, REALS)
            sums = loop(span, a, [b], sums, UNROLL, ask)
            sums = loop((whole, k), a, [b], sums, 1)
            for row, value in enumerate(sums):
                store_at(builder, value, out, PANEL_STEP * row)
            return cg.get_dummy_value()

        return types.void(*arguments), generate

    return product


def _ask_line(builder, index, step, ahead):
    """Fetch what is next, a line for two products."""
    if step % 2 == 0:
        line = builder.add(ahead, builder.mul(index, _word(PANEL_STEP // 2)))
        prefetch_at(builder, builder.add(line, _word(PANEL_STEP // 2 * step)))


def _word(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


def _loop(context, builder, kind, span, a, b, sums, unroll, ask=None):
    """Products ``span[0]`` to ``span[1]``, ``unroll`` at a time."""
    at_once = min(UNROLL, unroll)
    group = kind.group(context, at_once)
    if group is None:
        at_once = min(kind.at_once, unroll)
        group = Group(_as_they_are, partial(_step, context, kind), _as_they_are)
    values = group.enter(builder, sums, len(a))
    before = builder.block
    head, body, done = (
        builder.function.append_basic_block(f"tile.{name}")
        for name in ("head", "body", "done")
    )
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(I64)
    index.add_incoming(span[0], before)
    phis = [builder.phi(value.type) for value in values]
    for phi, start in zip(phis, values, strict=True):
        phi.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", index, span[1]), body, done)
    builder.position_at_end(body)
    current = list(phis)
    for step in range(unroll):
        if ask:
            ask(builder, index, step)
        if step % at_once == 0:
            steps = range(step, step + at_once)
            current = group.add(builder, (index, steps), a, b, current)
    index.add_incoming(builder.add(index, _word(unroll)), body)
    for phi, value in zip(phis, current, strict=True):
        phi.add_incoming(value, body)
    builder.branch(head)
    builder.position_at_end(done)
    return group.leave(builder, phis, len(a))


def _as_they_are(builder, sums, rows: int):
    return sums


def _step(context, kind, builder, place, a, b, sums):
    """Products for every sum; ``place``: an index, and how far behind it each is."""
    index, steps = place
    a_offset = builder.mul(index, _word(4))
    b_offset = builder.mul(index, _word(PANEL_STEP))

    def column(base):
        at = builder.add(base, b_offset)
        return [load_at(builder, at, kind.of.llvm, PANEL_STEP * step) for step in steps]

    def row(base):
        at = builder.add(base, a_offset)
        numbers = [
            load_at(builder, at, kind.element, 4 * step, kind.align) for step in steps
        ]
        return [splat_lanes(builder, number, kind.of) for number in numbers]

    rights = [column(base) for base in b]
    result = []
    for number, base in enumerate(a):
        left = row(base)
        for panel, right in enumerate(rights):
            total = sums[number * len(b) + panel]
            result.append(kind.join(context, builder, left, right, total))
    return result


def make_zeros(count: int, vector: Vector = f32x16):
    """A function that gives a tuple of ``count`` vectors of zeros."""
    kind = types.UniTuple(vector, count)

    @intrinsic
    def zeros(context):
        def generate(cg, builder, _, args):
            return cg.make_tuple(
                builder, kind, [ir.Constant(vector.llvm, None)] * count
            )

        return kind(), generate

    return zeros
