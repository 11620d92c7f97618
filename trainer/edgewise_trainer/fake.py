"""Training that knows of bytes: weights and images rounded as int8 kernels see them.

Numbers are rounded in float32 and gradients pass straight through, but where an image
lies outside its range (Jacob et al., 2018).  Weights have the scales that quantisation
gives them, made anew in every step; ranges of images are running averages of the ends
of batches, held beside the parameters as statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.model import Model
from edgewise.ops import (
    Abs,
    Add,
    Clip,
    Div,
    Equal,
    Maximum,
    Minimum,
    Mul,
    Neg,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    Reshape,
    Round,
    StraightThrough,
    Sub,
    Where,
)
from edgewise.ops.pack import PANEL, QUAD, PackPanels
from edgewise.ops.pad import Pad
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.grid import LEAST, LEVELS
from edgewise.quant.observe import RATE
from edgewise.quant.quantize import chosen_sites, quantize_within
from edgewise.quant.sites import RESIDUAL, Sites, is_move, is_sum, moved_by
from edgewise.quant.weights import MOST, PAIRED_MOST
from edgewise.types import DType, TensorType
from edgewise_trainer.names import INFER
from edgewise_trainer.terms import scalar

_SCALAR = TensorType(DType.F32, ())
_HEAD = "quantize/"


class _Ends(NamedTuple):
    """The least and the largest number of something."""

    low: Value
    high: Value


def want_trainable(config: QuantizeConfig) -> None:
    """Raise ``ConfigError`` unless training can follow a quantisation."""
    if (config.weights, config.activations) != ("int8", "int8"):
        raise ConfigError(
            f"quantize: got weights={config.weights!r}, activations="
            f"{config.activations!r}; a trainer trains for int8 of both"
        )
    if config.evaluate is not None or config.equalize or config.bias_correction:
        raise ConfigError(
            "quantize: a trainer makes up for what bytes lose by itself; want"
            " no evaluate, equalize or bias_correction"
        )


def ranged(model: Model, config: QuantizeConfig) -> Model:
    """The model with ranges of images among its variables, zeros where they are new.

    Raises:
        ConfigError: Nothing in it can run over bytes, or training cannot follow that.
    """
    want_trainable(config)
    module = model.module
    variables = dict(module.variables)
    for index, _ in enumerate(_Faking(module, config).own):
        for key in _keys(index):
            first = np.zeros((), np.float32)
            fresh = VariableInfo(key, _SCALAR, Role.STATISTIC, first)
            variables.setdefault(key, fresh)
    whole = Module(module.functions, variables, module.metadata)
    return Model(whole, model.path)


def faked(module: Module, config: QuantizeConfig) -> Module:
    """The module with weights and images rounded; its ranges follow what it sees."""
    faking = _Faking(module, config)
    graph = module.functions[INFER].rebuild(faking.visit)
    updates = {**graph.updates, **faking.updates}
    names = graph.output_names
    whole = Graph(graph.inputs, graph.outputs, names, updates, graph.binders)
    return module.with_function(INFER, whole)


def ranges_of(module: Module) -> set[str]:
    """Names of the variables that hold ranges."""
    return {key for key in module.variables if key.startswith(_HEAD)}


def over_bytes(model: Model, config: QuantizeConfig) -> Model:
    """The int8 model, by the ranges that training found.

    Raises:
        ConfigError: No step has been done: there are none.
    """
    module = model.module
    faking, found = _Faking(module, config), {}
    for index, value in enumerate(faking.own):
        ends = [module.variables[key].initial for key in _keys(index)]
        low, high = (0.0 if end is None else float(end) for end in ends)
        if low == high == 0:
            raise ConfigError("quantize: images have no ranges yet; want a step first")
        found[value] = low, high
    ranges = {}
    for value in faking.wanted:
        own = [found[source] for source in faking.sources(value)]
        ranges[value] = min(low for low, _ in own), max(high for _, high in own)
    return quantize_within(plain(model), ranges, config)


def plain(model: Model) -> Model:
    """The model without ranges."""
    module, held = model.module, ranges_of(model.module)
    variables = {k: info for k, info in module.variables.items() if k not in held}
    return Model(Module(module.functions, variables, module.metadata), model.path)


class _Faking:
    """One walk over a graph.

    Attributes:
        wanted: The values that become bytes, in order.
        own: Those among them that no move of others makes: they have a range each.
        updates: New ends of the ranges, by name.
    """

    def __init__(self, module: Module, config: QuantizeConfig) -> None:
        graph, self._config = module.functions[INFER], config
        sites: Sites = chosen_sites(graph, module.variables, config)
        self._layers, self._infos = set(sites.layers), module.variables
        bytes_ = sites.of(sites.layers, graph)
        self.wanted = [value for value in sites.values if value in bytes_]
        moved = {v for v in self.wanted if is_move(v.node)}
        own = {v for v in moved if not bytes_.intersection(moved_by(v.node))}
        self.own = [v for v in self.wanted if v not in moved or v in own]
        self._numbers = {value: index for index, value in enumerate(self.own)}
        self._shared = _shared(self.wanted)
        self._made: dict[Value, Value] = {}
        self.updates: dict[str, Value] = {}

    def sources(self, value: Value) -> list[Value]:
        """The values whose ranges make up that of one."""
        return [v for v in self.own if self._shared[v] == self._shared[value]]

    def visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        """The node over what bytes can say."""
        read = list(inputs)
        for place in self._places(node):
            if place < len(read):
                read[place] = self._rounded(node.inputs[place], read[place])
        if node not in self._layers:
            return with_inputs(node, tuple(read))
        read[1] = self._weight(read[1])
        (result,) = with_inputs(node, tuple(read))
        return (self._rounded(Value(node), result) or result,)

    def _places(self, node: Node) -> Iterable[int]:
        """Inputs that are bytes where they can be."""
        if node in self._layers:
            return (0, RESIDUAL)
        if Value(node) not in self._shared:
            return ()
        if is_move(node):
            return range(len(moved_by(node)))
        return (0, 1) if is_sum(node) else ()

    def _rounded(self, old: Value | None, new: Value | None) -> Value | None:
        """A value as bytes have it, if it becomes some; once, whoever reads it."""
        if old is None or new is None or old not in self._numbers:
            return new
        if old not in self._made:
            self._made[old] = self._image(old, new)
        return self._made[old]

    def _image(self, old: Value, x: Value) -> Value:
        axes = tuple(range(x.type.rank))
        still = StraightThrough()(x)  # ranges have no gradient
        seen = _Ends(
            *(op(axes, keepdims=False)(still) for op in (ReduceMin, ReduceMax))
        )
        own = self._held(old)
        new = Equal()(own.low, own.high)  # both zero: no batch was seen
        for key, kept, end in zip(_keys(self._numbers[old]), own, seen, strict=True):
            step = Mul()(Sub()(end, kept), scalar(RATE, kept))
            self.updates[key] = Where()(new, end, Add()(kept, step))
        ends = [self._held(value) for value in self.sources(old)]
        low, high = ends[0]
        for other in ends[1:]:
            low, high = Minimum()(low, other.low), Maximum()(high, other.high)
        known = _Ends(Where()(new, seen.low, low), Where()(new, seen.high, high))
        return _on_grid(x, known, symmetric=bool(self._config.symmetric))

    def _held(self, value: Value) -> _Ends:
        """The range of a value, as it was before the step."""
        keys = _keys(self._numbers[value])
        return _Ends(*(variable_value(key, _SCALAR) for key in keys))

    def _weight(self, weight: Value | None) -> Value | None:
        """A weight as whole numbers times the scale of its output channel."""
        assert weight is not None and isinstance(weight.op, Variable)  # noqa: S101, PT018 - as sites have it
        info, still = self._infos[weight.op.key], StraightThrough()(weight)
        panels, steps = isinstance(info.packing, PackPanels), MOST
        if self._config.reduce_range and isinstance(info.packing, PackPanels):
            most, steps = _pair_sums(still, info, info.packing), PAIRED_MOST
        else:
            most = ReduceMax((1 if panels else 0,), keepdims=True)(Abs()(still))
        if not self._config.per_channel:
            most = ReduceMax(tuple(range(weight.type.rank)), keepdims=True)(most)
        step = Mul()(most, scalar(1 / steps, most))
        step = Maximum()(step, scalar(LEAST, step))
        rounded = Mul()(Round()(Div()(weight, step)), step)
        return StraightThrough()(rounded, weight)


def _pair_sums(w: Value, info: VariableInfo, packing: PackPanels) -> Value:
    """As those of ``quant.weights``: of panels ``[P, K, 16]``, as ``[P, 1, 16]``."""
    inner, (count, reduced, _) = info.logical.dims[packing.axes[-2]], info.type.dims
    taps, filled = reduced // inner, -(-inner // QUAD) * QUAD
    lines = Reshape((count, taps, inner, PANEL))(w)
    lines = Pad((0, 0, 0, 0, 0, 0, filled - inner, 0))(lines)
    numbers = Reshape((count, taps * filled, PANEL))(lines)
    pairs = -(-taps * filled // (2 * QUAD))
    numbers = Pad((0, 0, 0, 0, pairs * 2 * QUAD - taps * filled, 0))(numbers)
    split = Reshape((count, pairs, 2, 2, 2, PANEL))(numbers)
    nothing = scalar(0.0, split)
    sides = [
        ReduceSum((2, 4), keepdims=False)(Maximum()(side, nothing))
        for side in (split, Neg()(split))
    ]
    most = ReduceMax((1, 2), keepdims=False)(Maximum()(*sides))
    return Reshape((count, 1, PANEL))(most)


def _on_grid(x: Value, ends: _Ends, *, symmetric: bool) -> Value:
    """Numbers on the grid that ``quant.grid`` lays over a range."""
    nothing = scalar(0.0, x)
    low, high = Minimum()(ends.low, nothing), Maximum()(ends.high, nothing)
    if symmetric:
        high = Maximum()(Neg()(low), high)
        step = Mul()(high, scalar(1 / 127, x))
    else:
        step = Mul()(Sub()(high, low), scalar(1 / LEVELS, x))
    step = Maximum()(step, scalar(LEAST, x))
    zero = scalar(128.0, x)
    if not symmetric:
        zero = Clip(0.0, float(LEVELS))(Round()(Neg()(Div()(low, step))))
    level = Clip(0.0, float(LEVELS))(Add()(Round()(Div()(x, step)), zero))
    rounded = Mul()(Sub()(level, zero), step)
    least = Neg()(Mul()(zero, step))
    most = Mul()(Sub()(scalar(float(LEVELS), x), zero), step)
    least, most = StraightThrough()(least), StraightThrough()(most)  # no gradient
    return StraightThrough()(rounded, Minimum()(Maximum()(x, least), most))


def _shared(wanted: list[Value]) -> Mapping[Value, int]:
    """Values that moves join have one range: the number of that."""
    found = {value: number for number, value in enumerate(wanted)}
    for value in wanted:
        if is_move(value.node):
            met = {found[v] for v in (value, *moved_by(value.node)) if v in found}
            first = min(met)
            found = {
                v: first if number in met else number for v, number in found.items()
            }
    return found


def _keys(index: int) -> tuple[str, str]:
    return f"{_HEAD}{index}/low", f"{_HEAD}{index}/high"
