"""The form of a model that can be trained: what is fused for running comes apart.

Only what depends on trained parameters changes; the rest runs as it does in inference,
batch norms by their running statistics included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgewise.dims import product
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    with_inputs,
)
from edgewise.ir.module import Module
from edgewise.ir.op import Op
from edgewise.ops import (
    Add,
    BatchNorm,
    BatchNormFold,
    BatchNormTrain,
    BatchStatistics,
    Cast,
    Clip,
    Conv,
    DepthwiseConv,
    DimValue,
    Div,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Linear,
    Maximum,
    Mish,
    Mul,
    Relu,
    ScaleShift,
    Sigmoid,
    Silu,
    Softplus,
    Sub,
    Tanh,
)
from edgewise.passes.widen import apart
from edgewise_trainer.autodiff.epilogue import TOLD_BY_RESULT
from edgewise_trainer.names import INFER, PREPARE
from edgewise_trainer.terms import scalar

PRODUCTS = (Linear, Conv, DepthwiseConv)
MOMENTUM = 0.1  # of running statistics, as ONNX and PyTorch have it by default
_ACTIVATIONS: dict[str, Callable[[float, float], Op]] = {
    "relu": lambda _a, _b: Relu(),
    "clip": Clip,
    "leaky_relu": lambda a, _b: LeakyRelu(a),
    "hard_sigmoid": HardSigmoid,
    "hard_swish": lambda _a, _b: HardSwish(),
    "sigmoid": lambda _a, _b: Sigmoid(),
    "silu": lambda _a, _b: Silu(),
    "tanh": lambda _a, _b: Tanh(),
    "gelu": lambda _a, _b: Gelu(),
    "gelu_tanh": lambda _a, _b: Gelu(approximate=True),
    "elu": lambda a, _b: Elu(a),
    "softplus": lambda _a, _b: Softplus(),
    "mish": lambda _a, _b: Mish(),
}


class Form(NamedTuple):
    """A model as it is trained.

    Attributes:
        graph: Inputs to outputs.
        statistics: New values of running means and variances, by name.
        absorbed: Biases that a batch norm in training takes away again, by name: the
            loss does not depend on them, so that their gradients are 0.
    """

    graph: Graph
    statistics: dict[str, Value]
    absorbed: dict[str, Value]


def trainable_form(
    module: Module,
    trained: Collection[str],
    scales: Collection[str] | None = None,
) -> Form:
    """The model with all apart that training ``trained`` parameters passes through.

    Args:
        module: The model.
        trained: Names of parameters.
        scales: Those among them that make a batch norm use the statistics of the batch
            if they are its scale; ``None``: all.
    """
    graph = apart(_inlined(module, trained))
    forming = _Forming(trained, trained if scales is None else scales)
    graph = graph.rebuild(forming.visit)
    return Form(graph, forming.statistics, forming.absorbed)


class Norm(NamedTuple):
    """Names of the variables of a batch norm; None: something else is in their place.

    Attributes:
        scale: What is trained of it, and makes it use the statistics of the batch.
        mean: The running mean.
        variance: The running variance.
    """

    scale: str | None
    mean: str | None
    variance: str | None


def batch_norms(module: Module) -> list[Norm]:
    """All batch norms, folded or not, in the order of the model."""
    found = []
    for graph in module.functions.values():
        for node in graph.nodes():
            if isinstance(node.op, BatchNorm | BatchNormFold):
                first = 1 if isinstance(node.op, BatchNorm) else 0
                scale, _, *running = map(_key, node.inputs[first : first + 4])
                found.append(Norm(scale, *running))
    return found


def statistics(module: Module) -> set[str]:
    """Names of the running means and variances of batch norms."""
    names = [
        name for norm in batch_norms(module) for name in (norm.mean, norm.variance)
    ]
    return {name for name in names if name is not None}


def _key(value: Value | None) -> str | None:
    """The name of a variable; None for any other value."""
    return value.op.key if value and isinstance(value.op, Variable) else None


def _inlined(module: Module, trained: Collection[str]) -> Graph:
    """``infer``, with derived variables that depend on trained ones computed in it."""
    graph = module.functions[INFER]
    prepare = module.functions.get(PREPARE)
    if prepare is None:
        return graph
    depends = dependent(prepare, trained)
    derived = {
        key: value for key, value in prepare.updates.items() if value.node in depends
    }

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Variable) and node.op.key in derived:
            return (derived[node.op.key],)
        return with_inputs(node, inputs)

    return graph.rebuild(visit)


def dependent(graph: Graph, trained: Collection[str]) -> set[Node]:
    """Nodes that depend on one of the variables, those included."""
    found: set[Node] = set()
    for node in graph.nodes():
        own = isinstance(node.op, Variable) and node.op.key in trained
        if own or any(
            value is not None and value.node in found for value in node.inputs
        ):
            found.add(node)
    return found


class _Forming:
    """One walk over a graph, which remembers what depends on trained parameters."""

    def __init__(self, trained: Collection[str], scales: Collection[str]) -> None:
        self._trained, self._scales = trained, scales
        self._depends: dict[Node, bool] = {}
        self._variables: dict[str, Value] = {}
        self.statistics: dict[str, Value] = {}
        self.absorbed: dict[str, Value] = {}

    def visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        """The node over new inputs, apart where that is needed."""
        if isinstance(node.op, Variable):  # one node each, however often it is read
            return (self._variables.setdefault(node.op.key, Value(node)),)
        if isinstance(node.op, PRODUCTS) and any(map(self._moves, inputs)):
            return (self._product(node, inputs),)
        if isinstance(node.op, BatchNorm) and self._uses_batch(inputs[1]):
            return (self._norm(node.op, inputs),)
        return with_inputs(node, inputs)

    def _moves(self, value: Value | None) -> bool:
        """Whether a value depends on trained parameters."""
        if value is None:
            return False
        stack = [value.node]
        while stack:
            node = stack[-1]
            parts = [v.node for v in node.inputs if v is not None]
            open_ = [part for part in parts if part not in self._depends]
            if open_:
                stack += open_
                continue
            own = isinstance(node.op, Variable) and node.op.key in self._trained
            self._depends[node] = own or any(self._depends[part] for part in parts)
            stack.pop()
        return self._depends[value.node]

    def _uses_batch(self, value: Value | None) -> bool:
        """Whether a batch norm of this scale uses the statistics of the batch."""
        return (
            value is not None
            and isinstance(value.op, Variable)
            and value.op.key in self._scales
        )

    def _product(self, node: Node, inputs: Inputs) -> Value:
        op: Any = node.op
        x, w, *rest = inputs
        scale, shift, residual = (*rest, None, None, None)[:3]
        told = op.activation in TOLD_BY_RESULT
        if told and not self._moves(scale):
            return with_inputs(node, inputs)[0]
        bare = op.replace(activation="none", alpha=0.0, beta=0.0)
        if scale is not None and self._moves(scale):
            sums = bare(x, w, None, None, None, label=node.label)
            if self._is_batch_norm(scale, shift):
                return self._normalised(op, sums, scale, residual)
            result = ScaleShift(sums.type.rank - 1)(sums, scale, shift)
            if residual is not None:
                result = Add()(result, residual, label=node.label)
        else:
            result = bare(x, w, scale, shift, residual, label=node.label)
        return _activated(op, result)

    def _normalised(
        self, op: Any, sums: Value, scale: Value, residual: Value | None
    ) -> Value:
        """The batch norm of sums, with what a product does behind it."""
        gamma, shift, mean, var, *bias = scale.node.inputs
        first = bias[0] if bias else None
        if first is not None and isinstance(first.op, Variable):
            self.absorbed[first.op.key] = first
        whole = residual is None or (
            op.activation in TOLD_BY_RESULT and residual.type == sums.type
        )
        named = {"eps": scale.node.op.values[0]}
        if whole:
            named |= {"activation": op.activation, "alpha": op.alpha, "beta": op.beta}
        norm = BatchNormTrain(**named)
        y, *found = norm.node(sums, gamma, shift, residual if whole else None)
        self._follow_batch(sums, sums.type.rank - 1, found, (mean, var), first)
        return y if whole else _activated(op, Add()(y, residual))

    def _is_batch_norm(self, scale: Value, shift: Value | None) -> bool:
        fold = scale.node
        whole = scale == Value(fold, 0) and shift == Value(fold, 1)
        return (
            isinstance(fold.op, BatchNormFold)
            and whole
            and self._uses_batch(fold.inputs[0])
        )

    def _norm(self, op: BatchNorm, inputs: Inputs) -> Value:
        x, gamma, beta, mean, var = inputs
        assert x is not None  # noqa: S101 - its type was inferred
        if op.axis == x.type.rank - 1:
            y, *found = BatchNormTrain(op.eps).node(x, gamma, beta, None)
        else:
            found = list(BatchStatistics(op.axis).node(x))
            scale, shift = BatchNormFold(op.eps).node(gamma, beta, *found, None)
            y = ScaleShift(op.axis)(x, scale, shift)
        self._follow_batch(x, op.axis, found, (mean, var), None)
        return y

    def _follow_batch(
        self,
        x: Value,
        axis: int,
        found: Sequence[Value],
        running: Inputs,
        bias: Value | None,
    ) -> None:
        """Let running statistics follow those of a batch.

        The running variance is that of the population as the batch lets one guess it,
        with one less in the divisor (as PyTorch keeps it).
        """
        size = product(n for j, n in enumerate(x.type.shape) if j != axis)
        seen = found[0] if bias is None else Add()(found[0], bias)
        self._follow(running[0], seen)
        self._follow(running[1], Mul()(found[1], _unbiased(size, x)))

    def _follow(self, running: Value | None, seen: Value) -> None:
        if running is None or not isinstance(running.op, Variable):
            return
        old = self.statistics.get(running.op.key, running)
        step = Mul()(Sub()(seen, old), scalar(MOMENTUM, old))
        self.statistics[running.op.key] = Add()(old, step)


def _activated(op: Any, result: Value) -> Value:
    """What a product gave up: its activation, as an op of its own."""
    if op.activation == "none":
        return result
    activation = _ACTIVATIONS[op.activation](op.alpha, op.beta)
    return activation(result)


def _unbiased(size: Any, like: Value) -> Value:
    """``n / (n - 1)`` as a scalar, and 1 where there is but one."""
    dtype = like.type.dtype
    if isinstance(size, int):
        return constant(np.asarray(size / max(size - 1, 1), dtype.numpy))
    whole = DimValue((size,), scalar=True)()
    count = Cast(dtype.value)(whole)
    one = constant(np.asarray(1.0, dtype.numpy))
    return Div()(count, Maximum()(Sub()(count, one), one))
