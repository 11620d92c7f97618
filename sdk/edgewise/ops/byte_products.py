"""Convolutions and linear layers over bytes, with their sums made bytes again.

Sums of ``(x - x_zero) * w`` are exact.  What is done to them is done in float32:
``y = activation(sum * scale + shift + (residual - residual_zero) * residual_scale)``,
then ``round(y * (1 / y_scale)) + y_zero``, ties to even, in the range of ``y_type``;
where that is ``f32`` it is ``y`` itself, and the residual float32 as it is.  Where the
activation is a range, ``1 / y_scale`` is a factor of scales, shift and bounds instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.dims import floordiv
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops.byte_cases import (
    conv_sample,
    depthwise_sample,
    endings,
    paired_worst,
    scales,
    some_bytes,
)
from edgewise.ops.checks import same_dtype, want, want_broadcast, want_shape
from edgewise.ops.epilogue import activate, code
from edgewise.ops.integer import BYTES
from edgewise.ops.matmul import InnerProducts
from edgewise.ops.pack import PANEL, QUAD, PackQuads, panels, quad_matrices
from edgewise.ops.quantize import rounded
from edgewise.ops.windows import WINDOWS, OverWindows
from edgewise.types import DType, TensorType

F32 = DType.F32
RANGES = ("none", "relu", "clip")


class _ByteProduct(Op):
    """What products over bytes share.

    Attributes:
        channels: Of the output.
        x_zero: What stands for zero in x, and lies in its pads.
        y_type: Type of the output: ``u8``, ``i8`` or ``f32``.
        weight_bits: 8; 7 where two products side by side are known to fit 16 bits, as
            those of weights from -64 to 63 do; 6 where four do, of two quads in line,
            the first with an even number: the numbers 0 and 1 of both add up to at most
            128 on either side of 0, and so do the numbers 2 and 3.
    """

    in_place = (4,)
    narrow = True
    precision = "int8"
    channels: int
    x_zero: int = 0
    y_type: str = "f32"
    y_scale: float = 1.0
    y_zero: int = 0
    residual_scale: float = 1.0
    residual_zero: int = 0
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0
    weight_bits: int = 8

    def want_rest(self, result: TensorType, *epilogue: TensorType | None) -> TensorType:
        """The output like ``result``, once scale, shift and residual fit it."""
        scale, shift, residual = (*epilogue, None, None, None)[:3]
        if len(epilogue) > 3 or scale is None or self.y_type not in {"u8", "i8", "f32"}:
            raise self.refuse((result, *epilogue), "x, w, scale, shift?, residual?")
        if not self.y_scale > 0:
            raise self.refuse((result,), f"a scale above 0, not {self.y_scale}")
        code(self.activation)
        want(self, (scale,), frozenset({F32}))
        same_dtype(self, scale, shift)
        want_shape(self, "scale", scale, self.channels)
        want_shape(self, "shift", shift, self.channels)
        made = result.with_dtype(DType(self.y_type))
        if residual is not None:
            want(self, (residual,), frozenset({made.dtype}))
            want_broadcast(self, "residual", residual, made.shape)
        return made

    def want_bytes(self, x: TensorType, w: TensorType) -> None:
        """Raise unless x is of bytes and w of signed ones."""
        want(self, (x,), BYTES)
        want(self, (w,), frozenset({DType.I8}))

    def finished(self, total: Array, *epilogue: Array | None) -> Array:
        """The output, of exact sums."""
        scale, shift, residual = (*epilogue, None, None, None)[:3]
        single, made = np.float32, DType(self.y_type)
        real, ranged = made is F32, self.activation in RANGES
        inverse = single(1.0 / self.y_scale)
        unit = inverse if ranged and not real else single(1.0)
        with np.errstate(all="ignore"):
            y = total.astype(single).astype(np.float64)
            y = y if scale is None else y * (scale * unit)
            y = (y if shift is None else y + shift * unit).astype(single)
            if residual is not None and real:
                y = y + residual
            elif residual is not None:
                moved = residual.astype(np.int32) - self.residual_zero
                y = y + moved.astype(single) * (single(self.residual_scale) * unit)
            ends = self.alpha, self.beta
            if self.activation == "clip":
                alpha, beta = single(ends[0]) * unit, single(ends[1]) * unit
                ends = float(alpha), float(beta)
            y = activate(self.activation, y.astype(np.float64), *ends)
            y = y.astype(single)
            if real:
                return y
            return rounded(y if ranged else y * inverse, self.y_zero, made)


class ByteLinear(_ByteProduct, InnerProducts, name="byte_linear"):
    """``x[..., K]`` by the quads ``w[P, K / 4, 16, 4]``."""

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        self.want_bytes(x, w)
        if not x.rank:
            raise self.refuse((x, w), "rows")
        quads = floordiv(x.shape[-1], QUAD)
        want_shape(self, "weight", w, panels(self.channels), quads, PANEL, QUAD)
        want_shape(self, "x", x, *x.shape[:-1], quads * QUAD)
        return self.want_rest(x.with_shape((*x.shape[:-1], self.channels)), *epilogue)

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        (weight,) = quad_matrices(w, self.channels, 1)
        total = (x.astype(np.float64) - self.x_zero) @ weight.astype(np.float64)
        return self.finished(total, *epilogue)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for rows, k, n in ((1, 4, 1), (7, 12, 17), (33, 16, 16), (0, 4, 5), (5, 8, 70)):
            w = PackQuads((0, 1)).reference(some_bytes(k, n, dtype="int8"))
            for dtype, zero in (("uint8", 3), ("int8", -7), ("uint8", 0)):
                op = ByteLinear(n, zero)
                yield Sample(op, (some_bytes(rows, k, dtype=dtype), w, scales(n)))
        w = PackQuads((0, 1)).reference(some_bytes(20, 33, dtype="int8"))
        x = some_bytes(2, 7, 20, dtype="uint8")
        yield from endings(Sample(ByteLinear(33, 128), (x, w)))
        worst = np.full((9, 1024), 255, np.uint8)
        for least, bits in ((-128, 8), (-64, 7)):
            w = PackQuads((0, 1)).reference(np.full((1024, 17), least, np.int8))
            op = ByteLinear(17, weight_bits=bits)
            yield Sample(op, (worst, w, np.ones(17, np.float32)))
        for side in (128, -128):
            w = paired_worst(1028, 21, side)
            for rows in (1, 13):
                x = np.full((rows, 1028), 255, np.uint8)
                op = ByteLinear(21, weight_bits=6)
                yield Sample(op, (x, w, np.ones(21, np.float32)))
        for rows, k, n in ((5, 20, 70), (88, 72, 33), (161, 8, 17)):
            quarter = some_bytes(k, n, dtype="int8") // 4
            w, op = PackQuads((0, 1)).reference(quarter), ByteLinear(n, weight_bits=6)
            yield Sample(op, (some_bytes(rows, k, dtype="uint8"), w, scales(n)))


class _ByteWindows(_ByteProduct, OverWindows):
    """Products of bytes that have windows."""

    kernel: tuple[int, ...] = (1, 1)
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)


class ByteConv(_ByteWindows, name="byte_conv"):
    """``x[N, H, W, C]`` by quads ``w[G * P, kh * kw * C / G / 4, 16, 4]``."""

    groups: int = 1

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        self.want_bytes(x, w)
        result = x.with_shape(self.window.shape(self, x, self.channels))
        if self.groups < 1 or self.channels % self.groups:
            raise self.refuse((x, w), f"{self.groups} equal groups")
        quads = floordiv(x.shape[3], self.groups * QUAD)
        want_shape(self, "x", x, *x.shape[:3], quads * self.groups * QUAD)
        count = self.groups * panels(self.channels // self.groups)
        reduced = math.prod(self.kernel) * quads
        want_shape(self, "weight", w, count, reduced, PANEL, QUAD)
        return self.want_rest(result, *epilogue)

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        each = self.channels // self.groups
        moved = x.astype(np.float64) - self.x_zero
        padded = self.window.padded(moved, 0.0)
        images = np.split(padded, self.groups, axis=3)
        weights = quad_matrices(w, each, self.groups).astype(np.float64)
        parts = []
        for image, weight in zip(images, weights, strict=True):
            matrices = np.split(weight, math.prod(self.kernel))
            taps = zip(self.window.taps(image), matrices, strict=True)
            parts.append(sum(seen @ matrix for seen, matrix in taps))
        return self.finished(np.concatenate(parts, axis=3), *epilogue)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        reduced = QUAD * inputs[1].dims[1] if inputs[1] else 0
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * reduced, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for size, window in WINDOWS:
            yield conv_sample(ByteConv(17, 5, **window), (*size, 4))
        yield conv_sample(ByteConv(33, 128, kernel=(1, 1)), (2, 4, 5, 12))
        pads = {"kernel": (3, 3), "pads": (1, 1, 1, 1)}
        yield conv_sample(ByteConv(34, 9, groups=2, **pads), (1, 6, 7, 16))
        yield conv_sample(ByteConv(5, -9, **pads), (1, 6, 7, 8), "int8")
        sizes = ((2, 9, 17, 8), (1, 5, 6, 12), (2, 9, 17, 16))
        for bits, size in ((7, (2, 9, 7, 8)), *((6, size) for size in sizes)):
            yield conv_sample(ByteConv(20, 9, weight_bits=bits, **pads), size)
        for kernel, pads_, size in (
            ((7, 7), (3, 3, 3, 3), (1, 15, 18, 4)),
            ((3, 3), (0, 0, 1, 1), (2, 8, 9, 8)),
        ):
            stem = {"kernel": kernel, "strides": (2, 2), "pads": pads_}
            yield conv_sample(ByteConv(35, 77, weight_bits=6, **stem), size)
        wide = {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
        yield conv_sample(ByteConv(35, 0, weight_bits=6, **wide), (1, 23, 22, 272))
        plain = conv_sample(ByteConv(17, 77, **pads), (1, 4, 5, 8))
        yield from endings(plain)


class ByteDepthwiseConv(_ByteWindows, name="byte_depthwise_conv"):
    """Each channel of ``x[N, H, W, C]`` by its taps ``w[kh * kw, C]``."""

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        self.want_bytes(x, w)
        result = x.with_shape(self.window.shape(self, x, self.channels))
        want_shape(self, "x", x, *x.shape[:3], self.channels)
        want_shape(self, "weight", w, math.prod(self.kernel), self.channels)
        return self.want_rest(result, *epilogue)

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        moved = x.astype(np.float64) - self.x_zero
        taps = zip(self.window.taps(self.window.padded(moved, 0.0)), w, strict=True)
        total = np.asarray(sum(seen * weight for seen, weight in taps))
        return self.finished(total, *epilogue)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * math.prod(self.kernel), moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for channels, (size, window) in zip(
            (1, 3, 16, 17, 33, 5), WINDOWS, strict=True
        ):
            op = ByteDepthwiseConv(channels, 5, **window)
            yield depthwise_sample(op, (*size, channels))
        pads = {"kernel": (5, 5), "pads": (2, 2, 2, 2), "strides": (2, 2)}
        for dtype in ("uint8", "int8"):
            op = ByteDepthwiseConv(24, 9, **pads)
            yield depthwise_sample(op, (2, 11, 16, 24), dtype)
        op = ByteDepthwiseConv(40, 128, kernel=(3, 3), pads=(1, 1, 1, 1))
        plain = depthwise_sample(op, (1, 9, 17, 40))
        yield from endings(plain)
