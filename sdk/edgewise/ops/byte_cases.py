"""Cases of products over bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgewise.ir.op import Array, Sample
from edgewise.ops import cases
from edgewise.ops.epilogue import parameters
from edgewise.ops.pack import PackQuads, PackTaps

ENDINGS = ("none", "clip", "relu", "hard_swish", "silu", "sigmoid", "tanh", "gelu_tanh")


def conv_sample(op: Any, size: tuple[int, ...], dtype: str = "uint8") -> Sample:
    """A dense convolution with weights of the bits that it wants."""
    logical = some_bytes(op.channels, size[3] // op.groups, *op.kernel, dtype="int8")
    logical = logical // {8: 1, 7: 2, 6: 4}[op.weight_bits]
    w = PackQuads((2, 3, 1, 0), groups=op.groups).reference(logical)
    return Sample(op, (some_bytes(*size, dtype=dtype), w, scales(op.channels)))


def depthwise_sample(op: Any, size: tuple[int, ...], dtype: str = "uint8") -> Sample:
    """A depthwise convolution."""
    taps = PackTaps().reference(some_bytes(size[3], 1, *op.kernel, dtype="int8"))
    return Sample(op, (some_bytes(*size, dtype=dtype), taps, scales(op.channels)))


def paired_worst(k: int, n: int, side: int) -> Array:
    """Quads whose sums in 16 bits go as far as they may, each in another way."""
    weight = np.zeros((k, n), np.int8)
    for column in range(n):
        shares = (column % 65, 64 - column % 65, column * 3 % 65, 64 - column * 3 % 65)
        four = np.array(shares) * (side // 128)
        weight[:, column] = np.tile([four[0], four[1], four[2], four[3]] * 2, k)[:k]
    return PackQuads((0, 1)).reference(weight)


def endings(plain: Sample) -> Iterator[Sample]:
    """The op with every kind of output, residual and activation."""
    op: Any = plain.op
    x, w = plain.inputs[:2]
    scale = scales(op.channels)
    shift = cases.floats(op.channels)
    shape = op.reference(x, w, scale).shape
    real = cases.floats(*shape, seed=3)
    yield Sample(op, (x, w, scale, shift, real))
    for kind, dtype, zero in (("u8", "uint8", 100), ("i8", "int8", -20)):
        made = op.replace(y_type=kind, y_scale=0.04, y_zero=zero)
        yield Sample(made, (x, w, scale, shift, None))
        yield Sample(made, (x, w, np.full(op.channels, np.nan, np.float32)))
        added = made.replace(residual_scale=0.03, residual_zero=zero + 9)
        residual = some_bytes(*shape, dtype=dtype, seed=1)
        for name in ENDINGS:
            alpha, beta = parameters(name)
            ended = added.replace(activation=name, alpha=alpha, beta=beta)
            yield Sample(ended, (x, w, scale, shift, residual))


def some_bytes(*shape: int, dtype: str, seed: int = 0) -> Array:
    """All that a byte can be."""
    info = np.iinfo(dtype)
    return cases.whole(
        *shape, dtype=dtype, low=int(info.min), high=int(info.max) + 1, seed=seed
    )


def scales(channels: int) -> Array:
    """What sums of bytes times are numbers of middling size."""
    return cases.positive(channels) / np.float32(4000)
