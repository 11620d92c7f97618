"""Numbers rounded to whole steps in training, and steps that are learned.

A step is ``first * exp(log)``: where it began, and what training made of that, so that
it stays above 0 and optimizers which give all gradients one size move it by shares of
itself.  Plain descent moves the step as if it were the parameter (Esser et al., 2020),
by a share of the learning rate at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from edgewise.ir.graph import Value, Variable, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.ops import Clip, Div, Exp, Maximum, Mul, Round, StraightThrough
from edgewise.types import DType, TensorType
from edgewise_trainer.names import INFER
from edgewise_trainer.terms import scalar

HEAD = "quantize/"  # of the names of all that is held beside the parameters
FIRST, LOG = "first", "log"
_SQUARED = 2.0**-50  # the least step whose square divides in float32


def rounded(x: Value, step: Value, within: Callable[[Value], Value]) -> Value:
    """The nearest whole numbers of steps that there are.

    Gradients pass straight through the rounding.  That of the step is then, for each
    number, by how much rounding changed it in steps, or the end that it was held to
    (Esser et al., 2020, equation 3).
    """
    level = within(Div()(x, step))
    return Mul()(StraightThrough()(Round()(level), level), step)


def learned(first: Value, log: Value, count: int, most: int) -> Value:
    """A step that is learned.

    Args:
        first: Where it began.
        log: What is trained, of the same type.
        count: Numbers that share the step.
        most: The largest number of steps.

    Returns:
        ``first * exp(log)``.  Descent along the gradient of ``log`` moves it by ``rate
        * d loss / d step / sqrt(count * most)`` to first order.
    """
    now = StraightThrough()(Mul()(first, Exp()(log)))
    share = scalar(1 / math.sqrt(max(count, 1) * most), now)
    floor = Maximum()(now, scalar(_SQUARED, now))
    followed = Mul()(log, Div()(share, Mul()(floor, floor)))
    return Mul()(first, Exp()(StraightThrough()(log, followed)))


def statistic(key: str, array: Array) -> VariableInfo:
    """What is held beside the parameters under a name."""
    type_ = TensorType(DType.of(array.dtype), array.shape)
    return VariableInfo(key, type_, Role.STATISTIC, array)


def of_weight(name: str, what: str) -> str:
    """The name of what is held for a weight; those of images have a number there."""
    return f"{HEAD}weight/{name}/{what}"


def begun_steps(name: str, first: Array) -> tuple[VariableInfo, VariableInfo]:
    """The variables of the steps of a weight, where those begin."""
    nothing = np.zeros_like(first)
    return (
        statistic(of_weight(name, FIRST), first),
        statistic(of_weight(name, LOG), nothing),
    )


def weight_steps(name: str, module: Module, count: int, most: int) -> Value:
    """The learned steps of a weight."""
    infos = [module.variables[of_weight(name, what)] for what in (FIRST, LOG)]
    first, log = (variable_value(info.key, info.type) for info in infos)
    return learned(first, log, count, most)


def found_steps(name: str, module: Module) -> Array | None:
    """What the steps of a weight are now; None where they are made anew each time."""
    infos = [module.variables.get(of_weight(name, what)) for what in (FIRST, LOG)]
    arrays = [info.initial for info in infos if info and info.initial is not None]
    return np.asarray(arrays[0] * np.exp(arrays[1])) if arrays else None


def held_with(model: Model, infos: Iterable[VariableInfo]) -> Model:
    """The model with more variables, where they are new."""
    module = model.module
    variables = {info.key: info for info in infos} | module.variables
    return Model(Module(module.functions, variables, module.metadata), model.path)


def plain(model: Model) -> Model:
    """The model without what is held for its quantisation."""
    module = model.module
    variables = {k: v for k, v in module.variables.items() if not k.startswith(HEAD)}
    return Model(Module(module.functions, variables, module.metadata), model.path)


def bounded(grads: Mapping[str, Value]) -> dict[str, Value]:
    """Gradients with those of steps held to -1 and 1, by the names of parameters.

    With many bits and few numbers the scale of the paper lets a step that numbers are
    held by leap: plain descent is to move it by shares of the learning rate.
    """
    hold = Clip(-1.0, 1.0)
    return {key: hold(g) if _is_learned(key) else g for key, g in grads.items()}


def learned_keys(module: Module) -> tuple[str, ...]:
    """Names of what is trained for steps, as far as the model reads it."""
    nodes = module.functions[INFER].nodes()
    read = [node.op.key for node in nodes if isinstance(node.op, Variable)]
    return tuple(dict.fromkeys(key for key in read if _is_learned(key)))


def _is_learned(key: str) -> bool:
    return key.startswith(HEAD) and key.endswith(f"/{LOG}")
