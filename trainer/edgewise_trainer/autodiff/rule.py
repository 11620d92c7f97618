"""How the gradient of an op is declared: one rule an op, in graph terms.

A family of ops has its rules in the module of ``edgewise_trainer.autodiff`` that bears
its name: those of ``edgewise.ops.binary`` in ``edgewise_trainer.autodiff.binary``.  It
is imported when the first of its ops is met.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, TypeAlias

from edgewise.errors import TrainabilityError
from edgewise.ir.graph import Inputs, Node, Value
from edgewise.ir.op import Op

# One for each input; None where the gradient is nothing: zero, or of no number.
Gradients: TypeAlias = "tuple[Value | None, ...]"


class Adjoint:
    """A node on the way back: what it read, what it made, what is known of that.

    Attributes:
        op: Its op.
        inputs: What it read; ``None`` where an optional input is absent.
        outputs: What it made.
        grads: Gradients of its outputs; ``None`` where nothing depends on one.
        wanted: Which gradients of inputs are needed.
    """

    __slots__ = ("grads", "inputs", "node", "outputs", "wanted")

    def __init__(self, node: Node, grads: Gradients, wanted: tuple[bool, ...]) -> None:
        self.node, self.grads, self.wanted = node, grads, wanted
        self.inputs: Inputs = node.inputs
        self.outputs = tuple(Value(node, index) for index in range(len(node.types)))

    @property
    def op(self) -> Any:
        """The op, with the attributes of its class."""
        return self.node.op

    @property
    def x(self) -> Value:
        """The first input."""
        return self.input(0)

    @property
    def y(self) -> Value:
        """The first output."""
        return self.outputs[0]

    @property
    def dy(self) -> Value:
        """The gradient of the first output."""
        if self.grads[0] is None:
            raise self.refuse("nothing depends on its first output, but on others")
        return self.grads[0]

    def input(self, index: int) -> Value:
        """An input that is there."""
        found = self.inputs[index]
        if found is None:
            raise self.refuse(f"its input {index} is absent")
        return found

    def refuse(self, why: str) -> TrainabilityError:
        """The error for a form without a gradient; the rule raises it."""
        return no_gradient(self.node, why)


Rule: TypeAlias = Callable[[Adjoint], Gradients]
_RULES: dict[type[Op], Rule] = {}
_asked: set[str] = set()


def gradient(*ops: type[Op]) -> Callable[[Rule], Rule]:
    """Declare the gradient of ops.

    The rule gives as many values as the node has inputs; those that nobody wants are
    dropped, so it need not look which are.
    """

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


def rules() -> dict[type[Op], Rule]:
    """Those that are known so far: a family is imported when it is met."""
    return dict(_RULES)


def has_gradient(op: type[Op]) -> bool:
    """Whether there is a rule for an op; a form of it may still be refused."""
    return _find(op) is not None


def apply(adjoint: Adjoint) -> Gradients:
    """Gradients of the inputs of a node.

    Raises:
        TrainabilityError: The op, or this form of it, has no gradient.
    """
    rule = _find(type(adjoint.op))
    if rule is None:
        raise no_gradient(adjoint.node, "")
    return rule(adjoint)


def no_gradient(node: Node, why: str) -> TrainabilityError:
    """The error that names a node."""
    name = f" {node.label!r}" if node.label else ""
    return TrainabilityError(
        f"{onnx_name(node.op)}{name} has no gradient{f': {why}' if why else ''}; "
        "train only what comes behind it (trainable='last:1', or names), or take it "
        "out of the model"
    )


def onnx_name(op: Op) -> str:
    """The op as its users write it."""
    return "".join(part.capitalize() for part in op.name.split("_"))


def _find(op: type[Op]) -> Rule | None:
    family = op.__module__.rpartition(".")[2]
    if op not in _RULES and family not in _asked:
        _asked.add(family)
        module = f"edgewise_trainer.autodiff.{family}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
    return _RULES.get(op)
