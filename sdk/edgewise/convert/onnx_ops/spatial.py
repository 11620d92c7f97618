"""What ONNX's image operators share: windows, and the way to channels-last and back.

ONNX puts channels second (``[N, C, ...]``), the core ops put them last.  Every spatial
operator is wrapped in transposes here; passes cancel them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from edgewise.convert.context import OpContext
from edgewise.dims import Dim, ceildiv
from edgewise.ir.graph import Value
from edgewise.ops.shape import Reshape, Transpose

TO_LAST = (0, 2, 3, 1)
TO_FIRST = (0, 3, 1, 2)


def channels_last(ctx: OpContext, x: Value, apply: Callable[[Value], Value]) -> Value:
    """``apply`` to ``x`` as ``[N, H, W, C]``, and its result back in ONNX's order.

    One-dimensional data is lifted to height 1.
    """
    line = x.type.rank == 3
    if line:
        n, c, length = x.type.shape
        x = ctx.emit(Reshape((n, c, 1, length)), x)
    y = ctx.emit(Transpose(TO_FIRST), apply(ctx.emit(Transpose(TO_LAST), x)))
    if line:
        n, c, _, length = y.type.shape
        y = ctx.emit(Reshape((n, c, length)), y)
    return y


def want_image(ctx: OpContext, x: Value) -> int:
    """The number of spatial axes, 1 or 2."""
    axes = x.type.rank - 2
    if axes < 1:
        raise ctx.malformed(f"its input is {x.type}; want [N, C, ...]")
    if axes > 2:
        raise ctx.unsupported(
            f"has {axes} spatial axes; edgewise has at most 2",
            "replace it by operators over 2 axes",
        )
    return axes


class Window(NamedTuple):
    """A sliding window over height and width, as core ops want it.

    Attributes:
        pads: Top, left, bottom, right.
        extra: What ``ceil_mode`` adds below and to the right of ``pads``.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    extra: tuple[int, int] = (0, 0)

    @property
    def padded(self) -> tuple[int, int, int, int]:
        """Pads with the extra ones."""
        top, left, bottom, right = self.pads
        return top, left, bottom + self.extra[0], right + self.extra[1]


def window(ctx: OpContext, x: Value, kernel: tuple[int, ...]) -> Window:
    """The window that the node's attributes describe, height 1 put before a line."""
    axes = len(kernel)
    if x.type.rank != axes + 2:
        raise ctx.malformed(f"its window has {axes} axes, its input is {x.type}")
    strides = _numbers(ctx, "strides", axes)
    dilations = _numbers(ctx, "dilations", axes)
    if min(*kernel, *strides, *dilations) < 1:
        raise ctx.malformed("kernel, strides and dilations must be 1 or more")
    spans = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    spatial = x.type.shape[2:]
    pads = _pads(ctx, spatial, spans, strides)
    extra = (0,) * axes
    if ctx.attribute("ceil_mode", 0):
        extra = tuple(
            _extra(ctx, size, span, stride, pads[i], pads[axes + i])
            for i, (size, span, stride) in enumerate(
                zip(spatial, spans, strides, strict=True)
            )
        )
    if axes == 1:
        return Window(
            (1, kernel[0]),
            (1, strides[0]),
            (0, pads[0], 0, pads[1]),
            (1, dilations[0]),
            (0, extra[0]),
        )
    return Window(
        (kernel[0], kernel[1]),
        (strides[0], strides[1]),
        (pads[0], pads[1], pads[2], pads[3]),
        (dilations[0], dilations[1]),
        (extra[0], extra[1]),
    )


def _numbers(ctx: OpContext, name: str, axes: int) -> tuple[int, ...]:
    numbers = tuple(ctx.attribute(name, (1,) * axes))
    if len(numbers) != axes:
        raise ctx.malformed(f"{name}={list(numbers)}; want {axes} numbers")
    return numbers


def _pads(
    ctx: OpContext,
    spatial: tuple[Dim, ...],
    spans: tuple[int, ...],
    strides: tuple[int, ...],
) -> tuple[int, ...]:
    mode = ctx.attribute("auto_pad", "NOTSET")
    given = ctx.attribute("pads")
    axes = len(spans)
    if mode in ("NOTSET", ""):
        pads = (0,) * (2 * axes) if given is None else tuple(given)
        if len(pads) != 2 * axes or min(pads) < 0:
            raise ctx.malformed(f"pads={list(pads)}; want {2 * axes} of 0 or more")
        return pads
    if mode == "VALID":
        return (0,) * (2 * axes)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ctx.malformed(f"auto_pad={mode!r}")
    totals = [
        _same_total(ctx, *each) for each in zip(spatial, spans, strides, strict=True)
    ]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (*small, *large) if mode == "SAME_UPPER" else (*large, *small)


def _same_total(ctx: OpContext, size: Dim, span: int, stride: int) -> int:
    if stride == 1:
        return span - 1
    total = (ceildiv(size, stride) - 1) * stride + span - size
    return max(ctx.whole(total), 0)


def _extra(
    ctx: OpContext, size: Dim, span: int, stride: int, before: int, after: int
) -> int:
    """Padding that rounds the number of windows up.

    A window that would begin behind the data and its leading padding is dropped.
    """
    if not isinstance(size, int) and after == 0 and span >= stride:
        # floor((n + stride - 1) / stride) is ceil(n / stride), whatever n is; and no
        # window begins behind the data.
        return stride - 1
    data = ctx.whole(size) + before
    count = -(-(data + after - span) // stride) + 1
    if (count - 1) * stride >= data:
        count -= 1
    return max((count - 1) * stride + span - data - after, 0)
