"""Which parameters are trained: everything, the last layers, a kind, or by name."""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.errors import ConfigError
from edgewise.ir.graph import Graph, Node, Value, Variable
from edgewise.ir.module import Module, Role
from edgewise.ops import (
    Add,
    BatchNorm,
    BatchNormFold,
    Conv,
    DepthwiseConv,
    GroupNorm,
    Gru,
    InstanceNorm,
    LayerNorm,
    Linear,
    Lstm,
    MatMul,
    RmsNorm,
    Rnn,
    ScaleShift,
)
from edgewise.passes.widen import is_narrow
from edgewise_trainer.form import statistics
from edgewise_trainer.names import INFER, PREPARE
from edgewise_trainer.task import Trainable
from edgewise_trainer.wanted import fitting, want_kinds

NORMS = (BatchNorm, BatchNormFold, LayerNorm, RmsNorm, InstanceNorm, GroupNorm)
PRODUCTS = (Linear, Conv, DepthwiseConv)
RECURRENT = (Gru, Lstm, Rnn)
LORA = "lora:"
WANT = "'all', 'last:K', 'bias', 'norm', 'lora:RANK' or a list of name patterns"
DIGITS = 9  # of a number of layers, or of a rank


def selected(module: Module, trainable: Trainable) -> tuple[str, ...]:
    """Names of the parameters to train, in the order of the model.

    Args:
        module: The model.
        trainable: ``"all"``; ``"last:K"``, the last K layers with weights; ``"bias"``,
            what is added to sums, shifts of norms included; ``"norm"``, scales and
            shifts of norms; ``"lora:RANK"``, the weights of linear layers and
            convolutions, by way of factors of that rank (``edgewise_trainer.lora``); or
            patterns of names, as a shell has them.

    Raises:
        ConfigError: It is none of these, or nothing fits.
    """
    names = candidates(module)
    if not isinstance(trainable, str):
        want_kinds("trainable", trainable, str, WANT)
        _refuse_narrow(module, trainable)
        chosen = fitting("trainable", trainable, names)
    elif trainable == "all":
        chosen = set(names)
    elif trainable.startswith("last:"):
        chosen = _last(module, _count(trainable))
    elif trainable.startswith(LORA):
        _count(trainable)
        chosen = _weights(module)
    elif trainable == "bias":
        chosen = _biases(module)
    elif trainable == "norm":
        chosen = _of_norms(module, slice(0, 2))
    else:
        raise ConfigError(f"trainable={trainable!r}: want {WANT}")
    found = tuple(name for name in names if name in chosen)
    if not found:
        raise ConfigError(f"trainable={trainable!r}: the model has no such parameter")
    return found


def lora_rank(trainable: Trainable) -> int | None:
    """The rank of the factors to train; ``None`` where parameters are trained."""
    lora = isinstance(trainable, str) and trainable.startswith(LORA)
    return _count(str(trainable)) if lora else None


def candidates(module: Module) -> list[str]:
    """Parameters that can be trained: real ones, without running statistics.

    Those that are stored in few bits are not: steps would be lost in them.
    """
    running = statistics(module)
    return [
        key
        for key, info in module.variables.items()
        if info.role is Role.PARAMETER
        and info.logical.dtype.is_float
        and not is_narrow(info)
        and key not in running
    ]


def _refuse_narrow(module: Module, patterns: Sequence[str]) -> None:
    for key, info in module.variables.items():
        if is_narrow(info) and key in patterns:
            raise ConfigError(
                f"trainable: {key!r} is stored in few bits ({info.type.dtype.numpy}); "
                "train the model before its weights are quantised"
            )


def _count(trainable: str) -> int:
    kind, _, text = trainable.partition(":")
    if not text.isdecimal() or len(text) > DIGITS or int(text) < 1:
        raise ConfigError(f"trainable={trainable!r}: want '{kind}:K' with K from 1 on")
    return int(text)


