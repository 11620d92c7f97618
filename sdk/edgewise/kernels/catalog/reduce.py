"""Which native functions serve reductions, running sums, and searches along an axis."""

from __future__ import annotations

import math
from functools import partial

from edgewise.kernels.catalog.base import (
    MAX_RANK,
    Binding,
    Call,
    In,
    Launch,
    Out,
    Temp,
    Word,
    blocks,
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import given, integer, integers, only_f32
from edgewise.kernels.catalog.strides import BLOCK, Ints, around, collapse, contiguous
from edgewise.named import NamedTuple
from edgewise.types import DType

# The last step of a reduction, by code.
NONE, MEAN, ROOT, LOG = range(4)


class Form(NamedTuple):
    """A reduction: how elements are taken in, how parts join, what is last."""

    take: str
    join: str
    post: int = NONE


FORMS = {
    "reduce_sum": Form("sum", "sum"),
    "reduce_mean": Form("sum", "sum", MEAN),
    "reduce_l1": Form("l1", "sum"),
    "reduce_sum_square": Form("square", "sum"),
    "reduce_l2": Form("square", "sum", ROOT),
    "reduce_log_sum": Form("sum", "sum", LOG),
    "reduce_prod": Form("prod", "prod"),
    "reduce_max": Form("max", "max"),
    "reduce_min": Form("min", "min"),
}
# Codes of integer reductions.
INTEGER_FORMS = (
    "reduce_sum", "reduce_l1", "reduce_sum_square", "reduce_prod", "reduce_max",
    "reduce_min", "reduce_mean",
)  # fmt: skip
INTEGERS = {DType.I64: "i64", DType.I32: "i32"}
PART = 16384  # elements of a long reduction that one task takes
FEW = 32  # outputs below which a long reduction is cut into parts


class Axes(NamedTuple):
    """Kept and reduced axes, each merged to as few as possible, with strides."""

    kept: Ints
    kept_steps: Ints
    reduced: Ints
    reduced_steps: Ints

    @property
    def outputs(self) -> int:
        """How many results there are."""
        return math.prod(self.kept)

    @property
    def length(self) -> int:
        """How many elements each is made of."""
        return math.prod(self.reduced)


def split(shape: Ints, axes: Ints) -> Axes:
    """The axes of a reduction."""
    own = contiguous(shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    reduced = [axis for axis in range(len(shape)) if axis in axes]

    def merged(chosen: list[int]) -> tuple[Ints, Ints]:
        sizes = tuple(shape[axis] for axis in chosen)
        dims, (steps,) = collapse(sizes, tuple(own[axis] for axis in chosen))
        return dims, steps

    return Axes(*merged(kept), *merged(reduced))


def _ranked(dims: Ints, steps: Ints) -> Ints:
    return (len(dims), *dims, *steps)


def _rows(
    form: Form, axes: Axes, x: Word, y: Word, post: tuple[int, int], parts: int = 1
) -> Launch:
    """Reduce where the last axis is reduced: one row after the other."""
    n, runs = axes.reduced[-1], math.prod(axes.reduced[:-1])
    length = n if parts == 1 else PART
    items = axes.outputs * parts
    per_task = max(1, BLOCK // max(length * runs, 1))
    words = (x, y, items, per_task, parts, length, n, runs, *post)
    ranks = (
        *_ranked(axes.kept, axes.kept_steps),
        *_ranked(axes.reduced[:-1], axes.reduced_steps[:-1]),
    )
    symbol = f"reduce_{form.take}_rows_f32"
    return Launch(symbol, (*words, *ranks), blocks(items, per_task))


def _columns(
    form: Form, axes: Axes, x: Word, y: Word, post: tuple[int, int], parts: int = 1
) -> Launch:
    """Reduce where the last axis is kept: sixteen columns at a time."""
    n, inner = axes.length, axes.kept[-1]
    chunks = blocks(inner, 16)
    length = n if parts == 1 else blocks(n, parts)
    items = math.prod(axes.kept[:-1]) * chunks * parts if inner else 0
    per_task = max(1, BLOCK // max(16 * length, 1))
    words = (x, y, items, per_task, parts, length, n, inner, chunks, *post)
    ranks = (
        *_ranked(axes.kept[:-1], axes.kept_steps[:-1]),
        *_ranked(axes.reduced, axes.reduced_steps),
    )
    symbol = f"reduce_{form.take}_columns_f32"
    return Launch(symbol, (*words, *ranks), blocks(items, per_task))


def _parts(axes: Axes, *, rows: bool) -> int:
    """How many parts a reduction is cut into, by its shape alone."""
    if rows:
        few = axes.outputs < FEW and len(axes.reduced) == 1
        return blocks(axes.length, PART) if few else 1
    groups = blocks(axes.kept[-1], 16) * math.prod(axes.kept[:-1])
    return min(blocks(16 * axes.length, PART), FEW) if groups < FEW else 1


def _reduce(form: Form, call: Call) -> Binding | None:
    axes = split(given(call, 0).dims, integers(call, "axes"))
    if max(len(axes.kept), len(axes.reduced)) > MAX_RANK:
        return None
    # Where all sizes are one, either form does; rows then have one element.
    rows = axes.reduced_steps[-1] == 1
    make = _rows if rows else _columns
    post = (form.post, f32_word(axes.length))
    parts = _parts(axes, rows=rows)
    if parts == 1:
        return Binding((make(form, axes, In(0), Out(0), post),))
    first = make(form, axes, In(0), Temp(0), (NONE, 0), parts)
    joined = form._replace(take=form.join)
    outputs = axes.outputs
    if rows:
        over = Axes((outputs,), (parts,), (parts,), (1,))
    else:
        over = Axes((outputs,), (1,), (parts,), (outputs,))
    second = make(joined, over, Temp(0), Out(0), post)
    return Binding((first, second), (_aligned(4 * outputs * parts),))


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def _log_sum_exp(call: Call) -> Binding | None:
    axes = split(given(call, 0).dims, integers(call, "axes"))
    if max(len(axes.kept), len(axes.reduced)) > MAX_RANK:
        return None
    rows = axes.reduced_steps[-1] == 1
    form = Form("sum", "sum")
    launch = (_rows if rows else _columns)(form, axes, In(0), Out(0), (NONE, 0))
    symbol = f"log_sum_exp_{'rows' if rows else 'columns'}_f32"
    return Binding((launch._replace(symbol=symbol),))


def _reduce_integer(code: int, call: Call) -> Binding | None:
    name = INTEGERS.get(given(call, 0).dtype)
    axes = split(given(call, 0).dims, integers(call, "axes"))
    if name is None or max(len(axes.kept), len(axes.reduced)) > MAX_RANK:
        return None
    per_task = max(1, BLOCK // max(axes.length, 1))
    head = (In(0), Out(0), axes.outputs, per_task, code, axes.length)
    words: tuple[Word, ...] = (
        *head,
        *_ranked(axes.kept, axes.kept_steps),
        *_ranked(axes.reduced, axes.reduced_steps),
    )
    tasks = blocks(axes.outputs, per_task)
    return Binding((Launch(f"reduce_{name}", words, tasks),))


def _register() -> None:
    for op, form in FORMS.items():
        ways = {form.take, form.join}
        symbols = (f"reduce_{w}_{way}_f32" for w in ways for way in ("rows", "columns"))
        kernel(op, *symbols)(only_f32(partial(_reduce, form)))
    for code, op in enumerate(INTEGER_FORMS):
        kernel(op, "reduce_i64", "reduce_i32")(partial(_reduce_integer, code))
    kernel("reduce_log_sum_exp", "log_sum_exp_rows_f32", "log_sum_exp_columns_f32")(
        only_f32(_log_sum_exp)
    )


def _along(
    prefix: str, call: Call, outputs: tuple[Word, ...], *params: int
) -> Binding | None:
    """A launch whose items are all positions but those along ``axis``."""
    x = given(call, 0)
    name = "f32" if x.dtype is DType.F32 else INTEGERS.get(x.dtype)
    if name is None:
        return None
    outer, size, inner = around(x.dims, integer(call, "axis"))
    items = outer * inner
    per_task = max(1, BLOCK // max(size, 1))
    words: tuple[Word, ...] = (
        *(In(0), *outputs, items, per_task, size, inner),
        *params,
    )
    return Binding((Launch(f"{prefix}_{name}", words, blocks(items, per_task)),))


SEARCHES = ("f32", "i64", "i32")


def _arg(largest: int, call: Call) -> Binding | None:
    return _along("arg", call, (Out(0),), largest, integer(call, "last"))


for _largest, _op in enumerate(("argmin", "argmax")):
    kernel(_op, *(f"arg_{name}" for name in SEARCHES))(partial(_arg, _largest))


@kernel("cumsum", *(f"cumsum_{name}" for name in SEARCHES))
def bind_cumsum(call: Call) -> Binding | None:
    """From either end, with or without the element itself."""
    ways = (integer(call, "exclusive"), integer(call, "reverse"))
    return _along("cumsum", call, (Out(0),), *ways)


@kernel("top_k", *(f"top_k_{name}" for name in SEARCHES))
def bind_top_k(call: Call) -> Binding | None:
    """Values and their places."""
    ways = (integer(call, "k"), integer(call, "largest"))
    return _along("top_k", call, (Out(0), Out(1)), *ways)


_register()
