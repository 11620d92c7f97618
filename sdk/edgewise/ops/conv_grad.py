"""What training needs of convolutions: gradients of their images and weights.

Weights keep their packed form, so that their gradients have the form that they are
stored in.  Lanes beyond the outputs stay zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from edgewise.dims import Dim, floordiv
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, integers, same_dtype, want, want_shape, wide
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.pack import PANEL, PackPanels, matrices, panels
from edgewise.ops.windows import Windowed
from edgewise.types import TensorType


class _Gradient(Windowed):
    """The window of the convolution whose gradient it is."""

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return math.prod(self.kernel)

    def into_windows(self, sizes: tuple[int, ...], parts: Iterator[Array]) -> Array:
        """An image of ``sizes`` [N, H, W, C] that each tap's part is added to."""
        height, width = sizes[1:3]
        top, left, bottom, right = self.pads
        padded = (sizes[0], height + top + bottom, width + left + right, sizes[3])
        total = np.zeros(padded)
        places = self.window.places(padded[1:3])
        for place, part in zip(places, parts, strict=True):
            total[(slice(None), *place)] += part
        return total[:, top : top + height, left : left + width]


class ConvInputGrad(_Gradient, name="conv_input_grad"):
    """Gradient ``[N, H, W, C]`` of the image of a ``conv``, of ``dy[N, h, w, O]``."""

    sizes: tuple[Dim, ...]  # H, W, C
    groups: int = 1

    def infer(self, dy: TensorType, w: TensorType) -> TensorType:
        same_dtype(self, dy, w)
        want(self, (dy,), FLOATS)
        result = dy.with_shape((*dy.shape[:1], *self.sizes))
        outputs = dy.shape[-1]
        if len(self.sizes) != 3 or self.groups < 1:
            raise self.refuse((dy, w), "the sizes H, W, C and one group or more")
        want_shape(self, "dy", dy, *self.window.shape(self, result, outputs))
        reduced = self.taps * floordiv(self.sizes[2], self.groups)
        count = self.groups * panels(floordiv(outputs, self.groups))
        want_shape(self, "weight", w, count, reduced, PANEL)
        return result

    def reference(self, dy: Array, w: Array) -> Array:
        each = dy.shape[-1] // self.groups
        sizes = (len(dy), *integers(self, self.sizes))
        inputs = sizes[3] // self.groups
        weight = matrices(wide(w), each)
        weight = weight.reshape(self.groups, self.taps, inputs, each)
        split = np.split(wide(dy), self.groups, axis=3)
        with np.errstate(all="ignore"):
            parts = [
                self.into_windows((*sizes[:3], inputs), (part @ m.T for m in taps))
                for part, taps in zip(split, weight, strict=True)
            ]
        return np.concatenate(parts, axis=3).astype(dy.dtype)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        moved = super().cost(inputs, outputs).bytes
        given = math.prod(inputs[0].dims) if inputs[0] else 0
        reduced = inputs[1].dims[1] if inputs[1] else 0
        return Cost(given * reduced, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for op, x, w, dy in _convolutions(Conv):
            named = _window(op) | {"sizes": x.shape[1:], "groups": op.groups}
            yield Sample(ConvInputGrad(**named), (dy, w))


class ConvWeightGrad(_Gradient, name="conv_weight_grad"):
    """Gradient of the panels of a ``conv``, of its image and ``dy[N, h, w, O]``."""

    groups: int = 1

    def infer(self, x: TensorType, dy: TensorType) -> TensorType:
        same_dtype(self, x, dy)
        want(self, (x,), FLOATS)
        outputs = dy.shape[-1]
        if self.groups < 1:
            raise self.refuse((x, dy), "one group or more")
        want_shape(self, "dy", dy, *self.window.shape(self, x, outputs))
        reduced = self.taps * floordiv(x.shape[3], self.groups)
        count = self.groups * panels(floordiv(outputs, self.groups))
        return x.with_shape((count, reduced, PANEL))

    def reference(self, x: Array, dy: Array) -> Array:
        inputs, outputs = x.shape[3] // self.groups, dy.shape[3]
        padded = self.window.padded(x, 0.0)
        pairs = zip(
            np.split(padded, self.groups, axis=3),
            np.split(wide(dy), self.groups, axis=3),
            strict=True,
        )
        with np.errstate(all="ignore"):
            groups = [
                np.concatenate(
                    [
                        seen.reshape(-1, inputs).T @ grad.reshape(-1, grad.shape[3])
                        for seen in self.window.taps(part)
                    ]
                )
                for part, grad in pairs
            ]
        rows = np.concatenate(groups, axis=1).reshape(self.taps * inputs, outputs)
        return PackPanels((0, 1), groups=self.groups).reference(rows.astype(x.dtype))

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        moved = super().cost(inputs, outputs).bytes
        given = math.prod(inputs[1].dims) if inputs[1] else 0
        return Cost(given * outputs[0].dims[1], moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for op, x, _, dy in _convolutions(Conv):
            yield Sample(ConvWeightGrad(**_window(op), groups=op.groups), (x, dy))


class DepthwiseInputGrad(_Gradient, name="depthwise_input_grad"):
    """Gradient ``[N, H, W, C]`` of the image of a ``depthwise_conv``."""

    sizes: tuple[Dim, ...]  # H, W

    def infer(self, dy: TensorType, w: TensorType) -> TensorType:
        same_dtype(self, dy, w)
        want(self, (dy,), FLOATS)
        if len(self.sizes) != 2 or dy.rank != 4:
            raise self.refuse((dy, w), "[N, h, w, C] and the sizes H, W")
        result = dy.with_shape((dy.shape[0], *self.sizes, dy.shape[3]))
        want_shape(self, "dy", dy, *self.window.shape(self, result, dy.shape[3]))
        want_shape(self, "weight", w, self.taps, dy.shape[3])
        return result

    def reference(self, dy: Array, w: Array) -> Array:
        sizes = (len(dy), *integers(self, self.sizes), dy.shape[3])
        with np.errstate(all="ignore"):
            parts = (wide(dy) * weight for weight in wide(w))
            return self.into_windows(sizes, parts).astype(dy.dtype)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(inputs[0].dims if inputs[0] else ()) * self.taps, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for op, x, w, dy in _convolutions(DepthwiseConv):
            yield Sample(DepthwiseInputGrad(**_window(op), sizes=x.shape[1:3]), (dy, w))


class DepthwiseWeightGrad(_Gradient, name="depthwise_weight_grad"):
    """Gradient ``[kh * kw, C]`` of the taps of a ``depthwise_conv``."""

    def infer(self, x: TensorType, dy: TensorType) -> TensorType:
        same_dtype(self, x, dy)
        want(self, (x,), FLOATS)
        want_shape(self, "dy", dy, *self.window.shape(self, x, x.shape[3]))
        return x.with_shape((self.taps, x.shape[3]))

    def reference(self, x: Array, dy: Array) -> Array:
        padded = self.window.padded(x, 0.0)
        with np.errstate(all="ignore"):
            sums = [
                (seen * wide(dy)).sum(axis=(0, 1, 2))
                for seen in self.window.taps(padded)
            ]
        return np.stack(sums).astype(x.dtype)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(inputs[1].dims if inputs[1] else ()) * self.taps, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for op, x, _, dy in _convolutions(DepthwiseConv):
            yield Sample(DepthwiseWeightGrad(**_window(op)), (x, dy))


def _window(op: Any) -> dict[str, Any]:
    return {
        "kernel": op.kernel,
        "strides": op.strides,
        "pads": op.pads,
        "dilations": op.dilations,
    }


def _convolutions(op: type[Op]) -> Iterator[tuple[Any, Array, Array, Array]]:
    """Plain samples of a convolution, with a gradient of what each makes."""
    seen = set()
    for sample in op.samples():
        plain: Any = sample.op.replace(activation="none", alpha=0.0, beta=0.0)
        x, w = sample.inputs[:2]
        if x is None or w is None or not np.isfinite(x).all():
            continue
        if (case := (repr(plain), x.shape)) not in seen:
            seen.add(case)
            shape = np.shape(plain.reference(x, w))
            yield plain, x, w, cases.floats(*shape, seed=5)
