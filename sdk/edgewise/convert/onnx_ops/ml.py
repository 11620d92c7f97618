"""Operators of ai.onnx.ml: labels, features, linear models."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import as_type, reshaped
from edgewise.convert.onnx_ops.registry import Importer, onnx_op
from edgewise.ir.graph import Value
from edgewise.ir.op import Array
from edgewise.ops.activation import Sigmoid
from edgewise.ops.binary import Add, Div, Mul, Sub
from edgewise.ops.choose import Where
from edgewise.ops.index import Gather
from edgewise.ops.logic import Equal, Greater
from edgewise.ops.lookup import LookUp, OneOf
from edgewise.ops.matmul import MatMul
from edgewise.ops.order import Argmax
from edgewise.ops.reduce import ReduceL1, ReduceL2, ReduceMax
from edgewise.ops.shape import Concat
from edgewise.ops.softmax import Softmax
from edgewise.ops.text import texts
from edgewise.ops.unary import Isnan
from edgewise.types import DType

ml_op: Callable[..., Callable[[Importer], Importer]] = functools.partial(
    onnx_op, domain="ai.onnx.ml"
)


def floats(ctx: OpContext, name: str) -> Array:
    """A list of floats among the attributes, empty where it is left out."""
    return np.array(ctx.attribute(name, ()), np.float32)


def labels(ctx: OpContext, ints: str, strings: str) -> Array:
    """A list of labels: whole numbers or texts."""
    numbers, words = ctx.attribute(ints), ctx.attribute(strings)
    if (numbers is None) == (words is None):
        raise ctx.malformed(f"wants either {ints} or {strings}")
    return np.array(numbers, np.int64) if words is None else texts(words)


@ml_op("LabelEncoder", since=2)
def _label_encoder(ctx: OpContext) -> Value:
    names = ("tensor", "int64s", "strings", "floats")
    keys = _listed(ctx, [f"keys_{name}" for name in names])
    values = _listed(ctx, [f"values_{name}" for name in names])
    default = _default(ctx, values)
    if keys.shape != values.shape:
        raise ctx.malformed(f"has {keys.size} keys for {values.size} values")
    return _looked_up(ctx, keys, values, default)


def _listed(ctx: OpContext, names: Sequence[str]) -> Array:
    tensor, *lists = names
    found = [ctx.tensor(tensor)]
    for name, dtype in zip(lists, (np.int64, object, np.float32), strict=True):
        given = ctx.attribute(name)
        found.append(None if given is None else np.array(given, dtype))
    arrays = [array for array in found if array is not None]
    if len(arrays) != 1:
        raise ctx.malformed(f"wants one of {', '.join(names)}")
    return arrays[0].reshape(-1)


def _default(ctx: OpContext, values: Array) -> Array:
    number = ctx.attribute("default_int64", -1)
    text = ctx.attribute("default_string", "_Unused")
    fraction, tensor = (
        ctx.attribute("default_float", -0.0),
        ctx.tensor("default_tensor"),
    )
    if tensor is not None:
        return tensor.reshape(())
    plain = {"O": text, "f": fraction}.get(values.dtype.kind, number)
    return np.array(plain, values.dtype)


def _looked_up(ctx: OpContext, keys: Array, values: Array, default: Array) -> Value:
    parts = (ctx.constant(part) for part in (keys, values, default))
    return ctx.emit(LookUp(), ctx[0], *parts)


@ml_op("LabelEncoder")
def _class_index(ctx: OpContext) -> Value:
    names = texts(ctx.attribute("classes_strings", ()))
    number = np.array(ctx.attribute("default_int64", -1), np.int64)
    text = texts([ctx.attribute("default_string", "_Unused")], ())
    places = np.arange(len(names))
    if ctx[0].type.dtype is DType.STRING:
        return _looked_up(ctx, names, places, number)
    return _looked_up(ctx, places, names, text)


@ml_op("OneHotEncoder")
def _one_hot(ctx: OpContext) -> Value:
    categories = labels(ctx, "cats_int64s", "cats_strings")
    x = ctx[0]
    if categories.dtype != object:
        x = as_type(ctx, x, DType.I64)
    op = OneOf(zeros=bool(ctx.attribute("zeros", 1)))
    return ctx.emit(op, x, ctx.constant(categories))


@ml_op("ArrayFeatureExtractor")
def _extract(ctx: OpContext) -> Value:
    x, places = ctx[0], ctx[1]
    if not x.type.rank:
        raise ctx.malformed(f"its input is {x.type}; want an axis to pick from")
    count = places.type.elements
    picked = ctx.emit(Gather(x.type.rank - 1), x, reshaped(ctx, places, count))
    return reshaped(ctx, picked, 1, count) if x.type.rank == 1 else picked


@ml_op("Binarizer")
def _binarize(ctx: OpContext) -> Value:
    x = ctx[0]
    above = ctx.emit(Greater(), x, ctx.like(ctx.attribute("threshold", 0.0), x))
    return as_type(ctx, above, x.type.dtype)


@ml_op("Scaler")
def _scale(ctx: OpContext) -> Value:
    x = as_type(ctx, ctx[0], DType.F32)
    if (offset := floats(ctx, "offset")).size:
        x = ctx.emit(Sub(), x, ctx.constant(offset))
    if (scale := floats(ctx, "scale")).size:
        x = ctx.emit(Mul(), x, ctx.constant(scale))
    return x


@ml_op("Normalizer")
def _normalize(ctx: OpContext) -> Value:
    x, norm = as_type(ctx, ctx[0], DType.F32), ctx.attribute("norm", "MAX")
    op = {"MAX": ReduceMax, "L1": ReduceL1, "L2": ReduceL2}.get(norm)
    if op is None or not x.type.rank:
        raise ctx.malformed(f"norm={norm!r} of {x.type}; want MAX, L1 or L2 of rows")
    size = ctx.emit(op((x.type.rank - 1,), True), x)
    none = ctx.emit(Equal(), size, ctx.like(0, size))
    return ctx.emit(Div(), x, ctx.emit(Where(), none, ctx.like(1, size), size))


@ml_op("Imputer")
def _impute(ctx: OpContext) -> Value:
    x, fraction = ctx[0], ctx[0].type.dtype.is_float
    old = ctx.attribute("replaced_value_float", 0.0)
    whole = ctx.attribute("replaced_value_int64", 0)
    new, numbers = (
        floats(ctx, "imputed_value_floats"),
        ctx.attribute("imputed_value_int64s", ()),
    )
    values = new if fraction else np.array(numbers, np.int64)
    if not values.size:
        raise ctx.malformed(f"has no values to put into {x.type}")
    if fraction and np.isnan(old):
        missing = ctx.emit(Isnan(), x)
    else:
        missing = ctx.emit(Equal(), x, ctx.like(old if fraction else whole, x))
    fresh = ctx.constant(values.astype(x.type.dtype.numpy))
    return ctx.emit(Where(), missing, fresh, x)


@ml_op("FeatureVectorizer")
def _join(ctx: OpContext) -> Value:
    sizes, parts = ctx.attribute("inputdimensions", ()), ctx.all()
    given = tuple(part.type.shape[-1] for part in parts if part.type.rank == 2)
    if given != tuple(sizes):
        raise ctx.unsupported(
            f"cuts or fills the features {list(given)} to {list(sizes)}",
            "pad before it",
        )
    return ctx.emit(Concat(1), *(as_type(ctx, part, DType.F32) for part in parts))


@ml_op("LinearRegressor")
def _linear_regressor(ctx: OpContext) -> Value:
    targets = int(ctx.attribute("targets", 1))
    scores = _linear(ctx, targets)
    return transformed(ctx, scores, ctx.attribute("post_transform", "NONE"))


def _linear(ctx: OpContext, rows: int) -> Value:
    """``[N, rows]`` of products with the coefficients."""
    x = as_type(ctx, ctx[0], DType.F32)
    if x.type.rank == 1:
        x = reshaped(ctx, x, 1, x.type.shape[0])
    weights, offsets = floats(ctx, "coefficients"), floats(ctx, "intercepts")
    if rows < 1 or weights.size % rows or offsets.size not in (0, rows):
        raise ctx.malformed(
            f"has {weights.size} coefficients and {offsets.size} intercepts for {rows}"
        )
    columns = weights.reshape(rows, -1).T
    scores = ctx.emit(MatMul(), x, ctx.constant(columns))
    return ctx.emit(Add(), scores, ctx.constant(offsets)) if offsets.size else scores


@ml_op("LinearClassifier")
def _linear_classifier(ctx: OpContext) -> tuple[Value, Value]:
    ctx.ignore("multi_class")
    names = labels(ctx, "classlabels_ints", "classlabels_strings")
    kind = ctx.attribute("post_transform", "NONE")
    rows = max(floats(ctx, "intercepts").size, 1)
    scores = _linear(ctx, rows)
    if rows > 1:
        return named(ctx, scores, names), transformed(ctx, scores, kind)
    if len(names) != 2:
        raise ctx.unsupported("has one score, but not two classes", "give two labels")
    label = chosen(ctx, scores, 0.0, names)
    if kind == "LOGISTIC":
        scores = ctx.emit(Sigmoid(), scores)
    other = ctx.emit(Sub(), ctx.like(1, scores), scores)
    return label, ctx.emit(Concat(1), other, scores)


def named(ctx: OpContext, scores: Value, names: Array) -> Value:
    """The label of the largest score of every row."""
    if scores.type.shape[1] != len(names):
        raise ctx.malformed(f"has {len(names)} labels for {scores.type}")
    best = ctx.emit(Argmax(1, False, False), scores)
    return ctx.emit(Gather(0), ctx.constant(names), best)


def chosen(ctx: OpContext, score: Value, limit: float, names: Array) -> Value:
    """The second of two labels where the one score is above ``limit``."""
    above = ctx.emit(Greater(), score, ctx.like(limit, score))
    place = reshaped(ctx, as_type(ctx, above, DType.I64), score.type.shape[0])
    return ctx.emit(Gather(0), ctx.constant(names), place)


def transformed(ctx: OpContext, scores: Value, kind: str) -> Value:
    """Scores as ``post_transform`` has them."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return ctx.emit(Sigmoid(), scores)
    if kind == "SOFTMAX":
        return ctx.emit(Softmax(scores.type.rank - 1), scores)
    raise ctx.unsupported(
        f"has post_transform {kind!r}", "use NONE, LOGISTIC or SOFTMAX"
    )
