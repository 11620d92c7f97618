"""Which convolutions of 3 x 3 are done by minimal filtering, and how work is cut."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Preparation,
    Prepared,
    Scratch,
    Temp,
    Word,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    given,
    integer,
    integers,
    only_f32,
    read_steps,
)
from edgewise.kernels.catalog.epilogue import (
    LANES,
    MOST_TASKS,
    TASK_MACS,
    epilogue_words,
)
from edgewise.kernels.catalog.matmul import ROWS_APART
from edgewise.kernels.catalog.strides import pitch

TAPS = 3
# What things cost beside products, in multiply-adds: a weight that comes from memory,
# a channel or an output of a tile to be transformed.
A_WEIGHT = 10.0
A_NUMBER = {2: 140.0, 4: 420.0}
# What a pixel costs the plain kernel where a tile of its six crosses a border.
A_BORDER, TILE = 1500.0, 6
# Weights take twice to four times the memory: not for less than this.
GAIN = 0.8
# Tiles of a block: transformed, its inputs fill about half of a second cache; and how
# many blocks are enough for several threads.
BLOCK, SMALL_BLOCK, LARGE_BLOCK, FEW = 24, 12, 60, 8
KERNELS = tuple(
    f"winograd{size}_{part}_f32"
    for size in (2, 4)
    for part in ("weights", "inputs", "products")
)


@kernel("conv", *KERNELS, strided=ROWS_APART)
@only_f32
def winograd(call: Call) -> Binding | None:
    """The weights are transformed before any run: they must be a variable."""
    return where_it_pays(call, "f32")


def where_it_pays(call: Call, weights: str, *more: Word) -> Binding | None:
    """Minimal filtering; ``more`` is what weights of this kind are read by."""
    if 1 not in call.fixed or not _fits(call):
        return None
    size = choose(call)
    return bind(call, size, weights, *more) if size else None


def _fits(call: Call) -> bool:
    windows = [integers(call, name) for name in ("kernel", "strides", "dilations")]
    dense = integer(call, "groups") == 1 and bool(math.prod(call.outputs[0].dims))
    return dense and windows == [(TAPS, TAPS), (1, 1), (1, 1)]


def choose(call: Call) -> int:
    """Pixels along the side of an output tile; 0 where plain convolution is as good."""
    plain = GAIN * _plain_cost(call)
    return min((2, 4, 0), key=lambda size: _cost(call, size) if size else plain)


def _plain_cost(call: Call) -> float:
    """Time of the plain kernel, in multiply-adds."""
    images, height, width, outputs = call.outputs[0].dims
    pixels = images * height * width
    products = TAPS * TAPS * given(call, 0).dims[3] * outputs
    borders = min(2 * TILE / width + 2 / height, 1.0) * pixels
    return products * (pixels / 0.9 + A_WEIGHT) + A_BORDER * borders


def _cost(call: Call, size: int) -> float:
    """Time of F(size x size, 3 x 3), in multiply-adds."""
    channels, outputs = given(call, 0).dims[3], call.outputs[0].dims[-1]
    tiles = math.prod(_tiles(call, size))
    products = (size + TAPS - 1) ** 2 * channels * outputs
    numbers = -(-channels // LANES) * LANES + -(-outputs // LANES) * LANES
    return products * (tiles / 0.8 + A_WEIGHT) + tiles * A_NUMBER[size] * numbers


def _tiles(call: Call, size: int) -> tuple[int, int, int]:
    """Images, rows and columns of tiles."""
    images, height, width, _ = call.outputs[0].dims
    return images, -(-height // size), -(-width // size)


def cut(tiles: int, panels: int, macs: int) -> tuple[int, int, bool]:
    """Tiles of a block, panels of a task, whether inputs are transformed before.

    Many blocks are tasks: one transforms its inputs and keeps them near.  Few blocks,
    each with many weights, are cut by panels; their inputs are transformed once.
    """
    if tiles >= FEW * SMALL_BLOCK:
        block = BLOCK if tiles >= 2 * FEW * BLOCK else SMALL_BLOCK
        return -(-tiles // -(-tiles // block)), panels, False
    block = -(-tiles // -(-tiles // LARGE_BLOCK))
    want = min(max(macs // TASK_MACS, 1), MOST_TASKS)
    chunks = min(-(-want // -(-tiles // block)), panels)
    return block, -(-panels // chunks), True


def bind(call: Call, size: int, weights: str = "f32", *more: Word) -> Binding | None:
    """F(size x size, 3 x 3)."""
    epilogue = epilogue_words(call, call.outputs[0].dims[-1])
    step = pitch(given(call, 0).dims, read_steps(call, 0))
    if epilogue is None or step is None:
        return None
    (_, height, width, channels), target = given(call, 0).dims, call.outputs[0].dims
    images, down, across = _tiles(call, size)
    positions, tiles = (size + TAPS - 1) ** 2, images * down * across
    panels, vectors = -(-target[3] // LANES), -(-channels // LANES)
    macs = positions * tiles * channels * target[3]
    block, chunk, before = cut(tiles, panels, macs)
    inputs = 64 * positions * (block * vectors + 1)
    scratch = 64 * positions * (2 + block) + (0 if before else inputs)
    pads = integers(call, "pads")[:2]
    image: tuple[Word, ...] = (
        In(0),
        height,
        width,
        channels,
        step,
        *target[1:3],
        *pads,
    )
    work: tuple[Word, ...] = (across, down, tiles, block, chunk, Prepared(0))
    memory: tuple[Word, ...] = (Temp(0) if before else 0, Scratch(), scratch)
    words = (*epilogue, *image, *work, *memory)
    tasks = blocks(tiles, block) * blocks(panels, chunk)
    launches = [Launch(f"winograd{size}_products_f32", words, tasks)]
    if before:
        launches.insert(0, Launch(f"winograd{size}_inputs_f32", words, tiles))
    filled: tuple[Word, ...] = (In(1), Out(0), channels, *more)
    fill = Launch(f"winograd{size}_weights_{weights}", filled, panels)
    made = Preparation(1, 64 * panels * positions * channels, fill)
    temps = (blocks(tiles, block) * inputs,) if before else ()
    return Binding(tuple(launches), temps, scratch, (made,))
