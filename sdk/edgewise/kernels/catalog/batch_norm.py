"""Which native functions serve batch norms in training."""

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
    given,
    integer,
    only_f32,
    optional,
    real,
    word,
)
from edgewise.kernels.catalog.strides import BLOCK
from edgewise.named import NamedTuple
from edgewise.ops.epilogue import code

# Elements of a part, which is read twice: they stay in the second cache.  Sums of more
# rows than that would lose digits.
PART, MOST_ROWS = 32768, 512
CHANNELS = 64  # of a task that joins parts


class _Cut(NamedTuple):
    """Rows of channels, cut into parts."""

    rows: int
    channels: int

    @property
    def each(self) -> int:
        """Rows of a part."""
        return min(max(PART // max(self.channels, 1), 16), MOST_ROWS)

    @property
    def parts(self) -> int:
        """How many there are."""
        return blocks(self.rows, self.each)

    @property
    def per_task(self) -> int:
        """Rows of a task that changes each element."""
        return max(2 * BLOCK // max(self.channels, 1), 1)

    def vectors(self, count: int) -> int:
        """Bytes of so many vectors of all channels."""
        return max(-(-4 * count * self.channels // 64) * 64, 64)


def _cut(call: Call, slot: int) -> _Cut:
    dims = given(call, slot).dims
    return _Cut(math.prod(dims[:-1]), dims[-1])


def _activation(call: Call) -> tuple[Word, ...]:
    parameters = f32_word(real(call, "alpha")), f32_word(real(call, "beta"))
    return (int(code(word(call, "activation"))), *parameters)


def _moments(
    cut: _Cut, vectors: tuple[Word, ...], eps: float = 0.0
) -> tuple[Launch, Launch]:
    """Moments of parts in the first temporary; ``vectors``: mean, var, gamma, scale."""
    rows, n = cut
    parts = (In(0), Temp(0), rows, cut.each, n)
    join = (Temp(0), *vectors, rows, cut.each, cut.parts, n, CHANNELS, f32_word(eps))
    return (
        Launch("batch_moments_f32", parts, cut.parts),
        Launch("batch_join_f32", join, blocks(n, CHANNELS)),
    )


@kernel("batch_statistics", "batch_moments_f32", "batch_join_f32")
@only_f32
def batch_statistics(call: Call) -> Binding | None:
    """Over rows of channels."""
    cut = _cut(call, 0)
    if integer(call, "axis") != len(given(call, 0).dims) - 1 or 0 in cut:
        return None
    return Binding(_moments(cut, (Out(0), Out(1), 0, 0)), (cut.vectors(3 * cut.parts),))


@kernel("batch_norm_train", "batch_moments_f32", "batch_join_f32", "batch_apply_f32")
@only_f32
def batch_norm_train(call: Call) -> Binding | None:
    """Statistics in one pass over memory, all else in another."""
    cut = _cut(call, 0)
    if 0 in cut:
        return None
    vectors: tuple[Word, ...] = (Out(1), Out(2), In(1), Temp(1))
    apply = (
        *(In(0), Out(1), Temp(1), In(2), optional(call, 3), Out(0)),
        *(cut.rows, cut.per_task, cut.channels, *_activation(call)),
    )
    launches = (
        *_moments(cut, vectors, real(call, "eps")),
        Launch("batch_apply_f32", apply, blocks(cut.rows, cut.per_task)),
    )
    return Binding(launches, (cut.vectors(3 * cut.parts), cut.vectors(1)))


@kernel(
    "batch_norm_train_grad",
    "batch_norm_fold_f32",
    "batch_grad_sums_f32",
    "batch_grad_join_f32",
    "batch_grad_apply_f32",
)
@only_f32
def batch_norm_train_grad(call: Call) -> Binding | None:
    """Sums in one pass over the gradient and x, the gradient of x in another."""
    cut, eps = _cut(call, 1), f32_word(real(call, "eps"))
    if 0 in cut:
        return None
    rows, n = cut
    dy, x, gamma, shift, mean, var = map(In, range(6))
    parts, scale, slope, level = map(Temp, range(4))
    how = _activation(call)
    # The shift that the fold makes lies where the level will: nobody reads it.
    fold = (gamma, shift, mean, var, 0, scale, level, n, BLOCK, eps)
    sums = (dy, x, mean, scale, shift, parts, rows, cut.each, n, *how)
    ends = (var, scale, Out(1), Out(2), slope, level)
    join = (parts, *ends, rows, cut.parts, n, CHANNELS, eps)
    vectors = (mean, scale, shift, slope, level)
    apply = (dy, x, *vectors, Out(0), rows, cut.per_task, n, *how)
    launches = (
        Launch("batch_norm_fold_f32", fold, blocks(n, BLOCK)),
        Launch("batch_grad_sums_f32", sums, cut.parts),
        Launch("batch_grad_join_f32", join, blocks(n, CHANNELS)),
        Launch("batch_grad_apply_f32", apply, blocks(rows, cut.per_task)),
    )
    one = cut.vectors(1)
    return Binding(launches, (cut.vectors(2 * cut.parts), one, one, one))
