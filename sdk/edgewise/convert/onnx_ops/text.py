"""ONNX operators of strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.errors import ConfigError
from edgewise.ir.graph import Value
from edgewise.ops.automaton import compiled
from edgewise.ops.ngrams import CountNgrams
from edgewise.ops.text import (
    RegexFullMatch,
    StringConcat,
    StringNormalize,
    StringSplit,
    texts,
)


@onnx_op("StringConcat", since=20)
def _concat(ctx: OpContext) -> Value:
    return ctx.emit(StringConcat(), ctx[0], ctx[1])


@onnx_op("StringSplit", since=20)
def _split(ctx: OpContext) -> tuple[Value, ...]:
    delimiter = ctx.attribute("delimiter", "")
    limit = int(ctx.attribute("maxsplit", -1))
    (size,) = ctx.fresh(1)
    return ctx.emit_all(StringSplit(size, delimiter, limit), ctx[0])


@onnx_op("StringNormalizer", since=10)
def _normalize(ctx: OpContext) -> Value:
    ctx.ignore("locale")  # Python's own rules of case are those of every locale
    (size,) = ctx.fresh(1)
    op = StringNormalize(
        size,
        ctx.attribute("case_change_action", "NONE"),
        bool(ctx.attribute("is_case_sensitive", 0)),
        tuple(ctx.attribute("stopwords", ())),
    )
    return ctx.emit(op, ctx[0])


@onnx_op("RegexFullMatch", since=20)
def _match(ctx: OpContext) -> Value:
    pattern = ctx.attribute("pattern")
    if pattern is None:
        raise ctx.malformed("its pattern is missing")
    try:
        compiled(pattern)
    except ConfigError as error:
        fix = "write the pattern in other words before export"
        raise ctx.unsupported(str(error), fix) from error
    return ctx.emit(RegexFullMatch(pattern), ctx[0])


@onnx_op("TfIdfVectorizer", since=9)
def _tf_idf(ctx: OpContext) -> Value:
    wanted = ("min_gram_length", "max_gram_length", "max_skip_count", "ngram_counts")
    found: list[Any] = [ctx.attribute(name) for name in wanted]
    places, mode = ctx.attribute("ngram_indexes"), ctx.attribute("mode")
    if None in found or not places or mode is None:
        raise ctx.malformed(f"lacks one of {', '.join(wanted)}, ngram_indexes, mode")
    shortest, longest, skips, starts = found
    ints, strings = ctx.attribute("pool_int64s"), ctx.attribute("pool_strings")
    if (ints is None) == (strings is None):
        raise ctx.malformed("wants either pool_int64s or pool_strings")
    pool = np.array(ints, np.int64) if strings is None else texts(strings)
    weights = ctx.attribute("weights", (1.0,) * len(places))
    op = CountNgrams(tuple(starts), shortest, longest, skips, max(places) + 1, mode)
    parts = (pool, np.array(places, np.int64), np.array(weights, np.float32))
    return ctx.emit(op, ctx[0], *map(ctx.constant, parts))
