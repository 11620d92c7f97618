"""Which native functions serve quantisation."""

from __future__ import annotations

from edgewise.kernels.catalog.base import Binding, Call, In, Launch, Out, Word, kernel
from edgewise.kernels.catalog.calls import F32, given, integer
from edgewise.kernels.catalog.strides import contiguous, walk
from edgewise.types import DType


def _spread(call: Call, symbol: str) -> Binding | None:
    dims = given(call, 0).dims
    if integer(call, "block"):
        return None
    along = [0] * len(dims)
    if given(call, 1).rank:
        along[integer(call, "axis")] = 1
    path = walk(dims, contiguous(dims), tuple(along))
    if path is None:
        return None
    words: tuple[Word, ...] = (In(0), In(1), In(2), Out(0), *path.words)
    return Binding((Launch(symbol, words, path.tasks),))


@kernel("quantize", "quantize_i8", "quantize_u8")
def bind_quantize(call: Call) -> Binding | None:
    """To bytes."""
    name = {DType.I8: "i8", DType.U8: "u8"}.get(call.outputs[0].dtype)
    if name is None or given(call, 0).dtype is not F32:
        return None
    return _spread(call, f"quantize_{name}")


@kernel("dequantize", "dequantize_i8", "dequantize_u8", "dequantize_i32")
def bind_dequantize(call: Call) -> Binding | None:
    """From bytes and sums."""
    names = {DType.I8: "i8", DType.U8: "u8", DType.I32: "i32"}
    name = names.get(given(call, 0).dtype)
    if name is None or call.outputs[0].dtype is not F32:
        return None
    return _spread(call, f"dequantize_{name}")
