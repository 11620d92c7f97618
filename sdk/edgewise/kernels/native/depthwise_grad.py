"""Gradients of depthwise convolutions over channels-last images of float32.

Words of both: what is read twice, what is made, then how windows lie (``X_WORDS``),
rows in all, rows a task, channels a task, scratch.
"""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.memory import load, load_part, prefetch, store, store_part
from edgewise.kernels.native.pool import end_tap, first_tap
from edgewise.kernels.native.vector import LANES, fma, splat
from edgewise.kernels.native.walk import quotient

(
    FIRST,  # dy for the image, x for the weights
    SECOND,  # the weights for the image, dy for the weights
    OUT,
    HEIGHT,
    WIDTH,
    CHANNELS,
    OUT_HEIGHT,
    OUT_WIDTH,
    KERNEL_Y,
    KERNEL_X,
    STRIDE_Y,
    STRIDE_X,
    TOP,
    LEFT,
    DILATION_Y,
    DILATION_X,
    ROWS,
    BLOCK,
    CHUNK,
    SCRATCH,
    SCRATCH_BYTES,
) = range(21)
STRIP = 8  # pixels whose products are summed before they join the total
NONE = -1


@helper
def _seen_from(place, step, size):
    """The window that begins ``place`` elements behind the border; NONE if there is."""
    if place < 0:
        return NONE
    window = quotient(place, step)
    return window if window < size and window * step == place else NONE


@helper
def _columns(args, table):
    """For every column of the image and tap: the column of dy that saw it."""
    entry = i64(table)
    for x in range(args[WIDTH]):
        for s in range(args[KERNEL_X]):
            place = x + args[LEFT] - s * args[DILATION_X]
            found = _seen_from(place, args[STRIDE_X], args[OUT_WIDTH])
            entry[x * args[KERNEL_X] + s] = found


@helper
def _rows(args, table, line):
    """For every tap: the row of dy, of all images, that saw a row of the image."""
    entry = i64(table)
    image, y = line // args[HEIGHT], line % args[HEIGHT]
    for r in range(args[KERNEL_Y]):
        place = y + args[TOP] - r * args[DILATION_Y]
        found = _seen_from(place, args[STRIDE_Y], args[OUT_HEIGHT])
        entry[r] = NONE if found < 0 else image * args[OUT_HEIGHT] + found


@helper
def _pairs(args, rows, columns, x, pairs):
    """Addresses of what a pixel is made of: places of dy and their weights."""
    row, column, pair = i64(rows), i64(columns), i64(pairs)
    step, count = 4 * args[CHANNELS], 0
    for r in range(args[KERNEL_Y]):
        if row[r] >= 0:
            for s in range(args[KERNEL_X]):
                seen = column[x * args[KERNEL_X] + s]
                if seen >= 0:
                    place = row[r] * args[OUT_WIDTH] + seen
                    pair[2 * count] = args[FIRST] + place * step
                    tap = r * args[KERNEL_X] + s
                    pair[2 * count + 1] = args[SECOND] + tap * step
                    count += 1
    return count


@helper
def _pixel(pairs, count, target, begin, end):
    """The sums of a pixel's channels."""
    pair = i64(pairs)
    whole = begin + (end - begin) // LANES * LANES
    for c in range(begin, whole, LANES):
        total = splat(0.0)
        for i in range(count):
            w = load(pair[2 * i + 1] + 4 * c)
            total = fma(load(pair[2 * i] + 4 * c), w, total)
        store(target + 4 * c, total)
    if whole < end:
        total, rest = splat(0.0), end - whole
        for i in range(count):
            w = load_part(pair[2 * i + 1] + 4 * whole, rest)
            total = fma(load_part(pair[2 * i] + 4 * whole, rest), w, total)
        store_part(target + 4 * whole, total, rest)


