"""Inverted bottlenecks: three convolutions whose images in between are never whole."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.errors import InternalError
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.ops.windows import Windowed
from edgewise.types import TensorType

CHANNELS_LAST = (2, 3, 1, 0)
SLOTS = 11  # x; weights, scale and shift of the three; a residual


class Bottleneck(Windowed, name="bottleneck"):
    """Channels of ``x[N, H, W, C]`` are expanded, filtered one by one, and projected.

    The three are ``conv`` over 1 x 1, ``depthwise_conv`` and ``conv`` over 1 x 1: plans
    make it of them, so that files and training know those alone.  Without ``expanded``
    channels there are two, and no inputs of the first.
    """

    in_place = (10,)
    channels: int = 1
    expanded: int = 0
    activations: tuple[str, ...] = ("none", "none", "none")
    alphas: tuple[float, ...] = (0.0, 0.0, 0.0)
    betas: tuple[float, ...] = (0.0, 0.0, 0.0)

    @property
    def parts(self) -> tuple[Conv, DepthwiseConv, Conv]:
        """The three; the first is of no use where nothing is expanded."""
        first, second, third = zip(
            self.activations, self.alphas, self.betas, strict=True
        )
        window = (self.kernel, self.strides, self.pads, self.dilations)
        return (
            Conv(self.expanded, (1, 1)).replace(**_ending(first)),
            DepthwiseConv(*window, *second),
            Conv(self.channels, (1, 1)).replace(**_ending(third)),
        )

    def infer_parts(
        self, types: tuple[TensorType | None, ...]
    ) -> tuple[TensorType, TensorType, TensorType]:
        """What each of the three makes; the first is ``x`` where it is left out."""
        x, *expand = types[:4]
        whole = len(types) == SLOTS and None not in (x, types[4], types[7])
        if x is None or not whole or any(expand) != bool(self.expanded):
            raise self.refuse(types, "x, and weights, scale?, shift? of each part")
        if any(len(each) != 3 for each in (self.activations, self.alphas, self.betas)):
            raise self.refuse(types, f"three ends in {self!r}")
        first, second, third = self.parts
        if self.expanded:
            x = _made(first, x, *expand)
        middle = _made(second, x, *types[4:7])
        return x, middle, _made(third, middle, *types[7:])

    def infer(self, x: TensorType, *rest: TensorType | None) -> TensorType:
        return self.infer_parts((x, *rest))[2]

    def reference(self, x: Array, *rest: Array | None) -> Array:
        for op, (weight, *ending) in zip(
            self.parts, (rest[:3], rest[3:6], rest[6:]), strict=True
        ):
            if weight is not None:
                x = np.asarray(op.reference(x, weight, *ending))
        return x

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        first, middle, _ = self.infer_parts(inputs)
        x = inputs[0].dims[3] if inputs[0] else 0
        macs = math.prod(first.dims) * x if self.expanded else 0
        macs += math.prod(middle.dims) * math.prod(self.kernel)
        macs += math.prod(outputs[0].dims) * middle.dims[3]
        return Cost(macs, super().cost(inputs, outputs).bytes)

    @staticmethod
    def samples() -> Iterator[Sample]:
        pads = (1, 1, 1, 1)
        ends = ("relu", "clip", "none")
        op = Bottleneck((3, 3), (1, 1), pads, channels=5, expanded=20, activations=ends)
        op = op.replace(alphas=(0.0, -0.5, 0.0), betas=(0.0, 0.75, 0.0))
        yield _sample(op, (2, 11, 9, 5), residual=True)
        yield _sample(op.replace(expanded=16, channels=17), (1, 40, 10, 4))
        yield _sample(op.replace(expanded=33, strides=(2, 2)), (2, 13, 15, 7))
        yield _sample(op.replace(expanded=8, strides=(3, 3)), (1, 14, 8, 3))
        wide = op.replace(kernel=(5, 5), pads=(1, 2, 2, 1), strides=(2, 2))
        yield _sample(wide, (2, 30, 13, 6))
        yield _sample(wide.replace(dilations=(2, 1), strides=(1, 1)), (1, 9, 131, 3))
        yield _sample(op.replace(kernel=(3, 2), pads=(0, 0, 0, 0)), (1, 3, 7, 3))
        yield _sample(op.replace(pads=(3, 3, 3, 3)), (1, 1, 1, 3))
        alone = op.replace(expanded=0, channels=19)
        yield _sample(alone, (3, 9, 12, 17))
        yield _sample(alone.replace(strides=(2, 2)), (1, 7, 101, 32))
        odd = op.replace(
            activations=("silu", "hard_swish", "elu"), alphas=(0.0, 0.0, 0.7)
        )
        yield _sample(odd, (1, 10, 6, 5), residual=True)
        yield _sample(op.replace(channels=16), (0, 6, 6, 4))
        bad = _sample(op, (1, 12, 8, 5))
        bad.inputs[0][0, 5, 4, 2] = np.nan  # type: ignore[index]  # x is there
        yield bad


def merged(*parts: Op) -> Bottleneck:
    """The op that does what two or three convolutions do, one after the other.

    Raises:
        InternalError: They are no bottleneck.
    """
    *expand, filters, project = parts
    if not isinstance(filters, DepthwiseConv) or not isinstance(project, Conv):
        raise InternalError(f"{parts} are no bottleneck")
    first = expand[0] if expand else Conv(0, (1, 1))
    if not isinstance(first, Conv):
        raise InternalError(f"{parts} are no bottleneck")
    three = (first, filters, project)
    return Bottleneck(
        filters.kernel,
        filters.strides,
        filters.pads,
        filters.dilations,
        project.channels,
        first.channels,
        tuple(part.activation for part in three),
        tuple(part.alpha for part in three),
        tuple(part.beta for part in three),
    )


def _ending(ending: tuple[str, float, float]) -> dict[str, str | float]:
    return dict(zip(("activation", "alpha", "beta"), ending, strict=True))


def _made(op: Op, *types: TensorType | None) -> TensorType:
    (found,) = op.infer_all(types)
    if not isinstance(found, TensorType):
        raise InternalError(f"{op} makes {found}")
    return found


def _sample(
    op: Bottleneck, shape: tuple[int, ...], *, residual: bool = False
) -> Sample:
    x, middle = cases.floats(*shape), op.expanded or shape[3]
    expand: tuple[Array | None, ...] = (None, None, None)
    if op.expanded:
        expand = (_panels(op.expanded, shape[3], 1), cases.positive(middle), None)
    taps = PackTaps().reference(cases.floats(middle, 1, *op.kernel, seed=2))
    project = (_panels(op.channels, middle, 3), None, cases.floats(op.channels))
    inputs = (x, *expand, taps, None, cases.floats(middle), *project)
    if not residual:
        return Sample(op, (*inputs, None))
    like = op.reference(x, *inputs[1:], None).shape
    return Sample(op, (*inputs, cases.floats(*like, seed=4)))


def _panels(outputs: int, inputs: int, seed: int) -> Array:
    weight = cases.floats(outputs, inputs, 1, 1, seed=seed)
    return PackPanels(CHANNELS_LAST).reference(weight)
