"""Convolutions over channels-last images, with packed weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from edgewise.dims import floordiv
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import may_equal, same_dtype, want_shape, wide
from edgewise.ops.epilogue import NAMES, finish, parameters, want_epilogue
from edgewise.ops.pack import PANEL, PackPanels, PackTaps, matrices, panels
from edgewise.ops.windows import WINDOWS, OverWindows, Window, Windowed
from edgewise.types import TensorType


class Conv(OverWindows, name="conv"):
    """``x[N, H, W, C]`` by panels ``w[G * P, kh * kw * C / G, 16]``, then the epilogue.

    Group g reads the g-th part of the channels and makes the g-th part of the outputs.
    """

    in_place = (4,)
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
        same_dtype(self, x, w)
        result = x.with_shape(self.window.shape(self, x, self.channels))
        whole = self.groups > 0 and self.channels % self.groups == 0
        if not whole or not may_equal(x.shape[3] % self.groups, 0) or len(epilogue) > 3:
            raise self.refuse((x, w, *epilogue), f"{self.groups} equal groups")
        reduced = math.prod(self.kernel) * floordiv(x.shape[3], self.groups)
        count = self.groups * panels(self.channels // self.groups)
        want_shape(self, "weight", w, count, reduced, PANEL)
        want_epilogue(self, result, self.activation, *epilogue)
        return result

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        inputs, outputs = x.shape[3] // self.groups, self.channels // self.groups
        weight = matrices(wide(w), outputs)
        weight = weight.reshape(self.groups, math.prod(self.kernel), inputs, outputs)
        padded = self.window.padded(x, 0.0)
        groups = zip(np.split(padded, self.groups, axis=3), weight, strict=True)
        parts = [_summed(self.window, part, taps) for part, taps in groups]
        activation = (self.activation, self.alpha, self.beta)
        return finish(np.concatenate(parts, axis=3), activation, x.dtype, *epilogue)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        reduced = inputs[1].dims[1] if inputs[1] else 0
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * reduced, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for size, window in WINDOWS:
            yield _conv_sample(size, 3, 17, **window)
        # Images of one row: the next row is another image.
        yield _conv_sample((3, 1, 14), 4, 17, kernel=(1, 3))
        yield _conv_sample((2, 1, 10), 4, 5, kernel=(1, 3), dilations=(1, 2))
        # Tall windows over one or two channels, as over spectrograms.
        tall: dict[str, Any] = {"strides": (2, 2), "pads": (4, 1, 5, 1)}
        yield _conv_sample((2, 11, 6), 1, 65, kernel=(10, 4), **tall)
        yield _conv_sample((1, 9, 5), 2, 50, kernel=(7, 3), pads=(3, 1, 3, 1))
        yield _conv_sample((1, 12, 3), 1, 64, kernel=(5, 2), dilations=(2, 1))
        yield _conv_sample((1, 4, 5), 7, 33, kernel=(1, 1))
        yield _conv_sample((1, 4, 4), 6, 4, kernel=(3, 3), groups=2)
        yield _conv_sample((2, 4, 3), 6, 36, kernel=(1, 1), groups=2)
        yield _conv_sample((1, 4, 4), 5, 5, kernel=(3, 3), groups=5)
        yield _conv_sample((1, 3, 3), 3, 16, kernel=(3, 3), pads=(4, 4, 4, 4))
        for name in NAMES:
            alpha, beta = parameters(name)
            op = Conv(17, (2, 2), activation=name, alpha=alpha, beta=beta)
            yield with_epilogue(_conv_sample((1, 4, 5), 3, 17, kernel=(2, 2)), op)
        bad = _conv_sample((1, 4, 5), 3, 5, kernel=(3, 3), pads=(1, 1, 1, 1))
        bad.inputs[0][0, 1, 1, 0] = np.nan  # type: ignore[index]  # x is there
        yield bad


def _summed(window: Window, padded: Array, weight: Array) -> Array:
    with np.errstate(all="ignore"):
        taps = zip(window.taps(padded), weight, strict=True)
        return np.asarray(sum(seen @ matrix for seen, matrix in taps))


def _conv_sample(
    size: tuple[int, ...],
    inputs: int,
    outputs: int,
    *,
    kernel: tuple[int, ...],
    groups: int = 1,
    **window: tuple[int, ...],
) -> Sample:
    logical = cases.floats(outputs, inputs // groups, *kernel, seed=1)
    w = PackPanels((2, 3, 1, 0), groups=groups).reference(logical)
    op = Conv(outputs, kernel, groups=groups, **window)
    return Sample(op, (cases.floats(*size, inputs), w))


def with_epilogue(sample: Sample, op: Op) -> Sample:
    """The sample with ``op`` and with scale, shift and residual beside its inputs."""
    x, w = sample.inputs
    y = sample.op.reference(x, w)
    shape = np.shape(y)
    epilogue = (cases.positive(shape[-1]), cases.floats(shape[-1]))
    return Sample(op, (x, w, *epilogue, cases.floats(*shape, seed=3)))


class DepthwiseConv(Windowed, name="depthwise_conv"):
    """Each channel of ``x[N, H, W, C]`` by its taps ``w[kh * kw, C]``; the epilogue."""

    in_place = (4,)
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        same_dtype(self, x, w)
        if x.rank != 4 or len(epilogue) > 3:
            raise self.refuse((x, w, *epilogue), "x, w, scale?, shift?, residual?")
        result = x.with_shape(self.window.shape(self, x, x.shape[3]))
        want_shape(self, "weight", w, math.prod(self.kernel), x.shape[3])
        want_epilogue(self, result, self.activation, *epilogue)
        return result

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        padded = self.window.padded(x, 0.0)
        with np.errstate(all="ignore"):
            taps = zip(self.window.taps(padded), wide(w), strict=True)
            total = sum(seen * weight for seen, weight in taps)
        activation = (self.activation, self.alpha, self.beta)
        return finish(np.asarray(total), activation, x.dtype, *epilogue)

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
            op = DepthwiseConv(**window)
            taps = cases.floats(channels, 1, *op.kernel, seed=1)
            x = cases.floats(*size, channels)
            yield Sample(op, (x, PackTaps().reference(taps)))
        rows = cases.floats(3, 1, 14, 17), cases.floats(3, 17, seed=1)
        yield Sample(DepthwiseConv((1, 3)), rows)
        x, w = cases.floats(1, 5, 4, 17), cases.floats(9, 17, seed=1)
        plain = Sample(DepthwiseConv((3, 3), pads=(1, 1, 1, 1)), (x, w))
        for name in NAMES:
            alpha, beta = parameters(name)
            yield with_epilogue(
                plain, plain.op.replace(activation=name, alpha=alpha, beta=beta)
            )
        bad = x.copy()
        bad[0, 2, 2, 3], bad[0, 0, 0, 1] = np.nan, np.inf
        yield Sample(plain.op, (bad, np.abs(w)))
