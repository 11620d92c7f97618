"""Sequences, optionals, texts, and what finds a number of elements as it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgewise.convert.to_onnx.arrange import whole
from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.writer import CODES, At
from edgewise.dtype import DType
from edgewise.ops import dynamic, optional, select, sequence, signal, text
from edgewise.ops.expect import Expect
from edgewise.ops.linalg import Det
from edgewise.ops.random import RandomNormal, RandomUniform


def _split(op: Any) -> dict[str, Any]:
    more = {"delimiter": op.delimiter} if op.delimiter else {}
    return more | ({"maxsplit": op.limit} if op.limit >= 0 else {})


def _normal(op: Any) -> dict[str, Any]:
    return {
        "case_change_action": op.case,
        "is_case_sensitive": int(op.sensitive),
        "stopwords": list(op.stopwords),
    }


_SAME: dict[type, tuple[str, int, Callable[[Any], dict[str, Any]]]] = {
    Det: ("Det", 1, lambda _: {}),
    dynamic.NonZero: ("NonZero", 1, lambda _: {}),
    sequence.SequenceConstruct: ("SequenceConstruct", 1, lambda _: {}),
    sequence.SequenceEmpty: (
        *("SequenceEmpty", 1),
        lambda op: {"dtype": CODES[DType(op.dtype)]},
    ),
    sequence.SequenceInsert: ("SequenceInsert", 1, lambda _: {}),
    sequence.SequenceErase: ("SequenceErase", 1, lambda _: {}),
    sequence.SequenceAt: ("SequenceAt", 1, lambda _: {}),
    sequence.SequenceLength: ("SequenceLength", 1, lambda _: {}),
    sequence.SplitToSequence: (
        *("SplitToSequence", 1),
        lambda op: {"axis": op.axis, "keepdims": int(op.keepdims)},
    ),
    sequence.ConcatFromSequence: (
        *("ConcatFromSequence", 1),
        lambda op: {"axis": op.axis, "new_axis": int(op.new_axis)},
    ),
    optional.OptionalHasElement: ("OptionalHasElement", 1, lambda _: {}),
    optional.OptionalGetElement: ("OptionalGetElement", 1, lambda _: {}),
    text.StringConcat: ("StringConcat", 1, lambda _: {}),
    text.StringSplit: ("StringSplit", 2, _split),
    text.RegexFullMatch: ("RegexFullMatch", 1, lambda op: {"pattern": op.pattern}),
    text.StringNormalize: ("StringNormalizer", 1, _normal),
    signal.MelWeights: (
        *("MelWeightMatrix", 1),
        lambda op: {"output_datatype": CODES[DType(op.to)]},
    ),
}


@writes(*_SAME)
def same(at: At) -> Written:
    """The operator of the same meaning."""
    kind, count, attributes = _SAME[type(at.op)]
    found = at.emit_all(kind, count, *at.names(), **attributes(at.op))
    return tuple(found)


@writes(Expect)
def expect(at: At) -> Written:
    """Nothing: what is taken for granted is not checked there."""
    return at.name(0)


@writes(optional.Optional)
def optional_(at: At) -> Written:
    """With an element; an empty one is a type that only ours has."""
    if at.given(0) is None:
        raise at.refuse("it is an optional that holds nothing")
    return at.emit("Optional", at.name(0))


@writes(select.Unique)
def unique(at: At) -> Written:
    """The different slices along an axis."""
    more = {"axis": at.op.axis, "sorted": int(at.op.ordered)}
    found: tuple[str, ...] = at.emit_all("Unique", 4, at.name(0), **more)
    return found


@writes(select.NonMaxSuppression)
def non_max_suppression(at: At) -> Written:
    """Boxes that no better one overlaps."""
    most = whole(at, at.value(2), DType.I64)
    names = (at.name(0), at.name(1), most, at.name(3), at.name(4))
    center = int(at.op.center)
    return at.emit("NonMaxSuppression", *names, center_point_box=center)


@writes(signal.Dft)
def dft(at: At) -> Written:
    """The Fourier transform along an axis."""
    op, scalar = at.op, at.writer.sizes.scalar
    more = {"inverse": int(op.inverse), "onesided": int(op.onesided)}
    return at.emit("DFT", at.name(0), scalar(op.length), scalar(op.axis), **more)


@writes(RandomUniform, RandomNormal)
def random(at: At) -> Written:
    """Fresh numbers at every run; a seed of ours gives others there."""
    op = at.op
    if at.given(0) is not None:
        raise at.refuse("its seed gives the same numbers here alone")
    zero = at.number(0, at.y)
    like = at.emit("Expand", zero, at.writer.sizes.vector(op.shape))
    if isinstance(op, RandomUniform):
        return at.emit("RandomUniformLike", like, low=op.low, high=op.high)
    return at.emit("RandomNormalLike", like, mean=op.mean, scale=op.scale)
