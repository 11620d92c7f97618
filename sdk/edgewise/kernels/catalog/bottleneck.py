"""Which native function serves inverted bottlenecks, and how its work is cut."""

from __future__ import annotations

import math

from edgewise.kernels.catalog import depthwise
from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Scratch,
    Word,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import given, integers, only_f32
from edgewise.kernels.catalog.epilogue import (
    BLOCK_ROWS,
    EPILOGUE_WORDS,
    LANES,
    MOST_TASKS,
    TASK_MACS,
    epilogue_words,
    scratch_bytes,
)
from edgewise.kernels.catalog.matmul import lines
from edgewise.kernels.catalog.windows import window_words
from edgewise.ops.bottleneck import Bottleneck

# Rows of the image that neighbouring tasks both expand: some one in so many, at most.
OVERLAP = 5
# Pixels of a band, from 28 on: more need a larger ring and gain nothing.
BAND = 56
OWN_WORDS = 1024  # bytes for the copy of the words that a worker has
EXPAND, FILTERS, PROJECT = (1, 4), (4, 7), (7, 11)  # slots of their weights and ends


@kernel("bottleneck", "bottleneck_f32")
@only_f32
def bottleneck(call: Call) -> Binding | None:
    """Blocks of rows of the output, band by band."""
    op, x, made = call.op, given(call, 0), call.outputs[0]
    if not isinstance(op, Bottleneck):
        return None
    wide, middle, _ = op.infer_parts(call.inputs)
    if not math.prod(made.dims):
        return Binding(())
    if not math.prod(wide.dims):
        return None
    first, second, third = op.parts
    expand = Call(first, (x, *call.inputs[slice(*EXPAND)]), (wide,))
    filters = Call(second, (wide, *call.inputs[slice(*FILTERS)]), (middle,))
    project = Call(third, (middle, *call.inputs[slice(*PROJECT)]), (made,))
    end = epilogue_words(project, op.channels)
    between = epilogue_words(filters, wide.dims[3])
    begin = epilogue_words(expand, wide.dims[3])
    if end is None or between is None or begin is None:
        return None
    if not op.expanded:
        begin = (0,) * EPILOGUE_WORDS
    cut = Cut(call, filters, expand=bool(op.expanded))
    words = (
        *_moved(between, FILTERS),
        *_moved(window_words(filters), FILTERS),
        wide.dims[3],
        In(FILTERS[0]),
        made.dims[0] * made.dims[1],
        cut.block,
        cut.channels,
        cut.columns,
        Scratch(),
        cut.scratch,
        *_moved(begin, EXPAND),
        *_moved(end, PROJECT, Out(0)),
        In(0),
        x.dims[3],
        *(In(EXPAND[0]), x.dims[3], lines(x.dims[3])[1]),
        *(In(PROJECT[0]), wide.dims[3], lines(wide.dims[3])[1]),
        *(cut.band, cut.ring, *cut.places),
    )
    tasks = made.dims[0] * blocks(made.dims[1], cut.block)
    return Binding((Launch("bottleneck_f32", words, tasks),), (), cut.scratch)


def _moved(
    words: tuple[Word, ...], slots: tuple[int, int], out: Word = 0
) -> tuple[Word, ...]:
    """Words of a part as words of the whole: ``x`` stays, what follows has moved."""
    by = slots[0] - 1
    return tuple(
        out
        if isinstance(word, Out)
        else In(word.slot + by)
        if isinstance(word, In) and word.slot
        else word
        for word in words
    )


class Cut:
    """How the work of a bottleneck is cut, and the memory of a worker.

    Attributes:
        block: Rows of the output a task.
        band: Rows of the output that are filtered before they are projected.
        ring: Rows of the expanded image that are kept; 0 where nothing is expanded.
        channels: Expanded channels, in whole vectors.
        columns: Of the table under a row of the output.
        places: Where things lie in scratch: filters, words, band, ring.
        scratch: Bytes of a worker.
    """

    def __init__(self, call: Call, filters: Call, *, expand: bool) -> None:
        x, made = given(call, 0).dims, call.outputs[0].dims
        wide, width = given(filters, 0).dims, made[2]
        stride, size = integers(filters, "strides")[0], integers(filters, "kernel")[0]
        reach = (size - 1) * integers(filters, "dilations")[0] + 1
        macs = call.op.cost(call.inputs, call.outputs).macs
        want = min(max(macs // TASK_MACS, 1), MOST_TASKS)
        again = max(reach - stride, 0) * OVERLAP if expand else 0
        least = max(-(-made[1] // blocks(want, made[0])), -(-again // stride))
        count = max(made[1] // least, 1)
        self.block = -(-made[1] // (count + count % 2 if count > 1 else 1))
        self.band = min(max(BAND // width, 1), self.block)
        self.ring = 0
        if expand:
            self.ring = min((self.band - 1) * stride + reach, wide[1])
        self.channels = -(-wide[3] // LANES) * LANES
        self.columns = depthwise.table_columns(filters, width)
        rows = min(max(self.band * width, wide[2]), BLOCK_ROWS)
        pieces = max(lines(x[3])[0], lines(wide[3])[0])
        areas = (
            scratch_bytes(rows, pieces),
            depthwise.scratch_bytes(self.channels, size * self.columns),
            OWN_WORDS,
            -(-self.band * width * wide[3] // LANES) * 64,
            -(-self.ring * wide[2] * wide[3] // LANES) * 64,
        )
        ends = tuple(sum(areas[:count]) for count in range(1, len(areas) + 1))
        self.places, self.scratch = ends[:-1], ends[-1]
