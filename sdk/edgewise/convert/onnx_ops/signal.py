"""ONNX spectra: DFT, STFT, and the mel scale."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops import run_axes
from edgewise.convert.onnx_ops.pieces import counted, reshaped, scalar
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.run_time import dims
from edgewise.dims import Dim, floordiv
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Mul
from edgewise.ops.index import Gather
from edgewise.ops.signal import Dft, MelWeights


@onnx_op("DFT", since=17)
def _dft(ctx: OpContext) -> Value:
    x = ctx[0]
    if x.type.rank < 2:
        raise ctx.malformed(f"its input is {x.type}; want a signal and its parts")
    ends = bool(ctx.attribute("inverse", 0)), bool(ctx.attribute("onesided", 0))
    length = _number(ctx, 1)

    def transformed(signal: Value, axis: int) -> Value:
        size = signal.type.shape[axis]
        default = 2 * (size - 1) if all(ends) else size
        op = Dft(default if length is None else length, axis, *ends)
        return ctx.emit(op, signal)

    if ctx.opset < 20:
        return transformed(x, ctx.axis(x.type.rank, 1))
    if ctx.optional(2) is not None and ctx.known(2) is None:
        return run_axes.along(ctx, ctx[2], transformed, fixed=1)
    given = ctx.integers(2)
    return transformed(x, ctx.normal(given[0] if given else -2, x.type.rank))


def _number(ctx: OpContext, index: int) -> Dim | None:
    """Input ``index``, one number; ``None`` where it is left out."""
    sizes = ctx.sizes(index)
    if sizes is not None and len(sizes) != 1:
        raise ctx.malformed(f"its input {index} is not one number")
    return None if sizes is None else sizes[0]


@onnx_op("STFT", since=17)
def _stft(ctx: OpContext) -> Value:
    x, step = ctx.ranked(0, 3), _number(ctx, 1)
    window = None if ctx.optional(2) is None else ctx.ranked(2, 1)
    if step is None or (isinstance(step, int) and step < 1):
        raise ctx.malformed(f"cuts {x.type} by {step}; want a step from 1 on")
    length = _number(ctx, 3)
    if length is None:
        length = x.type.shape[1] if window is None else window.type.shape[0]
    count = floordiv(x.type.shape[1] - length, step) + 1
    starts = ctx.emit(
        Mul(), counted(ctx, 0, count, count, 1), reshaped(ctx, dims(ctx, [step]))
    )
    places = ctx.emit(Add(), starts, counted(ctx, 0, length))
    frames = ctx.emit(Gather(1), x, places)
    if window is not None:
        frames = ctx.emit(Mul(), frames, reshaped(ctx, window, length, 1))
    onesided = bool(ctx.attribute("onesided", 1))
    return ctx.emit(Dft(length, 2, False, onesided), frames)


@onnx_op("MelWeightMatrix", since=17)
def _mel_weights(ctx: OpContext) -> Value:
    count, length = _number(ctx, 0), _number(ctx, 1)
    if count is None or length is None:
        raise ctx.malformed("its number of bins or its length is missing")
    dtype = ctx.element_type(ctx.attribute("output_datatype", 1))
    op = MelWeights(floordiv(length, 2) + 1, count, dtype.value)
    return ctx.emit(op, *(scalar(ctx, index) for index in range(5)))
