"""Gradients of an output of a model by its parameters, for checks and tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Graph, Value, constant
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model, logical_array
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise_trainer.autodiff import backward
from edgewise_trainer.form import trainable_form
from edgewise_trainer.parts import part
from edgewise_trainer.selection import candidates
from edgewise_trainer.step import places_of
from edgewise_trainer.wanted import want_kinds

GRADIENTS = "gradients"


def gradients(
    model: Model,
    inputs: Mapping[str, Any],
    of: str = "loss",
    wrt: Sequence[str] | None = None,
    *,
    threads: int | None = None,
) -> dict[str, Array]:
    """Gradients of one number that a model gives, as it runs in inference.

    Args:
        model: What is run; its batch norms use their running statistics.
        inputs: An array for every input, by name.
        of: Name of the output; it must have one element.
        wrt: Names of parameters; all real ones if left out.
        threads: Threads of the run; None: as a session has them.

    Returns:
        An array for each parameter, in its shape in the source model; zeros where the
        output does not depend on it.

    Raises:
        ConfigError: There is no such output or parameter, or it is not one number.
        TrainabilityError: An op between the two has no gradient.
    """
    wanted = _known(model.module, wrt)
    graph = _graph(model.module, of, wanted)
    module = part(model.module, {GRADIENTS: graph})
    config = SessionConfig(threads=threads)
    with Session(Model(module), config, function=GRADIENTS) as session:
        found = session.run(inputs)
    infos = {key: model.module.variables[key] for key in wanted}
    return {key: _logical(info, found.get(key)) for key, info in infos.items()}


def _known(module: Module, wrt: Sequence[str] | None) -> tuple[str, ...]:
    names = candidates(module)
    if wrt is None:
        return tuple(names)
    want_kinds("wrt", wrt, str, "a list of names")
    for name in wrt:
        if name not in names:
            some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise ConfigError(f"wrt: the model has no real parameter {name!r}: {some}")
    return tuple(dict.fromkeys(wrt))


def _graph(module: Module, of: str, wanted: Sequence[str]) -> Graph:
    """All inputs of the model to the gradients that are not zero."""
    graph = trainable_form(module, wanted, scales=()).graph
    if of not in graph.output_names:
        raise ConfigError(f"of={of!r}: want one of {', '.join(graph.output_names)}")
    output = graph.outputs[graph.output_names.index(of)]
    if output.type.elements != 1 or not output.type.dtype.is_float:
        raise ConfigError(f"of={of!r}: it is {output.type}; want one real number")
    places = places_of(Graph((), (output,), (of,)), wanted)
    found = backward({output: _one(output)}, list(places.values()))
    grads = {key: found[place] for key, place in places.items() if place in found}
    return Graph(graph.inputs, tuple(grads.values()), tuple(grads), {}, graph.binders)


def _one(like: Value) -> Value:
    return constant(np.ones(like.type.dims, like.type.dtype.numpy))


def _logical(info: VariableInfo, grad: Array | None) -> Array:
    """The gradient of a parameter in its shape in the source model."""
    if grad is None:
        return np.zeros(info.logical.dims, info.logical.dtype.numpy)
    return logical_array(info, grad)
