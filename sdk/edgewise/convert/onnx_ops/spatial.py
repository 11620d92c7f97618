"""What ONNX's image operators share: windows, and the way to channels-last and back.

ONNX puts channels second (``[N, C, ...]``), the core ops put them last.  Every spatial
operator is wrapped in transposes here; passes cancel them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from edgewise.convert.context import OpContext
from edgewise.dims import Dim, Expr, ceildiv, floordiv, maximum, minimum
from edgewise.ir.graph import Value
from edgewise.ops.pad import Pad
from edgewise.ops.shape import Reshape, Transpose


def channels_last(ctx: OpContext, x: Value, apply: Callable[[Value], Value]) -> Value:
    """``apply`` to ``x`` as ``[N, ..., C]``, and its result back in ONNX's order.

    One-dimensional data is lifted to height 1.
    """
    line = x.type.rank == 3
    if line:
        n, c, length = x.type.shape
        x = ctx.emit(Reshape((n, c, 1, length)), x)
    last = x.type.rank - 1
    y = apply(ctx.emit(Transpose((0, *range(2, last + 1), 1)), x))
    y = ctx.emit(Transpose((0, last, *range(1, last))), y)
    if line:
        n, c, _, length = y.type.shape
        y = ctx.emit(Reshape((n, c, length)), y)
    return y


def want_image(ctx: OpContext, x: Value) -> int:
    """The number of spatial axes, from 1 on."""
    axes = x.type.rank - 2
    if axes < 1:
        raise ctx.malformed(f"its input is {x.type}; want [N, C, ...]")
    return axes


def with_channels(ctx: OpContext, x: Value, count: int) -> Value:
    """``x``, whose weight says how many channels it has where its own type does not.

    The run ends where there are others: they have another number of elements.
    """
    n, channels, *rest = x.type.shape
    if isinstance(channels, int):
        return x
    return ctx.emit(Reshape((n, count, *rest)), x)


class Window(NamedTuple):
    """A sliding window over two spatial axes or more, as core ops want it.

    Attributes:
        pads: All begins, then all ends.
        extra: What ``ceil_mode`` adds to the ends.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[Dim, ...]
    dilations: tuple[int, ...]
    extra: tuple[Dim, ...]

    @property
    def padded(self) -> tuple[Dim, ...]:
        """Pads with the extra ones."""
        axes = len(self.kernel)
        ends = zip(self.pads[axes:], self.extra, strict=True)
        return (*self.pads[:axes], *(end + more for end, more in ends))

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Kernel, strides, pads and dilations, once the pads are numbers."""
        pads = tuple(pad for pad in self.padded if isinstance(pad, int))
        return self.kernel, self.strides, pads, self.dilations

    def part(self, axes: slice) -> Window:
        """The window over some of the axes alone."""
        count = len(self.kernel)
        pads = (*self.pads[:count][axes], *self.pads[count:][axes])
        rest = self.dilations[axes], self.extra[axes]
        return Window(self.kernel[axes], self.strides[axes], pads, *rest)

    def bare(self) -> Window:
        """The window without pads."""
        return self._replace(pads=(0,) * len(self.pads), extra=(0,) * len(self.extra))


def settled(
    ctx: OpContext, image: Value, window: Window, value: float
) -> tuple[Value, Window]:
    """Pads that only a run knows become elements of the image."""
    if not any(isinstance(pad, Expr) for pad in window.padded):
        return image, window
    return padded(ctx, image, window.padded, value), window.bare()


def padded(ctx: OpContext, image: Value, pads: tuple[Dim, ...], value: float) -> Value:
    """The channels-last image with ``value`` around it."""
    axes = len(pads) // 2
    around = (0, *pads[:axes], 0, 0, *pads[axes:], 0)
    return ctx.emit(Pad(around, "constant", value), image)


def window(ctx: OpContext, x: Value, kernel: tuple[int, ...]) -> Window:
    """The window that the node's attributes describe, height 1 put before a line."""
    axes = len(kernel)
    if x.type.rank != axes + 2:
        raise ctx.malformed(f"its window has {axes} axes, its input is {x.type}")
    strides, dilations = numbers(ctx, "strides", axes), numbers(ctx, "dilations", axes)
    if min(*kernel, *strides, *dilations) < 1:
        raise ctx.malformed("kernel, strides and dilations must be 1 or more")
    spans = spans_of(kernel, dilations)
    spatial = x.type.shape[2:]
    pads = _pads(ctx, spatial, spans, strides)
    extra: tuple[Dim, ...] = (0,) * axes
    if ctx.attribute("ceil_mode", 0):
        extra = tuple(
            _extra(size, span, stride, pads[i], pads[axes + i])
            for i, (size, span, stride) in enumerate(
                zip(spatial, spans, strides, strict=True)
            )
        )
    found = Window(kernel, strides, pads, dilations, extra)
    return lifted(found) if axes == 1 else found


