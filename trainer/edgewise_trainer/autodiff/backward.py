"""From a graph to the gradients of its values: reverse accumulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edgewise.errors import InternalError
from edgewise.ir.graph import Graph, Node, Value
from edgewise.ops import Add, Cast, Dequantize
from edgewise.types import TensorType
from edgewise_trainer.autodiff.rule import (
    Adjoint,
    Gradients,
    apply,
    no_gradient,
)


def backward(
    seeds: Mapping[Value, Value], wanted: Sequence[Value]
) -> dict[Value, Value]:
    """Gradients of ``wanted`` values of the sum of ``seeds``' products.

    Args:
        seeds: The gradient of each value that the way back starts from, such as a loss
            and a one.
        wanted: Leaves or inner values whose gradients are asked for.

    Returns:
        The gradients, of the types of the values; those that nothing depends on are
        not among them.

    Raises:
        TrainabilityError: An op between the two has no gradient.
    """
    order = _between(seeds, wanted)
    grads = _Sums(seeds)
    targets = set(wanted)
    on_path = {node for node, _ in order}
    for node, needed in reversed(order):
        known = tuple(grads.of(Value(node, i)) for i in range(len(node.types)))
        if any(grad is not None for grad in known):
            _spread(Adjoint(node, known, needed), on_path, targets, grads)
    found = ((value, grads.of(value)) for value in targets)
    return {value: grad for value, grad in found if grad is not None}


class _Sums:
    """What has been found of the gradient of each value, summed up when asked for.

    Terms are added in the order of the way back, which the graph alone decides.
    """

    def __init__(self, seeds: Mapping[Value, Value]) -> None:
        self._terms: dict[Value, list[Value]] = {v: [g] for v, g in seeds.items()}

    def add(self, value: Value, grad: Value) -> None:
        """One more reader's share."""
        self._terms.setdefault(value, []).append(grad)

    def of(self, value: Value) -> Value | None:
        """The whole gradient."""
        terms = self._terms.get(value)
        if not terms:
            return None
        total = terms[0]
        for term in terms[1:]:
            total = Add()(total, term)
        self._terms[value] = [total]
        return total


def _spread(
    adjoint: Adjoint, on_path: set[Node], targets: set[Value], grads: _Sums
) -> None:
    """Hand the gradients of a node on to its inputs."""
    for value, grad in zip(adjoint.inputs, _applied(adjoint), strict=True):
        if value is None or grad is None:
            continue
        if value.node not in on_path and value not in targets:
            continue
        if grad.type.rank != value.type.rank or grad.type.dtype != value.type.dtype:
            raise InternalError(f"{adjoint.node}: a gradient {grad.type} of {value}")
        grads.add(value, grad)


def _applied(adjoint: Adjoint) -> Gradients:
    found = apply(adjoint)
    if len(found) != len(adjoint.inputs):
        raise InternalError(f"{adjoint.node}: {len(found)} gradients")
    return found


def _between(
    seeds: Iterable[Value], wanted: Sequence[Value]
) -> list[tuple[Node, tuple[bool, ...]]]:
    """Nodes from ``wanted`` to ``seeds`` in order, and which inputs lie on the way."""
    targets = set(wanted)
    reached: set[Node] = set()
    jumps: dict[Node, Node] = {}
    order = []
    roots = tuple(seeds)
    graph = Graph((), roots, tuple(map(str, range(len(roots)))))
    for node in graph.nodes():
        depends = tuple(
            value is not None and (value in targets or value.node in reached)
            for value in node.inputs
        )
        _refuse_jump(node, depends, jumps)
        needed = tuple(
            value is not None and depending and _differentiable(value)
            for value, depending in zip(node.inputs, depends, strict=True)
        )
        if any(depends):
            reached.add(node)
        if any(needed):
            order.append((node, needed))
    return order


def _refuse_jump(
    node: Node, depends: tuple[bool, ...], jumps: dict[Node, Node]
) -> None:
    """Raise where whole numbers or truths that jump become real numbers again.

    ``jumps`` knows where each of them began.  To choose by them is no jump: the parts
    that are chosen have gradients.
    """
    steps = [
        value
        for value, depending in zip(node.inputs, depends, strict=True)
        if value is not None and depending and not _differentiable(value)
    ]
    origin = jumps.get(steps[0].node, steps[0].node) if steps else node
    if (
        steps
        and isinstance(node.op, Cast | Dequantize)
        and _differentiable(Value(node))
    ):
        raise no_gradient(origin, "its result jumps")
    if any(depends) and not _differentiable(Value(node)):
        jumps[node] = origin


def _differentiable(value: Value) -> bool:
    """Whether a value is made of real numbers: no other has a gradient."""
    return isinstance(value.kind, TensorType) and value.kind.dtype.is_float
