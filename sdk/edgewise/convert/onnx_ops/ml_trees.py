"""Operators of ai.onnx.ml that are ensembles of trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.ml import chosen, labels, ml_op, named, transformed
from edgewise.convert.onnx_ops.pieces import as_type
from edgewise.ir.graph import Value
from edgewise.ir.op import Array
from edgewise.ops.activation import Sigmoid
from edgewise.ops.binary import Add, Sub
from edgewise.ops.shape import Concat, Slice
from edgewise.ops.trees import AGGREGATES, COLUMNS, LEAF, MEMBER, Trees
from edgewise.ops.unary import Neg
from edgewise.types import DType

MODES = (
    *("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"),
    *("BRANCH_MEMBER", "LEAF"),
)
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


class _Forest(NamedTuple):
    """The arrays that ``Trees`` reads beside its rows."""

    roots: Array
    nodes: Array
    splits: Array
    members: Array
    votes: Array
    weights: Array

    def emit(self, ctx: OpContext, targets: int, aggregate: str) -> Value:
        """What the leaves say of every target."""
        x = ctx[0]
        if not x.type.dtype.is_float:
            x = as_type(ctx, x, DType.F32)
        parts = map(ctx.constant, self)
        return ctx.emit(Trees(targets, aggregate), x, *parts)


@ml_op("TreeEnsemble", since=5)
def _ensemble(ctx: OpContext) -> Value:
    ctx.ignore("nodes_hitrates")
    targets = int(ctx.attribute("n_targets", 0))
    how, post = (
        ctx.attribute("aggregate_function", 1),
        ctx.attribute("post_transform", 0),
    )
    if not 0 <= how < len(AGGREGATES) or not 0 <= post < len(TRANSFORMS):
        raise ctx.malformed(f"aggregate_function={how}, post_transform={post}")
    scores = _from_leaves(ctx).emit(ctx, targets, AGGREGATES[how])
    return transformed(ctx, scores, TRANSFORMS[post])


def _from_leaves(ctx: OpContext) -> _Forest:
    """Nodes and leaves, which the operator lists apart: leaves go behind the nodes."""
    splits, modes = ctx.tensor("nodes_splits"), ctx.tensor("nodes_modes")
    weights, votes = ctx.tensor("leaf_weights"), _ints(ctx, "leaf_targetids")
    if splits is None or modes is None or weights is None:
        raise ctx.malformed("its nodes_splits, nodes_modes or leaf_weights are missing")
    count, leaves = len(splits), len(weights)
    _want_lengths(ctx, (votes,), leaves)
    nodes = np.zeros((count + leaves, COLUMNS), np.int64)
    columns = [_ints(ctx, "nodes_featureids"), modes.astype(np.int64)]
    for side in ("true", "false"):
        ids, leaf = _ints(ctx, f"nodes_{side}nodeids"), _ints(ctx, f"nodes_{side}leafs")
        _want_lengths(ctx, (ids, leaf), count)
        columns.append(np.where(leaf != 0, ids + count, ids))
    columns.append(_ints(ctx, "nodes_missing_value_tracks_true", count))
    _want_lengths(ctx, columns, count)
    nodes[:count, : len(columns)] = np.stack(columns, 1)
    nodes[count:, 1] = LEAF
    nodes[count:, 5], nodes[count:, 6] = np.arange(leaves), np.arange(1, leaves + 1)
    members = _members(ctx, nodes, splits.dtype)
    wide = np.concatenate([splits, np.zeros(leaves, splits.dtype)])
    roots = _ints(ctx, "tree_roots")
    return _Forest(roots, nodes, wide, members, votes, weights)


def _members(ctx: OpContext, nodes: Array, dtype: Any) -> Array:
    """The members of all sets; their ranges go into the nodes that ask for them."""
    given = ctx.tensor("membership_values")
    values = np.zeros(0, dtype) if given is None else given
    asking = np.nonzero(nodes[:, 1] == MEMBER)[0]
    ends = np.nonzero(np.isnan(values))[0]
    if len(values) and not np.isnan(values[-1]):
        ends = np.append(ends, len(values))
    if len(ends) != len(asking):
        raise ctx.malformed(f"has {len(ends)} sets for {len(asking)} nodes that ask")
    nodes[asking, 5], nodes[asking, 6] = np.append(0, ends + 1)[: len(ends)], ends
    return values


def _ints(ctx: OpContext, name: str, count: int = 0) -> Array:
    given = ctx.attribute(name)
    return np.zeros(count, np.int64) if given is None else np.array(given, np.int64)


def _want_lengths(ctx: OpContext, arrays: Sequence[Array], count: int) -> None:
    if any(array.shape != (count,) for array in arrays):
        lengths = [len(array) for array in arrays]
        raise ctx.malformed(f"its lists have {lengths} entries; want {count}")


@ml_op("TreeEnsembleRegressor")
def _regressor(ctx: OpContext) -> Value:
    targets, how = (
        int(ctx.attribute("n_targets", 1)),
        ctx.attribute("aggregate_function", "SUM"),
    )
    scores = _from_tuples(ctx, "target").emit(ctx, targets, how)
    scores = _based(ctx, as_type(ctx, scores, DType.F32), targets)
    return transformed(ctx, scores, ctx.attribute("post_transform", "NONE"))


@ml_op("TreeEnsembleClassifier")
def _classifier(ctx: OpContext) -> tuple[Value, Value]:
    names = labels(ctx, "classlabels_int64s", "classlabels_strings")
    forest, kind = _from_tuples(ctx, "class"), ctx.attribute("post_transform", "NONE")
    scores = forest.emit(ctx, len(names), "SUM")
    scores = _based(ctx, as_type(ctx, scores, DType.F32), len(names))
    if len(names) != 2 or set(forest.votes.tolist()) != {0}:
        return named(ctx, scores, names), transformed(ctx, scores, kind)
    return _one_score(ctx, forest, scores, names, kind)


def _one_score(
    ctx: OpContext, forest: _Forest, scores: Value, names: Array, kind: str
) -> tuple[Value, Value]:
    """Two classes, one score: a probability if no vote is negative, else a margin."""
    starts, sizes = (0, 0), (scores.type.shape[0], 1)
    score = ctx.emit(Slice(starts, sizes, (1, 1)), scores)
    positive = bool((forest.weights >= 0).all())
    label = chosen(ctx, score, 0.5 if positive else 0.0, names)
    if kind not in TRANSFORMS[:3]:
        raise ctx.unsupported(f"has post_transform {kind!r}", "use NONE or LOGISTIC")
    if positive and kind != "LOGISTIC":
        other = ctx.emit(Sub(), ctx.like(1, score), score)
    else:
        other = ctx.emit(Neg(), score)
    both = ctx.emit(Concat(1), other, score)
    return label, ctx.emit(Sigmoid(), both) if kind == "LOGISTIC" else both


def _based(ctx: OpContext, scores: Value, targets: int) -> Value:
    base = _numbers(ctx, "base_values")
    if not base.size:
        return scores
    if base.size not in (1, targets):
        raise ctx.malformed(f"has {base.size} base values for {targets} targets")
    return ctx.emit(Add(), scores, ctx.constant(base.astype(np.float32)))


def _numbers(ctx: OpContext, name: str) -> Array:
    """Floats, or a tensor of doubles in their place."""
    given, tensor = ctx.attribute(name, ()), ctx.tensor(f"{name}_as_tensor")
    return np.array(given, np.float32) if tensor is None else tensor.reshape(-1)


def _from_tuples(ctx: OpContext, prefix: str) -> _Forest:
    """Nodes and votes that carry the numbers of their tree and of themselves."""
    ctx.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    trees, ids = _ints(ctx, "nodes_treeids"), _ints(ctx, "nodes_nodeids")
    splits, words = _numbers(ctx, "nodes_values"), ctx.attribute("nodes_modes", ())
    count = len(splits)
    if unknown := set(words) - set(MODES):
        raise ctx.malformed(f"has nodes of the modes {sorted(unknown)}")
    modes = np.array([MODES.index(word) for word in words], np.int64)
    missing = _ints(ctx, "nodes_missing_value_tracks_true", count)
    features = _ints(ctx, "nodes_featureids")
    sides = [_ints(ctx, f"nodes_{side}nodeids") for side in ("true", "false")]
    _want_lengths(ctx, (trees, ids, modes, missing, features, *sides), count)
    pairs = zip(trees.tolist(), ids.tolist(), strict=True)
    places = {pair: at for at, pair in enumerate(pairs)}
    nodes = np.zeros((count, COLUMNS), np.int64)
    nodes[:, 0], nodes[:, 1], nodes[:, 4] = features, modes, missing
    inner = modes != LEAF
    for column, side in zip((2, 3), sides, strict=True):
        nodes[inner, column] = _found(ctx, places, trees[inner], side[inner])
    votes, weights = _votes(ctx, prefix, places, nodes)
    roots = np.unique(trees, return_index=True)[1]
    members = np.zeros(0, splits.dtype)
    return _Forest(np.sort(roots), nodes, splits, members, votes, weights)


def _found(
    ctx: OpContext, places: dict[tuple[int, int], int], trees: Array, ids: Array
) -> list[int]:
    pairs = list(zip(trees.tolist(), ids.tolist(), strict=True))
    if lost := [pair for pair in pairs if pair not in places]:
        raise ctx.malformed(f"names node {lost[0][1]} of tree {lost[0][0]}, not there")
    return [places[pair] for pair in pairs]


def _votes(
    ctx: OpContext, prefix: str, places: dict[tuple[int, int], int], nodes: Array
) -> tuple[Array, Array]:
    """Targets and weights in the order of their leaves, whose ranges are filled in."""
    trees, ids = _ints(ctx, f"{prefix}_treeids"), _ints(ctx, f"{prefix}_nodeids")
    targets, weights = _ints(ctx, f"{prefix}_ids"), _numbers(ctx, f"{prefix}_weights")
    _want_lengths(ctx, (trees, ids, targets), len(weights))
    leaf = np.array(_found(ctx, places, trees, ids), np.int64)
    order = np.argsort(leaf, kind="stable")
    counts = np.bincount(leaf, minlength=len(nodes))
    is_leaf = nodes[:, 1] == LEAF
    ends = np.cumsum(counts)
    nodes[is_leaf, 5], nodes[is_leaf, 6] = (ends - counts)[is_leaf], ends[is_leaf]
    return targets[order], weights[order]