def lifted(line: Window) -> Window:
    """A window over a line as one over an image of height 1."""
    (before, after), (extra,) = line.pads, line.extra
    return Window(
        (1, *line.kernel),
        (1, *line.strides),
        (0, before, 0, after),
        (1, *line.dilations),
        (0, extra),
    )


def numbers(ctx: OpContext, name: str, axes: int) -> tuple[int, ...]:
    """An attribute of one number for each axis; ones where it is left out."""
    given = tuple(ctx.attribute(name, (1,) * axes))
    if len(given) != axes:
        raise ctx.malformed(f"{name}={list(given)}; want {axes} numbers")
    return given


def spans_of(kernel: tuple[int, ...], dilations: tuple[int, ...]) -> tuple[int, ...]:
    """From the first element of a window to behind its last."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))


def explicit_pads(ctx: OpContext, axes: int) -> tuple[int, ...]:
    """The attribute ``pads``; zeros where it is left out."""
    pads = tuple(ctx.attribute("pads", (0,) * (2 * axes)))
    if len(pads) != 2 * axes or min(pads) < 0:
        raise ctx.malformed(f"pads={list(pads)}; want {2 * axes} of 0 or more")
    return pads


def _pads(
    ctx: OpContext,
    spatial: tuple[Dim, ...],
    spans: tuple[int, ...],
    strides: tuple[int, ...],
) -> tuple[Dim, ...]:
    mode, axes = ctx.attribute("auto_pad", "NOTSET"), len(spans)
    if mode in ("NOTSET", ""):
        return explicit_pads(ctx, axes)
    ctx.ignore("pads")
    if mode == "VALID":
        return (0,) * (2 * axes)
    totals = [_same_total(*each) for each in zip(spatial, spans, strides, strict=True)]
    return shared_out(ctx, mode, totals)


def shared_out(ctx: OpContext, mode: str, totals: list[Dim]) -> tuple[Dim, ...]:
    """Begins and ends of the totals; the odd one goes where the mode says."""
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise ctx.malformed(f"auto_pad={mode!r}")
    small = [floordiv(total, 2) for total in totals]
    large = [total - half for total, half in zip(totals, small, strict=True)]
    return (*small, *large) if mode == "SAME_UPPER" else (*large, *small)


def _same_total(size: Dim, span: int, stride: int) -> Dim:
    if stride == 1:
        return span - 1
    return maximum((ceildiv(size, stride) - 1) * stride + span - size, 0)


def _extra(size: Dim, span: int, stride: int, before: Dim, after: Dim) -> Dim:
    """Padding that rounds the number of windows up.

    A window that would begin behind the data and its leading padding is dropped.
    """
    if not isinstance(size, int) and after == 0 and span >= stride:
        # floor((n + stride - 1) / stride) is ceil(n / stride), whatever n is; and no
        # window begins behind the data.
        return stride - 1
    data = size + before
    count = ceildiv(data + after - span, stride) + 1
    count = minimum(count, maximum(ceildiv(data, stride), 1))
    return maximum((count - 1) * stride + span - data - after, 0)
