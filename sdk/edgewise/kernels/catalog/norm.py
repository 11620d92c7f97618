"""Which native functions serve normalisations."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
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
from edgewise.kernels.catalog.calls import (
    all_f32,
    given,
    has,
    integer,
    optional,
    real,
)
from edgewise.kernels.catalog.strides import BLOCK, around
from edgewise.types import TensorType


def _rows_a_task(columns: int) -> int:
    return max(1, BLOCK // max(columns, 1))


def _fits(vector: TensorType | None, tail: tuple[int, ...]) -> bool:
    """Whether an operand has the shape of the normalised axes, not one to broadcast."""
    if vector is None:
        return True
    shape = vector.dims
    return (1,) * (len(tail) - len(shape)) + shape[-len(tail) :] == tail and math.prod(
        shape
    ) == math.prod(tail)


def _layer_norm(call: Call, shift: Word, *, centred: bool) -> Binding | None:
    x, axis = given(call, 0).dims, integer(call, "axis")
    if not all_f32(call) or not all(_fits(v, x[axis:]) for v in call.inputs[1:]):
        return None
    rows, n = math.prod(x[:axis]), math.prod(x[axis:])
    per_task = _rows_a_task(n)
    numbers = (rows, per_task, n, f32_word(real(call, "eps")), int(centred))
    words: tuple[Word, ...] = (In(0), optional(call, 1), shift, Out(0), *numbers)
    return Binding((Launch("layer_norm_f32", words, blocks(rows, per_task)),))


@kernel("layer_norm", "layer_norm_f32")
def bind_layer_norm(call: Call) -> Binding | None:
    """Rows of mean 0 and variance 1."""
    return _layer_norm(call, optional(call, 2), centred=True)


@kernel("rms_norm", "layer_norm_f32")
def bind_rms_norm(call: Call) -> Binding | None:
    """Rows of mean square 1."""
    return _layer_norm(call, 0, centred=False)


def _scaled(call: Call, scale: Word, shift: Word) -> Launch:
    outer, size, inner = around(given(call, 0).dims, integer(call, "axis"))
    if inner == 1:
        per_task = _rows_a_task(size)
        words: tuple[Word, ...] = (
            *(In(0), scale, shift, Out(0)),
            *(outer, per_task, size, max(outer, 1)),
        )
        return Launch("scale_shift_f32", words, blocks(outer, per_task))
    rows, per_task = outer * size, _rows_a_task(inner)
    words = (In(0), scale, shift, Out(0), rows, per_task, inner, max(size, 1))
    return Launch("scale_shift_planes_f32", words, blocks(rows, per_task))


SCALED = ("scale_shift_f32", "scale_shift_planes_f32")


@kernel("scale_shift", *SCALED)
def bind_scale_shift(call: Call) -> Binding | None:
    """Along the last axis, or one factor for every plane."""
    if not all_f32(call) or not (has(call, 1) or has(call, 2)):
        return None
    return Binding((_scaled(call, optional(call, 1), optional(call, 2)),))


def _fold(call: Call, first: int, bias: Word, scale: Word, shift: Word) -> Launch:
    (size,) = given(call, first).dims
    inputs = tuple(In(slot) for slot in range(first, first + 4))
    numbers = (size, BLOCK, f32_word(real(call, "eps")))
    words: tuple[Word, ...] = (*inputs, bias, scale, shift, *numbers)
    return Launch("batch_norm_fold_f32", words, blocks(size, BLOCK))


@kernel("batch_norm_fold", "batch_norm_fold_f32")
def bind_batch_norm_fold(call: Call) -> Binding | None:
    """In double precision: it is done once."""
    if not all_f32(call):
        return None
    return Binding((_fold(call, 0, optional(call, 4), Out(0), Out(1)),))


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


@kernel("batch_norm", "batch_norm_fold_f32", *SCALED)
def bind_batch_norm(call: Call) -> Binding | None:
    """Folded into scale and shift first."""
    if not all_f32(call):
        return None
    (size,) = given(call, 1).dims
    fold = _fold(call, 1, 0, Temp(0), Temp(1))
    apply = _scaled(call, Temp(0), Temp(1))
    return Binding((fold, apply), (_aligned(4 * size),) * 2)


def _per_image(call: Call, groups: int) -> Binding | None:
    x = given(call, 0).dims
    images, places, channels = x[0], math.prod(x[1:-1]), x[-1]
    if not all_f32(call) or 0 in x:
        return None
    chunks, per_task = blocks(channels, 16), max(1, BLOCK // (32 * places))
    items, each = images * chunks, _rows_a_task(channels)
    rows, eps = images * places, f32_word(real(call, "eps"))
    moments = (Temp(0), Temp(1), items, per_task, places, channels, chunks)
    vectors = (Temp(0), Temp(1), In(1), In(2), Temp(2), Temp(3))
    fold = (*vectors, images, channels, groups, places, eps)
    apply = (In(0), Temp(2), Temp(3), Out(0), rows, each, channels, places)
    one = _aligned(4 * images * channels)
    return Binding(
        (
            Launch("moments_f32", (In(0), *moments), blocks(items, per_task)),
            Launch("group_fold_f32", fold, images),
            Launch("group_apply_f32", apply, blocks(rows, each)),
        ),
        (2 * one, one, one, 2 * one),
    )


PER_IMAGE = ("moments_f32", "group_fold_f32", "group_apply_f32")


@kernel("instance_norm", *PER_IMAGE)
def bind_instance_norm(call: Call) -> Binding | None:
    """Every channel is a group."""
    return _per_image(call, given(call, 0).dims[-1])


@kernel("group_norm", *PER_IMAGE)
def bind_group_norm(call: Call) -> Binding | None:
    """Moments of channels, joined to those of groups."""
    return _per_image(call, integer(call, "groups"))


@kernel("lrn", "lrn_f32")
def bind_lrn(call: Call) -> Binding | None:
    """Over neighbouring channels."""
    if not all_f32(call):
        return None
    *outer, channels = given(call, 0).dims
    rows, per_task, size = (
        math.prod(outer),
        _rows_a_task(channels),
        integer(call, "size"),
    )
    factors = (real(call, "alpha") / size, real(call, "beta"), real(call, "bias"))
    numbers = (rows, per_task, channels, size, *map(f32_word, factors))
    words: tuple[Word, ...] = (In(0), Out(0), *numbers)
    return Binding((Launch("lrn_f32", words, blocks(rows, per_task)),))
