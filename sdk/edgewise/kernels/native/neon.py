"""Sums of products of bytes on ARM, for all rows and panels of a tile together.

A register holds four bytes of each of four columns, or of a row sixteen, of which four
are spread.  ``sdot`` and ``usdot`` add products of four bytes to sums of 32 bits;
``smmla`` and ``usmmla`` those of eight bytes of two rows and of two columns.  Before,
``smull`` gives products of 16 bits, which are added in pairs.

All but ``smmla`` processors multiply signed bytes only: of unsigned ones 128 is taken
off, and ``MOVED`` times the sum of a column is what its sums begin with.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at, shuffled
from edgewise.kernels.native.tile import PANEL_STEP, Group
from edgewise.kernels.native.vector import I8, I32, I64, LANES, call_llvm

I16 = ir.IntType(16)
BYTES, SUMS = ir.VectorType(I8, 16), ir.VectorType(I32, 4)
PAIRS = ir.VectorType(I16, 8)
PARTS = LANES // 4  # registers of sixteen sums
MOST_ROWS = 6
MOVED = 128


def _way(context) -> str:
    """How the target sums products of bytes, if it is an ARM."""
    return getattr(context.codegen(), "dot", "")


def _is_moved(context) -> bool:
    return _way(context) in {"smull", "sdot"}


@intrinsic
def moved(context):
    """What the target takes off unsigned bytes before it multiplies them."""

    def generate(cg, *_):
        return ir.Constant(I64, MOVED if _is_moved(cg) else 0)

    return types.int64(), generate


def group_of(context, count: int, *, signed: bool, narrow: bool, paired: bool):
    """How ``count`` products are added at once; ``None`` where the target is no ARM.

    Args:
        context: Numba's, which knows the target.
        count: 1 or 4.
        signed: Whether the bytes of rows are.
        narrow: Whether weights are from -64 to 63.
        paired: Whether sums of the four products of two bytes side by side, of two
            products one after the other, are known to fit 16 bits.
    """
    way = _way(context)
    if not way:
        return None
    flip = not signed and _is_moved(context)
    width = 2 if count > 1 and (way == "smmla" or (way == "smull" and paired)) else 1
    if way == "smull":
        dot = _by_pairs if width == 2 else partial(_by_halves, narrow=narrow)
    else:
        dot = partial(_by_dots, mixed=not (signed or flip))
    if way == "smmla" and width == 2:
        each = partial(_doubly, "smmla" if signed else "usmmla", dot)
        return Group(_enter_blocks, partial(_add, each, width, flip), _leave_blocks)
    return Group(_enter, partial(_add, partial(_singly, dot), width, flip), _leave)


def _enter(builder, sums, rows: int):
    """Registers of sums, those of a row and panel together."""
    return [
        shuffled(builder, value, value, range(start, start + 4))
        for value in sums
        for start in range(0, LANES, 4)
    ]


def _leave(builder, values, rows: int):
    pairs = [
        shuffled(builder, low, high, range(8))
        for low, high in zip(values[::2], values[1::2], strict=True)
    ]
    return [
        shuffled(builder, low, high, range(LANES))
        for low, high in zip(pairs[::2], pairs[1::2], strict=True)
    ]


def _rows(builder, place, bases, *, flip: bool):
    """Of each row a register of bytes: one word four times, or four words."""
    index, steps = place
    found = []
    for base in bases:
        at = builder.add(base, builder.mul(index, ir.Constant(I64, 4)))
        kind = ir.VectorType(I32, len(steps))
        value = load_at(builder, at, kind, 4 * steps[0], align=1)
        value = shuffled(builder, value, value, [i % kind.count for i in range(4)])
        if flip:
            value = builder.xor(value, ir.Constant(SUMS, [0x80808080] * 4))
        found.append(value)
    return found


def _weights(builder, place, base, part: int):
    """A register of a panel for every product."""
    index, steps = place
    at = builder.add(base, builder.mul(index, ir.Constant(I64, PANEL_STEP)))
    return [
        load_at(builder, at, BYTES, PANEL_STEP * step + 16 * part, align=1)
        for step in steps
    ]


def _spread(builder, row, word: int):
    """Four bytes of a row, four times."""
    return builder.bitcast(shuffled(builder, row, row, [word] * 4), BYTES)


def _add(each, width: int, flip: bool, builder, place, a, b, values):
    """``each`` adds ``width`` products of every row with four columns at once.

    Rows are read for all steps together, where that leaves registers for blocks.
    """
    (index, steps), registers, values = place, PARTS * len(b), list(values)
    read = width if width > 1 and len(a) == MOST_ROWS else len(steps)
    for start in range(0, len(steps), width):
        first = start % read
        if first == 0:
            rows = _rows(builder, (index, steps[start : start + read]), a, flip=flip)
        here = index, steps[start : start + width]
        for number in range(registers):
            panel, part = divmod(number, PARTS)
            w = _weights(builder, here, b[panel], part)
            places = [registers * row + number for row in range(len(a))]
            held = [values[at] for at in places]
            added = each(builder, rows, range(first, first + width), w, held)
            for at, value in zip(places, added, strict=True):
                values[at] = value
    return values


def _singly(dot, builder, rows, words, w, sums):
    """Rows one by one."""
    return [
        dot(builder, total, [_spread(builder, row, word) for word in words], w)
        for row, total in zip(rows, sums, strict=True)
    ]


def _by_dots(builder, total, x, w, *, mixed: bool):
    """Exact for all bytes.  Which operand may be one word of a register differs."""
    name = f"llvm.aarch64.neon.{'usdot' if mixed else 'sdot'}.v4i32.v16i8"
    for left, right in zip(x, w, strict=True):
        pair = (left, right) if mixed else (right, left)
        total = call_llvm(builder, name, SUMS, total, *pair)
    return total


def _by_halves(builder, total, x, w, *, narrow: bool):
    """Two products fit 16 bits if weights are narrow; else sums of them take 32."""
    for left, right in zip(x, w, strict=True):
        halves = [_products(builder, left, right, at) for at in (0, 8)]
        if narrow:
            total = builder.add(total, _widened(builder, _joined(builder, halves)))
        else:
            wide = [_widened(builder, half) for half in halves]
            total = builder.add(total, _joined(builder, wide))
    return total


def _by_pairs(builder, total, x, w):
    """Four products fit 16 bits."""
    first, second = (
        [_products(builder, *both, at) for at in (0, 8)]
        for both in zip(x, w, strict=True)
    )
    halves = [builder.add(*both) for both in zip(first, second, strict=True)]
    return builder.add(total, _widened(builder, _joined(builder, halves)))


def _products(builder, x, w, start: int):
    """Of eight bytes of two registers."""
    parts = (shuffled(builder, v, v, range(start, start + 8)) for v in (x, w))
    return call_llvm(builder, "llvm.aarch64.neon.smull.v8i16", PAIRS, *parts)


def _joined(builder, halves):
    """Sums of neighbours of two registers, in one."""
    kind = halves[0].type
    name = f"llvm.aarch64.neon.addp.v{kind.count}i{kind.element.width}"
    return call_llvm(builder, name, kind, *halves)


def _widened(builder, value):
    """Sums of neighbours of 16 bits, in 32."""
    return call_llvm(builder, "llvm.aarch64.neon.saddlp.v4i32.v8i16", SUMS, value)


def _swapped(builder, x, y):
    """The low halves of two registers, and the high ones; undone by itself."""
    return [shuffled(builder, x, y, lanes) for lanes in ([0, 1, 4, 5], [2, 3, 6, 7])]


def _turned(builder, values, rows: int):
    """Registers of each two rows as blocks of two rows by two columns, or back."""
    each, found = len(values) // rows, []
    for start in range(0, rows - 1, 2):
        first = values[each * start : each * (start + 1)]
        second = values[each * (start + 1) : each * (start + 2)]
        pairs = [_swapped(builder, *both) for both in zip(first, second, strict=True)]
        found += [value for side in zip(*pairs, strict=True) for value in side]
    return [*found, *values[len(found) :]]


def _enter_blocks(builder, sums, rows: int):
    return _turned(builder, _enter(builder, sums, rows), rows)


def _leave_blocks(builder, values, rows: int):
    return _leave(builder, _turned(builder, values, rows), rows)


def _doubly(name: str, dot, builder, rows, words, w, sums):
    """Rows two by two, two columns of four and the others; one left over by ``dot``."""
    name, sums = f"llvm.aarch64.neon.{name}.v4i32.v16i8", list(sums)
    whole = len(rows) // 2 * 2
    blocks = [
        _eight(builder, *rows[pair : pair + 2], words[0]) for pair in range(0, whole, 2)
    ]
    for side in range(2):
        columns = _columns(builder, *w, side)
        for at, x in zip(range(side, whole, 2), blocks, strict=True):
            sums[at] = call_llvm(builder, name, SUMS, sums[at], x, columns)
    return sums[:whole] + _singly(dot, builder, rows[whole:], words, w, sums[whole:])


def _eight(builder, first, second, word: int):
    """Eight bytes of each of two rows."""
    lanes = [word, word + 1, word + 4, word + 5]
    return builder.bitcast(shuffled(builder, first, second, lanes), BYTES)


def _columns(builder, first, second, side: int):
    """Two of four columns: four bytes of each product, one after the other."""
    both = [builder.bitcast(value, SUMS) for value in (first, second)]
    start = 2 * side
    lanes = [start, start + 4, start + 1, start + 5]
    return builder.bitcast(shuffled(builder, *both, lanes), BYTES)