def _behind(value: Value | None, module: Module) -> set[str]:
    """Parameters that a value is made of, by way of derived variables, too."""
    if value is None:
        return set()
    prepare = module.functions.get(PREPARE)
    derived = prepare.updates if prepare is not None else {}
    found, stack, seen = set(), [value.node], set[Node]()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node.op, Variable):
            if node.op.key in derived:
                stack.append(derived[node.op.key].node)
            else:
                found.add(node.op.key)
        stack += [v.node for v in node.inputs if v is not None]
    return found


def _nodes(module: Module) -> list[Node]:
    return module.functions[INFER].nodes()


def _own(node: Node, module: Module, variables: set[Node]) -> set[str]:
    """Parameters that a node reads itself, not those of what comes before it."""
    found: set[str] = set()
    for value in node.inputs:
        if value is not None and value.node in variables:
            found |= _behind(value, module)
    return found


def _variable_only(graph: Graph) -> set[Node]:
    """Nodes that variables and constants alone decide."""
    found: set[Node] = set()
    for node in graph.nodes():
        parts = [v.node for v in node.inputs if v is not None]
        own = isinstance(node.op, Variable) or node.op.name == "constant"
        if own or (parts and all(part in found for part in parts)):
            found.add(node)
    return found


def layers(module: Module) -> list[tuple[Node, set[str]]]:
    """Nodes that compute, and the parameters that each reads itself."""
    variables = _variable_only(module.functions[INFER])
    names = set(candidates(module))
    return [
        (node, _own(node, module, variables) & names)
        for node in _nodes(module)
        if node.op.name != "constant" and not isinstance(node.op, Variable)
    ]


def _last(module: Module, count: int) -> set[str]:
    owned = [own for _, own in layers(module) if own]
    weighted = [own for own in owned if any(_rank(module, key) > 1 for key in own)]
    if len(weighted) < count:
        raise ConfigError(
            f"trainable='last:{count}': {len(weighted)} layers have weights"
        )
    first = owned.index(weighted[-count])
    return set().union(*owned[first:])


def _weights(module: Module) -> set[str]:
    """What linear layers and convolutions multiply by."""
    names = set(candidates(module))
    variables = _variable_only(module.functions[INFER])
    read = [
        value
        for node in _nodes(module)
        if isinstance(node.op, (*PRODUCTS, MatMul))
        for value in node.inputs[0 if isinstance(node.op, MatMul) else 1 : 2]
        if value is not None and value.node in variables
    ]
    behind = set().union(*(_behind(value, module) for value in read))
    return {key for key in behind & names if _rank(module, key) > 1}


def _rank(module: Module, key: str) -> int:
    return module.variables[key].logical.rank


def _is_vector(module: Module, key: str) -> bool:
    """Whether it varies along one axis at most, as a bias does."""
    shape = module.variables[key].logical.shape
    return sum(size != 1 for size in shape) <= 1


def _biases(module: Module) -> set[str]:
    found: set[str] = set()
    recurrent: set[str] = set()
    for node in _nodes(module):
        shift = node.inputs[3] if len(node.inputs) > 3 else None
        if isinstance(node.op, PRODUCTS):
            found |= _behind(shift, module)
        elif isinstance(node.op, RECURRENT):
            recurrent |= _behind(shift, module)
    for node, own in layers(module):
        found |= own if isinstance(node.op, Add) else set()
    found = {key for key in found if _is_vector(module, key)}
    found -= _of_norms(module, slice(0, 1))
    shifted = _of_norms(module, slice(1, 2))
    return (found | recurrent | shifted) & set(candidates(module))


def _of_norms(module: Module, which: slice) -> set[str]:
    """Scales (0) and shifts (1) of all norms."""
    found: set[str] = set()
    for graph in module.functions.values():
        for node in graph.nodes():
            if isinstance(node.op, NORMS):
                first = 0 if isinstance(node.op, BatchNormFold) else 1
                for value in node.inputs[first : first + 2][which]:
                    found |= _behind(value, module)
            elif isinstance(node.op, ScaleShift):
                for value in node.inputs[1:3][which]:
                    found |= _behind(value, module)
    return found & set(candidates(module))
