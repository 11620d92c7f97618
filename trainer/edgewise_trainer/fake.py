"""Training that knows of bytes: weights and images rounded as int8 kernels see them.

Numbers are rounded in float32 and gradients pass straight through, but where an image
lies outside its range (Jacob et al., 2018).  Weights have the scales that quantisation
gives them, made anew in every step; ranges of images are running averages of the ends
of batches, held beside the parameters as statistics.  Or both are learned: they begin
so, ranges with the first batch, and steps are trained.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
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
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.ops import (
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
    Round,
    StraightThrough,
    Sub,
    Where,
)
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.grid import LEAST, LEVELS
from edgewise.quant.observe import RATE
from edgewise.quant.quantize import chosen_sites, quantize_within
from edgewise.quant.sites import RESIDUAL, Sites, between, is_move, moved_by
from edgewise.types import DType, TensorType
from edgewise_trainer.byte_weights import (
    first_steps,
    steps_by_channel,
    whole_weight,
)
from edgewise_trainer.form import dependent
from edgewise_trainer.names import INFER
from edgewise_trainer.rounding import (
    HEAD,
    LOG,
    begun_steps,
    found_steps,
    held_with,
    learned,
    plain,
    rounded,
    statistic,
)
from edgewise_trainer.terms import scalar

_SCALAR = TensorType(DType.F32, ())
ENDS = ("low", "high")


class _Ends(NamedTuple):
    """The least and the largest number of something."""

    low: Value
    high: Value


def begun(model: Model, config: QuantizeConfig) -> Model:
    """The model with ranges of images among its variables, zeros where they are new.

    Raises:
        ConfigError: Nothing in it can run over bytes.
    """
    faking = _Faking(model.module, config)
    learns = (LOG,) if config.learn_steps else ()
    found = [
        statistic(_key(index, what), np.zeros((), np.float32))
        for index, _ in enumerate(faking.own)
        for what in (*ENDS, *learns)
    ]
    for info in faking.weights if learns else ():
        found += begun_steps(info.key, first_steps(info, config))
    return held_with(model, found)


def rounding(
    module: Module, config: QuantizeConfig, trained: Collection[str]
) -> Module:
    """The module with weights and images rounded; its ranges follow what it sees.

    Where steps are learned, those of weights that are trained are, and of images that
    depend on such.
    """
    faking = _Faking(module, config, trained if config.learn_steps else ())
    graph = module.functions[INFER].rebuild(faking.visit)
    updates = {**graph.updates, **faking.updates}
    names = graph.output_names
    whole = Graph(graph.inputs, graph.outputs, names, updates, graph.binders)
    return module.with_function(INFER, whole)


def exported(model: Model, config: QuantizeConfig) -> Model:
    """The int8 model, by the ranges that training found.

    Raises:
        ConfigError: No step has been done: there are none.
    """
    module = model.module
    faking = _Faking(module, config)
    found = [
        tuple(_number(module, index, what) for what in ENDS)
        for index, _ in enumerate(faking.own)
    ]
    if any(low == high == 0 for low, high in found):
        raise ConfigError("quantize: images have no ranges yet; want a step first")
    ranges = {}
    for value in faking.wanted:
        sources = faking.sources(value)
        times = math.exp(_number(module, sources[0], LOG))
        low = min(found[source][0] for source in sources)
        high = max(found[source][1] for source in sources)
        ranges[value] = low * times, high * times
    steps = {}
    for info in faking.weights:
        known = found_steps(info.key, module)
        if known is not None:
            steps[info.key] = steps_by_channel(info, known)
    return quantize_within(plain(model), ranges, config, steps)


class _Faking:
    """One walk over a graph.

    Attributes:
        weights: Those of the layers.
        wanted: The values that become bytes, in order.
        own: Those among them that no move of others makes: they have a range each.
        updates: New ends of the ranges, by name.
    """

    def __init__(
        self, module: Module, config: QuantizeConfig, learned: Collection[str] = ()
    ) -> None:
        graph, self._config = module.functions[INFER], config
        self._module, self._learned = module, frozenset(learned)
        self._moves = dependent(graph, self._learned)
        sites: Sites = chosen_sites(graph, module.variables, config)
        self._layers = set(sites.layers)
        infos = [module.variables[sites.names[node]] for node in sites.layers]
        self.weights = list({info.key: info for info in infos}.values())
        bytes_ = sites.of(sites.layers, graph)
        self.wanted = [value for value in sites.values if value in bytes_]
        moved = {v for v in self.wanted if is_move(v.node)}
        own = {v for v in moved if not bytes_.intersection(moved_by(v.node))}
        self.own = [v for v in self.wanted if v not in moved or v in own]
        self._numbers = {value: index for index, value in enumerate(self.own)}
        self._shared = _shared(self.wanted)
        self._made: dict[Value, Value] = {}
        self.updates: dict[str, Value] = {}

    def sources(self, value: Value) -> list[int]:
        """Numbers of the values whose ranges make up that of one."""
        group = self._shared[value]
        return [
            number for v, number in self._numbers.items() if self._shared[v] == group
        ]

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
        return range(len(between(node))) if Value(node) in self._shared else ()

    def _rounded(self, old: Value | None, new: Value | None) -> Value | None:
        """A value as bytes have it, if it becomes some; once, whoever reads it."""
        if old is None or new is None or old not in self._numbers:
            return new
        if old not in self._made:
            self._made[old] = self._image(old, new)
        return self._made[old]

    def _image(self, old: Value, x: Value) -> Value:
        number, numbers = self._numbers[old], self.sources(old)
        learns = any(self.own[n].node in self._moves for n in numbers)
        axes = tuple(range(x.type.rank))
        seen = _Ends(*(op(axes, keepdims=False)(x) for op in (ReduceMin, ReduceMax)))
        own = _held(number)
        new = Equal()(own.low, own.high)  # both zero: no batch was seen
        for what, kept, end in zip(ENDS, own, seen, strict=True):
            follows = Mul()(Sub()(end, kept), scalar(RATE, kept))
            goes_on = kept if learns else Add()(kept, follows)
            self.updates[_key(number, what)] = Where()(new, end, goes_on)
        low, high = _held(numbers[0])
        for other in map(_held, numbers[1:]):
            low, high = Minimum()(low, other.low), Maximum()(high, other.high)
        known = _Ends(Where()(new, seen.low, low), Where()(new, seen.high, high))
        grid = _grid(known, symmetric=bool(self._config.symmetric))
        if learns:
            log = variable_value(_key(numbers[0], LOG), _SCALAR)
            count = math.prod(n for n in x.type.shape[1:] if isinstance(n, int))
            grid = grid._replace(step=learned(grid.step, log, count, LEVELS))
        return grid.rounded(x)

    def _weight(self, weight: Value | None) -> Value:
        assert weight is not None and isinstance(weight.op, Variable)  # noqa: S101, PT018 - as sites have it
        key = weight.op.key
        learning = self._module if key in self._learned else None
        return whole_weight(weight, self._module.variables[key], self._config, learning)


class _Grid(NamedTuple):
    """What ``quant.grid`` lays over a range: a step, and how many lie below zero.

    Neither has a gradient.
    """

    step: Value
    zero: Value

    def rounded(self, x: Value) -> Value:
        """The nearest numbers on it."""
        least, most = Neg()(self.zero), Sub()(scalar(LEVELS, x), self.zero)
        return rounded(
            x, self.step, lambda level: Minimum()(Maximum()(level, least), most)
        )


def _grid(ends: _Ends, *, symmetric: bool) -> _Grid:
    nothing = scalar(0.0, ends.low)
    low, high = Minimum()(ends.low, nothing), Maximum()(ends.high, nothing)
    if symmetric:
        high = Maximum()(Neg()(low), high)
        step = Mul()(high, scalar(1 / 127, high))
    else:
        step = Mul()(Sub()(high, low), scalar(1 / LEVELS, high))
    step = Maximum()(step, scalar(LEAST, step))
    zero = scalar(128.0, step)
    if not symmetric:
        zero = Clip(0.0, float(LEVELS))(Round()(Neg()(Div()(low, step))))
    return _Grid(StraightThrough()(step), StraightThrough()(zero))


def _held(number: int) -> _Ends:
    """The range of a value, as it was before the step."""
    return _Ends(*(variable_value(_key(number, what), _SCALAR) for what in ENDS))


def _number(module: Module, number: int, what: str) -> float:
    """What is held of a value; 0 where nothing is."""
    info = module.variables.get(_key(number, what))
    return 0.0 if info is None or info.initial is None else float(info.initial)


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


def _key(number: int, what: str) -> str:
    return f"{HEAD}{number}/{what}"
