"""Products of bits in place of layers of binary weights that read signs."""

from __future__ import annotations

import math

import numpy as np

from edgewise.compress.signs import signs_read, weight_of, with_graph
from edgewise.compress.weights import logical
from edgewise.errors import ConfigError
from edgewise.ir.graph import (
    Constant,
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Coding, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import INFER, Model
from edgewise.ops.binary import Add, Mul
from edgewise.ops.bit_products import BitConv, BitLinear, SignBits, words_of
from edgewise.ops.conv import Conv
from edgewise.ops.matmul import Linear
from edgewise.ops.pack import PackPanels, output_axis
from edgewise.types import DType, TensorType

PREPARE = "prepare"


def pack_binary(model: Model) -> Model:
    """The model with products of bits where layers of binary weights read signs.

    They count the bits that differ, 32 at a time, and are exact.  Such a model runs; it
    is trained before.

    Raises:
        ConfigError: It has no such layers.
    """
    packing = _Packing(model)
    graph = model.module.functions[INFER].rebuild(packing.visit)
    if not packing.layers:
        raise ConfigError(
            "pack_binary: got a model without layers of binary weights that read signs;"
            " binarize(model, activations=True) makes some"
        )
    return with_graph(model, graph, packing.variables, packing.updates)


class _Packing:
    """One walk over a graph.

    Attributes:
        layers: How many products of bits there are.
        variables: All variables.
        updates: What ``prepare`` computes.
    """

    def __init__(self, model: Model) -> None:
        self._model, self.layers = model, 0
        prepare = model.module.functions.get(PREPARE)
        self.updates = {} if prepare is None else dict(prepare.updates)
        self.variables = dict(model.module.variables)
        self._bits: dict[Value, Value] = {}

    def visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        """The node, over bits where it can be."""
        found = signs_read(node, (*inputs, None)[0])
        key = weight_of(node)
        if found is None or key is None or not self._is_binary(key):
            return with_inputs(node, inputs)
        real, pads = found
        size, weight = self._packed(key)
        bits = self._bits.setdefault(real, SignBits()(real))
        _, _, scale, shift, residual = (*inputs, None, None, None)[:5]
        count = math.prod(self._model.module.variables[key].logical.dims) // len(size)
        factor, moved = self._ends(key, size, count, scale, shift)
        op = _over_bits(node, len(size), pads)
        self.layers += 1
        return op.node(bits, weight, factor, moved, residual, label=node.label)

    def _is_binary(self, key: str) -> bool:
        info = self._model.module.variables[key]
        if info.coding is not Coding.BINARY or not isinstance(info.packing, PackPanels):
            return False
        rows = np.abs(_rows(logical(self._model, key), output_axis(info.packing)))
        return bool((rows == rows[:, :1]).all())

    def _packed(self, key: str) -> tuple[Array, Value]:
        """The size of each channel, and the variable of the signs."""
        info, weight = self._model.module.variables[key], logical(self._model, key)
        size = np.abs(_rows(weight, output_axis(info.packing)))[:, 0]
        inputs = 1 if weight.ndim == 4 else 1 - output_axis(info.packing)
        last = np.moveaxis(weight < 0, inputs, -1)
        words = np.ascontiguousarray(np.moveaxis(words_of(last), -1, inputs))
        assert isinstance(info.packing, PackPanels)  # noqa: S101 - it is binary
        stored = info.packing.reference(words)
        types = [TensorType(DType.I32, array.shape) for array in (stored, words)]
        made = VariableInfo(key, types[0], info.role, stored, types[1], info.packing)
        self.variables[key] = made
        return size, variable_value(key, made.type)

    def _ends(
        self,
        key: str,
        size: Array,
        count: int,
        scale: Value | None,
        shift: Value | None,
    ) -> tuple[Value, Value]:
        """Factors of what differs: ``(count - 2 * unequal) * size * scale + shift``."""
        each = constant((-2.0 * size).astype(np.float32))
        whole = constant((float(count) * size).astype(np.float32))
        if scale is not None:
            each, whole = (Mul()(scale, value) for value in (each, whole))
        moved = whole if shift is None else Add()(shift, whole)
        return self._held(f"{key}/each", each), self._held(f"{key}/all", moved)

    def _held(self, key: str, value: Value) -> Value:
        """A constant, or a variable that is computed once."""
        if isinstance(value.op, Constant):
            return value
        self.variables[key] = VariableInfo(key, value.type, Role.DERIVED)
        self.updates[key] = self._before_runs(value)
        return variable_value(key, value.type)

    def _before_runs(self, value: Value) -> Value:
        """A value of variables, of which those that are derived are computed first."""

        def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
            if isinstance(node.op, Variable) and node.op.key in self.updates:
                return (self.updates[node.op.key],)
            return with_inputs(node, inputs)

        return Graph((), (value,), ("y",)).rebuild(visit).outputs[0]


def _over_bits(node: Node, channels: int, pads: tuple[int, ...]) -> BitConv | BitLinear:
    op = node.op
    assert isinstance(op, Conv | Linear)  # noqa: S101 - a dense layer
    ending = op.activation, op.alpha, op.beta
    if isinstance(op, Linear):
        return BitLinear(channels, *ending)
    window = op.kernel, op.strides, pads, op.dilations, 1
    return BitConv(channels, *window, *ending)


def _rows(weight: Array, axis: int) -> Array:
    """A row for each output channel."""
    return np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
