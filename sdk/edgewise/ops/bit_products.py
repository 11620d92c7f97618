"""Linear layers and convolutions over signs: of both factors a bit each.

A word of 32 bits holds the signs of 32 numbers, 1 for what is below 0 (or NaN), the
lowest bit first; bits beyond the numbers are 0.  Sums count the places where a row and
a weight differ: of K signs ``K - 2 * count`` is their inner product (Courbariaux and
others, 2016; Rastegari et al., 2016).  What lies in the pads of an image is positive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.dims import ceildiv
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import want, want_shape
from edgewise.ops.epilogue import NAMES, finish, parameters, want_epilogue
from edgewise.ops.matmul import InnerProducts
from edgewise.ops.pack import PANEL, PackPanels, matrices, panels
from edgewise.ops.windows import WINDOWS, OverWindows
from edgewise.types import DType, TensorType

WORD = 32
F32, WORDS = frozenset({DType.F32}), frozenset({DType.I32})


def words_of(negative: Array) -> Array:
    """Truths along the last axis as words."""
    short = -negative.shape[-1] % WORD
    filled = np.pad(negative, [(0, 0)] * (negative.ndim - 1) + [(0, short)])
    raw = np.packbits(filled, axis=-1, bitorder="little")
    return np.ascontiguousarray(raw).view("<i4").astype(np.int32, copy=False)


def unequal(x: Array, w: Array) -> Array:
    """How many bits of rows ``[..., K]`` and columns ``[K, N]`` differ."""
    met = np.ascontiguousarray(x[..., :, None] ^ w)
    bits = np.unpackbits(met.view(np.uint8).reshape(*met.shape, 4), axis=-1)
    return np.asarray(bits.sum(axis=(-3, -1), dtype=np.float64))


class SignBits(Op, name="sign_bits"):
    """The signs of ``x[..., C]`` as ``i32[..., ceil(C / 32)]``."""

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), F32)
        if not x.rank:
            raise self.refuse((x,), "rows")
        count = ceildiv(x.shape[-1], WORD)
        return x.with_dtype(DType.I32).with_shape((*x.shape[:-1], count))

    def reference(self, x: Array) -> Array:
        return words_of(~(x >= 0))

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in ((1,), (0,), (7, 3), (2, 3, 33), (5, 64), (0, 4), (3, 100)):
            yield Sample(SignBits(), (cases.floats(*shape),))
        odd = np.array([[np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, -1e-45]], "f4")
        yield Sample(SignBits(), (odd,))


class BitLinear(InnerProducts, name="bit_linear"):
    """How many signs of ``x[..., W]`` and ``w[P, W, 16]`` differ, and the epilogue."""

    in_place = (4,)
    precision = "1 bit"
    columns: int
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        want(self, (x, w), WORDS)
        if not x.rank or len(epilogue) > 3:
            raise self.refuse((x, w, *epilogue), "x, w, scale?, shift?, residual?")
        want_shape(self, "weight", w, panels(self.columns), x.shape[-1], PANEL)
        result = x.with_dtype(DType.F32).with_shape((*x.shape[:-1], self.columns))
        want_epilogue(self, result, self.activation, *epilogue)
        return result

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        weight = matrices(w, self.columns).reshape(x.shape[-1], self.columns)
        activation = (self.activation, self.alpha, self.beta)
        dtype = np.dtype(np.float32)
        return finish(unequal(x, weight), activation, dtype, *epilogue)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for rows, k, n in ((1, 1, 1), (7, 3, 17), (33, 9, 16), (0, 3, 5), (5, 0, 3)):
            yield Sample(BitLinear(n), (_bits(rows, k), _weight(k, n)))
        for rows in (1, 13):  # all that there are differ
            most = np.zeros((rows, 70), np.int32)
            yield Sample(BitLinear(70), (most, ~np.zeros((5, 70, 16), np.int32)))
        x, w = _bits(2, 7, 5), _weight(5, 33)
        ends = cases.positive(33), cases.floats(33), cases.floats(2, 7, 33, seed=1)
        for name in NAMES:
            yield Sample(BitLinear(33, name, *parameters(name)), (x, w, *ends))
        yield Sample(BitLinear(33), (_bits(5), w, None, ends[1], None))


class BitConv(OverWindows, name="bit_conv"):
    """As ``bit_linear``, of windows: ``x[N, H, W, C]``, ``w[P, kh * kw * C, 16]``."""

    in_place = (4,)
    precision = "1 bit"
    channels: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)
    groups: int = 1
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        want(self, (x, w), WORDS)
        shape = self.window.shape(self, x, self.channels)
        if self.groups != 1 or len(epilogue) > 3:
            raise self.refuse((x, w, *epilogue), "one group")
        reduced = math.prod(self.kernel) * x.shape[3]
        want_shape(self, "weight", w, panels(self.channels), reduced, PANEL)
        result = x.with_dtype(DType.F32).with_shape(shape)
        want_epilogue(self, result, self.activation, *epilogue)
        return result

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        taps = math.prod(self.kernel)
        weight = matrices(w, self.channels).reshape(taps, x.shape[3], self.channels)
        seen = self.window.taps(self.window.padded(x, 0))
        total = sum(
            unequal(np.asarray(a), b) for a, b in zip(seen, weight, strict=True)
        )
        activation = (self.activation, self.alpha, self.beta)
        dtype = np.dtype(np.float32)
        return finish(np.asarray(total), activation, dtype, *epilogue)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        reduced = inputs[1].dims[1] if inputs[1] else 0
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * reduced, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for size, window in WINDOWS:
            yield _conv(BitConv(17, **window), (*size, 2))
        yield _conv(BitConv(33, (1, 1)), (2, 4, 5, 3))
        same = BitConv(35, (3, 3), pads=(1, 1, 1, 1))
        for size in ((1, 9, 8, 1), (2, 5, 6, 8), (1, 5, 4, 40)):
            yield _conv(same, size)
        x, w = _conv(same, (1, 4, 5, 2)).inputs
        ends = cases.positive(35), cases.floats(35), cases.floats(1, 4, 5, 35, seed=1)
        for name in ("none", "relu", "clip", "hard_swish"):
            alpha, beta = parameters(name)
            ended = same.replace(activation=name, alpha=alpha, beta=beta)
            yield Sample(ended, (x, w, *ends))


def _bits(*shape: int) -> Array:
    info = np.iinfo(np.int32)
    return cases.whole(*shape, dtype="int32", low=int(info.min), high=int(info.max))


def _weight(k: int, n: int) -> Array:
    return PackPanels((0, 1)).reference(_bits(k, n))


def _conv(op: BitConv, size: tuple[int, ...]) -> Sample:
    logical = _bits(op.channels, size[3], *op.kernel)
    return Sample(op, (_bits(*size), PackPanels((2, 3, 1, 0)).reference(logical)))
