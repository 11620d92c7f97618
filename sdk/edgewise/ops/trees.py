"""Ensembles of decision trees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.errors import INDEX_OUT_OF_RANGE
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.checks import FLOATS, stopped, want, want_shape
from edgewise.types import DType, TensorType

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
# Codes of what a node asks of its feature; a leaf asks nothing.
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
COLUMNS = 7
FEATURE, MODE, YES, NO, MISSING, FIRST, LAST = range(COLUMNS)


class Trees(Op, name="trees"):
    """What the leaves that a row of ``x`` reaches say of every target, put together.

    Inputs: rows ``x[N, F]``; the root of every tree; nodes; the number that each node
    compares its feature with; the members of sets; targets and weights of the votes.
    A row of nodes is: feature, mode, next node if the answer is yes, if it is no,
    whether a missing feature means yes, and a range: of members for a node that asks
    for one of a set, of votes for a leaf.

    Attributes:
        targets: How many there are.
        aggregate: AVERAGE (over trees), SUM, MIN or MAX; a target without a vote is 0.
    """

    targets: int
    aggregate: str = "SUM"

    def infer(
        self,
        x: TensorType,
        roots: TensorType,
        nodes: TensorType,
        splits: TensorType,
        members: TensorType,
        votes: TensorType,
        weights: TensorType,
    ) -> TensorType:
        want(self, (x, splits, members, weights), FLOATS)
        want(self, (roots, nodes, votes), frozenset({DType.I64}))
        if not x.rank == nodes.rank == 2 or self.aggregate not in AGGREGATES:
            raise self.refuse((x, nodes), f"rows of both and one of {AGGREGATES}")
        if self.targets < 1:
            raise self.refuse((self.targets,), "one target or more")
        want_shape(self, "nodes", nodes, nodes.shape[0], COLUMNS)
        want_shape(self, "splits", splits, nodes.shape[0])
        want_shape(self, "weights", weights, *votes.shape)
        for vector in (roots, members, votes):
            if vector.rank != 1:
                raise self.refuse((vector,), "a vector")
        return weights.with_shape((x.shape[0], self.targets))

    def reference(
        self,
        x: Array,
        roots: Array,
        nodes: Array,
        splits: Array,
        members: Array,
        votes: Array,
        weights: Array,
    ) -> Array:
        self._check(x, roots, nodes, members, votes)
        at = np.broadcast_to(roots, (len(x), len(roots))).copy()
        for _ in range(len(nodes) + 1):
            inner = nodes[at, MODE] != LEAF
            if not inner.any():
                return self._voted(nodes[at], votes, weights)
            rows = np.nonzero(inner)
            here = at[rows]
            asked = x[rows[0], nodes[here, FEATURE]]
            yes = _answers(asked, nodes[here], splits[here], members)
            at[rows] = np.where(yes, nodes[here, YES], nodes[here, NO])
        raise stopped(self, INDEX_OUT_OF_RANGE)  # a tree that runs in a circle

    def _check(
        self, x: Array, roots: Array, nodes: Array, members: Array, votes: Array
    ) -> None:
        """Every index lies inside what it counts."""
        leaf = nodes[:, MODE] == LEAF
        inner = nodes[~leaf]
        pairs = (
            (roots, len(nodes)),
            (nodes[:, MODE], LEAF + 1),
            (inner[:, (YES, NO)], len(nodes)),
            (inner[:, FEATURE], x.shape[1]),
            (votes, self.targets),
            (nodes[leaf][:, (FIRST, LAST)], len(votes) + 1),
            (inner[inner[:, MODE] == MEMBER][:, (FIRST, LAST)], len(members) + 1),
        )
        if any(np.any((index < 0) | (index >= count)) for index, count in pairs):
            raise stopped(self, INDEX_OUT_OF_RANGE)

    def _voted(self, leaves: Array, votes: Array, weights: Array) -> Array:
        """``[N, targets]`` of the votes of ``leaves[N, trees, columns]``."""
        rows, trees = leaves.shape[:2]
        flat = leaves.reshape(-1, COLUMNS)
        counts = np.maximum(flat[:, LAST] - flat[:, FIRST], 0)
        owner = np.repeat(np.repeat(np.arange(rows), trees), counts)
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        which = np.repeat(flat[:, FIRST], counts) + inside
        place = owner * self.targets + votes[which]
        given = weights[which].astype(np.float64)
        start = {"MIN": np.inf, "MAX": -np.inf}.get(self.aggregate, 0.0)
        total = np.full(rows * self.targets, start)
        join = {"MIN": np.minimum, "MAX": np.maximum}.get(self.aggregate, np.add)
        join.at(total, place, given)
        if self.aggregate == "AVERAGE":
            total /= max(trees, 1)
        silent = np.bincount(place, minlength=len(total)) == 0
        total[silent] = 0
        return total.reshape(rows, self.targets).astype(weights.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        x = np.asarray([[1.2, 3.4], [-0.12, 1.66], [4.14, np.nan], [np.nan, 0]], "f4")
        nodes = np.asarray(
            [
                [0, LEQ, 1, 2, 0, 0, 0],
                [1, GT, 3, 4, 1, 0, 0],
                [0, MEMBER, 3, 4, 0, 0, 2],
                [0, LEAF, 0, 0, 0, 0, 1],
                [0, LEAF, 0, 0, 0, 1, 3],
            ]
        )
        splits = np.asarray([3.14, 2, 0, 0, 0], "f4")
        members = np.asarray([4.14, 7], "f4")
        votes, weights = np.asarray([0, 1, 0]), np.asarray([5.5, 12, -2], "f4")
        for aggregate in AGGREGATES:
            given = (x, np.asarray([0, 1]), nodes, splits, members, votes, weights)
            yield Sample(Trees(3, aggregate), given)
        none = np.zeros((0, 2), "f4")
        given = (none, np.asarray([0]), nodes, splits, members, votes, weights)
        yield Sample(Trees(2), given)


def _answers(asked: Array, nodes: Array, splits: Array, members: Array) -> Array:
    """Whether each feature satisfies its node."""
    mode = nodes[:, MODE]
    yes = np.choose(
        np.minimum(mode, NEQ),
        (
            asked <= splits,
            asked < splits,
            asked >= splits,
            asked > splits,
            asked == splits,
            asked != splits,
        ),
    )
    for index in np.nonzero(mode == MEMBER)[0]:
        first, last = nodes[index, (FIRST, LAST)]
        yes[index] = asked[index] in members[first:last]
    return np.where(np.isnan(asked), nodes[:, MISSING] == 1, yes)