def depthwise_input_grad_f32(args, begin, end, worker):
    """A task is a block of rows of the image and some channels."""
    channels, width = args[CHANNELS], args[WIDTH]
    chunks = -(-channels // args[CHUNK])
    columns = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    rows = columns + 8 * width * args[KERNEL_X]
    pairs = rows + 8 * args[KERNEL_Y]
    _columns(args, columns)
    for task in range(begin, end):
        first, line = task % chunks * args[CHUNK], task // chunks * args[BLOCK]
        last = min(first + args[CHUNK], channels)
        for y in range(line, min(line + args[BLOCK], args[ROWS])):
            _rows(args, rows, y)
            for x in range(width):
                count = _pairs(args, rows, columns, x, pairs)
                target = args[OUT] + 4 * (y * width + x) * channels
                _pixel(pairs, count, target, first, last)
    return OK


@helper
def _inside(args, table):
    """For every tap of a row: the first window over the image, and behind the last."""
    entry = i64(table)
    for s in range(args[KERNEL_X]):
        at = s * args[DILATION_X] - args[LEFT]
        entry[2 * s] = first_tap(at, args[STRIDE_X])
        entry[2 * s + 1] = end_tap(at, args[STRIDE_X], args[OUT_WIDTH], args[WIDTH])


@helper
def _dot(x, x_step, dy, dy_step, count):
    """Products of sixteen channels over some pixels, summed."""
    a, b = splat(0.0), splat(0.0)
    for i in range(0, count - 1, 2):
        a = fma(load(x + i * x_step), load(dy + i * dy_step), a)
        b = fma(load(x + (i + 1) * x_step), load(dy + (i + 1) * dy_step), b)
    if count & 1:
        i = count - 1
        a = fma(load(x + i * x_step), load(dy + i * dy_step), a)
    return a + b


@helper
def _dot_part(x, x_step, dy, dy_step, count, lanes):
    """The same of fewer channels."""
    total = splat(0.0)
    for i in range(count):
        v = load_part(x + i * x_step, lanes)
        total = fma(v, load_part(dy + i * dy_step, lanes), total)
    return total


@helper
def _ask(args, dy, x, row, first):
    """Ask for sixteen channels of the strip that follows: its dy, its new rows of x.

    Pixels lie too far apart for the processor to see where this is going.
    """
    step = 4 * args[CHANNELS]
    for i in range(first + STRIP, first + 2 * STRIP):
        prefetch(dy + i * step)
    across, below = args[STRIDE_X] * STRIP, args[KERNEL_Y] - 1
    for r in range(max(below + 1 - args[STRIDE_Y], 0), below + 1):
        start = (row + r * args[DILATION_Y]) * args[WIDTH] - args[LEFT]
        start += (first + STRIP) * args[STRIDE_X]
        for i in range(start, start + across):
            prefetch(x + i * step)


@helper
def _dot_3(x, x_step, tap, dy, dy_step, count):
    """The same for three neighbouring taps, which lie ``tap`` bytes apart."""
    a, b, c = splat(0.0), splat(0.0), splat(0.0)
    for i in range(count):
        grad, at = load(dy + i * dy_step), x + i * x_step
        a = fma(load(at), grad, a)
        b = fma(load(at + tap), grad, b)
        c = fma(load(at + 2 * tap), grad, c)
    return a, b, c


@helper
def _add(target, value):
    store(target, load(target) + value)


@helper
def _add_taps(args, inside, x, dy, sums, span, lanes):
    """Add the products of some windows with every tap of a row that lies in it."""
    entry, step = i64(inside), 4 * args[CHANNELS]
    across = args[STRIDE_X] * step
    for s in range(args[KERNEL_X]):
        start = max(entry[2 * s], span[0])
        count = min(entry[2 * s + 1], span[1]) - start
        if count > 0:
            here, grad = (
                x + start * across + s * args[DILATION_X] * step,
                dy + start * step,
            )
            total = sums + s * step
            if lanes == LANES:
                _add(total, _dot(here, across, grad, step, count))
            else:
                found = _dot_part(here, across, grad, step, count, lanes)
                store_part(total, load_part(total, lanes) + found, lanes)


@helper
def _add_strip(args, inside, line, first, at, sums):
    """Add the products of a strip of dy to the ``sums`` of sixteen channels."""
    channel, lanes = at
    entry, step = i64(inside), 4 * args[CHANNELS]
    image, row = line // args[OUT_HEIGHT], line % args[OUT_HEIGHT]
    y, last = row * args[STRIDE_Y] - args[TOP], min(first + STRIP, args[OUT_WIDTH])
    below = first_tap(y, args[DILATION_Y])
    above = end_tap(y, args[DILATION_Y], args[KERNEL_Y], args[HEIGHT])
    dy = args[SECOND] + 4 * channel + line * args[OUT_WIDTH] * step
    base = args[FIRST] + 4 * channel
    _ask(args, dy, base, image * args[HEIGHT] + y, first)
    low = high = last  # what lies between has all three taps
    if args[KERNEL_X] == 3 and lanes == LANES:
        low = max(entry[0], entry[2], entry[4], first)
        high = max(min(entry[1], entry[3], entry[5], last), low)
    across, tap = args[STRIDE_X] * step, args[DILATION_X] * step
    for r in range(below, above):
        place = (image * args[HEIGHT] + y + r * args[DILATION_Y]) * args[WIDTH]
        x, target = base + (place - args[LEFT]) * step, sums + r * args[KERNEL_X] * step
        if low < high:
            here, grad = x + low * across, dy + low * step
            a, b, c = _dot_3(here, across, tap, grad, step, high - low)
            _add(target, a)
            _add(target + step, b)
            _add(target + 2 * step, c)
        if low > first:
            _add_taps(args, inside, x, dy, target, (first, min(low, last)), lanes)
        if high < last:
            _add_taps(args, inside, x, dy, target, (max(high, first), last), lanes)


def depthwise_weight_grad_f32(args, begin, end, worker):
    """A task is some rows of dy and some channels: one part of the sums of those."""
    channels, taps = args[CHANNELS], args[KERNEL_Y] * args[KERNEL_X]
    chunks = -(-channels // args[CHUNK])
    inside = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    _inside(args, inside)
    for task in range(begin, end):
        first, part = task % chunks * args[CHUNK], task // chunks
        last, line = min(first + args[CHUNK], channels), part * args[BLOCK]
        out = args[OUT] + 4 * part * taps * channels
        for tap in range(taps):
            for c in range(first, last, LANES):
                store_part(out + 4 * (tap * channels + c), splat(0.0), last - c)
        for row in range(line, min(line + args[BLOCK], args[ROWS])):
            for x in range(0, args[OUT_WIDTH], STRIP):
                for c in range(first, last, LANES):
                    at = (c, min(last - c, LANES))
                    _add_strip(args, inside, row, x, at, out + 4 * c)
    return OK


def sum_parts_f32(args, begin, end, worker):
    """Parts of sums, one behind the other, added in order.

    Words: parts, out, how many, elements of one, elements a task.
    """
    size, block = args[3], args[4]
    for i in range(begin * block, min(end * block, size), LANES):
        total = load_part(args[0] + 4 * i, size - i)
        for part in range(1, args[2]):
            total = total + load_part(args[0] + 4 * (part * size + i), size - i)
        store_part(args[1] + 4 * i, total, size - i)
    return OK


EXPORTS = {
    "depthwise_input_grad_f32": depthwise_input_grad_f32,
    "depthwise_weight_grad_f32": depthwise_weight_grad_f32,
    "sum_parts_f32": sum_parts_f32,
}
