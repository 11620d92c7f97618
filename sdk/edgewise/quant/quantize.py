"""Models to models whose layers run over bytes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.bodies import reachable
from edgewise.ir.graph import Graph, Node, Value, Variable
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import INFER, Model, want_model
from edgewise.quant.alone import Alone, weights_alone
from edgewise.quant.bias import lost_on_average
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.equalize import equalized
from edgewise.quant.factors import Factors
from edgewise.quant.grid import grid
from edgewise.quant.guard import in_order, real_layers, score_of, score_to_hold
from edgewise.quant.observe import Seen, as_batches, observed, warnings
from edgewise.quant.planes import Planes
from edgewise.quant.ranges import METHODS, Range, shared
from edgewise.quant.report import KEY, LayerReport, QuantizationReport
from edgewise.quant.rewrite import Layer, Rewrite, reads
from edgewise.quant.sensitivity import sensitivities
from edgewise.quant.sites import Sites, is_move, moved_by
from edgewise.quant.weights import as_bytes
from edgewise.wanted import fitting

logger = logging.getLogger(__name__)
PREPARE = "prepare"

Batches = Iterable[Mapping[str, Array]]


def quantize(
    model: Model, calibration: Batches | None, config: QuantizeConfig | None = None
) -> Model:
    """The model with small numbers in place of float32.

    Args:
        model: Stays as it is.
        calibration: Typical inputs, batch by batch; None where activations stay real.
        config: How.

    Returns:
        A model that runs on integer kernels; ``quantization`` tells of its layers.

    Raises:
        ConfigError: The calibration data is empty or not finite, or nothing in the
            model can be quantised.
    """
    want_model(model)
    if not isinstance(config, QuantizeConfig | None):
        raise ConfigError(f"config: got {config!r}; want a QuantizeConfig")
    config = config or QuantizeConfig()
    if config.learn_steps:
        raise ConfigError("learn_steps: steps are learned by a Trainer(quantize=...)")
    if config.activations == "float32":
        return weights_alone(model, config)
    return Quantizer(model, calibration, config).result()


def quantize_within(
    model: Model,
    ranges: Mapping[Value, Range],
    config: QuantizeConfig,
    steps: Mapping[str, Array],
) -> Model:
    """The model over bytes, by ranges of values that are known already.

    ``steps`` are those of weights that are, as ``as_bytes`` has them.

    Raises:
        ConfigError: Nothing in the model can be quantised.
    """
    seen = {value: Seen.within(*ends) for value, ends in ranges.items()}
    known = replace(config, method="minmax")  # other methods would look for more
    return Quantizer(model, None, known, seen, steps).result()


def chosen_sites(
    graph: Graph, variables: Mapping[str, VariableInfo], config: QuantizeConfig
) -> Sites:
    """Where a graph can run over bytes, without what is to stay as it is."""
    sites = Sites(graph, variables)
    keep = fitting("keep", config.keep, variables)
    sites.layers[:] = [node for node in sites.layers if sites.names[node] not in keep]
    if not sites.layers:
        raise ConfigError("quantize: got a model without layers for int8 kernels")
    return sites


class Quantizer:
    """One quantisation: what was seen, and models of any choice of layers."""

    def __init__(
        self,
        model: Model,
        calibration: Batches | None,
        config: QuantizeConfig,
        seen: Mapping[Value, Seen] | None = None,
        steps: Mapping[str, Array] | None = None,
    ) -> None:
        self._source, self._config, self._steps = model, config, steps or {}
        self._model = model = equalized(model) if config.equalize else model
        self._graph = model.module.functions[INFER]
        self.sites = chosen_sites(self._graph, model.module.variables, config)
        self._batches = as_batches(calibration)
        known = (
            observed(model, self.sites.values, self._batches) if seen is None else seen
        )
        self._seen = known
        self._ranges = self._found()
        self._factors = Factors(model)
        self._reads = reads(model.module.functions.values())
        self._made: dict[Node, Layer] = {}
        self._sensitivities: dict[Node, float] = {}
        self._warnings = warnings(known, self._batches) if seen is None else ()

    def _found(self) -> dict[Value, Range]:
        """A range for every value; those between which numbers only move share one."""
        method = METHODS[self._config.method]
        ranges = {value: method(seen) for value, seen in self._seen.items()}
        moves = [n for n in self._graph.nodes() if is_move(n) and Value(n) in ranges]
        before: dict[Value, Range] = {}
        while ranges != before:  # they only grow
            before = dict(ranges)
            for node in moves:
                ranges |= shared(ranges, Value(node), moved_by(node))
        return ranges

    def result(self) -> Model:
        """The model that was asked for."""
        evaluate, drop = self._config.evaluate, self._config.max_drop
        if evaluate is None or drop is None:
            return self.model(self.sites.layers)
        return self._guarded(evaluate, drop)

    def _guarded(self, evaluate: Callable[[Model], float], drop: float) -> Model:
        """The fastest model that scores at most ``drop`` below the source.

        Weights of eight bits are slower than those of fewer, but by far not as slow as
        layers that stay real.
        """
        source = score_to_hold(evaluate, self._source)
        ways = [self]
        if self._config.reduce_range:
            finer = replace(self._config, reduce_range=False)
            ways.append(Quantizer(self._source, self._batches, finer, self._seen))
        best = None
        for way in ways:
            real, score = way.within(evaluate, source, drop)
            if best is None or len(real) < len(best[1]):
                best = way, real, score
            if not real:
                break
        assert best is not None  # noqa: S101 - there is a way
        way, real, score = best
        over = way.without(real)
        count = f"{len(over)} of {len(self.sites.layers)} layers over bytes"
        note = f"guard: scores {score:g} with {count}, was {source:g}"
        found = way.model(over, *self._warnings, note)
        halved = way.halved(found) if real and over else found
        kept = halved is not found and score_of(evaluate, halved) >= source - drop
        return halved if kept else found

    def halved(self, model: Model) -> Model:
        """The model whose layers that stay real have weights in half, if they can."""
        config = replace(
            self._config,
            weights="float16",
            activations="float32",
            max_drop=None,
            evaluate=None,
        )
        alone, report = Alone(model, config), model.quantization
        if report is None or not alone.small:
            return model
        rows = tuple(
            row._replace(precision="float16", sqnr=alone.small[row.name].sqnr)
            if row.name in alone.small
            else row
            for row in report.layers
        )
        module = alone.model(alone.small).module
        metadata = {**module.metadata, KEY: report._replace(layers=rows).text()}
        return Model(Module(module.functions, module.variables, metadata))

    def within(
        self, evaluate: Callable[[Model], float], source: float, drop: float
    ) -> tuple[list[Node], float]:
        """The fewest layers that have to stay real, and how the rest scores."""
        scores: dict[frozenset[Node], float] = {}

        def holds(real: Sequence[Node]) -> bool:
            score = score_of(evaluate, self.model(self.without(real)))
            logger.info("%d layers real: scores %g", len(real), score)
            scores[frozenset(real)] = score
            return score >= source - drop

        real = real_layers(self._ranked, holds)
        return real, scores.get(frozenset(real), source)

    def without(self, real: Sequence[Node]) -> list[Node]:
        """All layers but some."""
        return [node for node in self.sites.layers if node not in real]

    def _ranked(self) -> list[Node]:
        """Layers, the most sensitive first."""
        if (order := self._config.order) is not None:
            return in_order(self.sites.layers, self.sites.names.__getitem__, order)
        found = sensitivities(
            self._model,
            self.sites.layers,
            lambda layer: self.model([layer]),
            self._batches,
        )
        self._sensitivities = found
        return sorted(found, key=lambda layer: -found[layer])

    def model(self, chosen: Sequence[Node], *notes: str) -> Model:
        """The model with these layers over bytes."""
        layers = {node: self._layer(node) for node in chosen}
        graph = self._rewritten(layers)
        module = self._module(graph, layers)
        report = self._report(layers, notes)
        metadata = {**module.metadata, KEY: report.text()}
        return Model(Module(module.functions, module.variables, metadata))

    def _rewritten(self, layers: Mapping[Node, Layer]) -> Graph:
        symmetric = bool(self._config.symmetric)
        if self._config.activations == "int16":
            return Planes(layers, self._ranges, symmetric).apply(self._graph)
        wanted = self.sites.of(list(layers), self._graph)
        grids = {
            value: grid(*self._ranges[value], symmetric=symmetric) for value in wanted
        }
        return Rewrite(layers, grids).apply(self._graph)

    def _layer(self, node: Node) -> Layer:
        if node not in self._made:
            self._made[node] = self._new_layer(node)
        return self._made[node]

    def _new_layer(self, node: Node) -> Layer:
        x, weight = node.inputs[:2]
        assert x is not None  # noqa: S101 - layers have an image
        assert weight is not None and isinstance(weight.op, Variable)  # noqa: S101, PT018
        info = self._model.module.variables[weight.op.key]
        paired, alone = self._config.reduce_range, self._config.per_channel
        steps = self._steps.get(weight.op.key)
        whole = as_bytes(info, paired=paired, per_channel=alone, steps=steps)
        scale, shift = (self._factors.of(v) for v in (*node.inputs, None, None)[2:4])
        if self._config.bias_correction and info.packing is not None:
            lack = lost_on_average(whole.lost, info.packing, self._seen[x].means)
            back = lack if scale is None else lack * scale
            shift = (back if shift is None else shift + back).astype(np.float32)
        if self._reads[whole.info.key] > 1:  # somebody may go on reading it as it was
            whole = whole.named(f"{whole.info.key}.int8")
        return Layer(whole, scale, shift)

    def _module(self, graph: Graph, layers: Mapping[Node, Layer]) -> Module:
        """The whole, without what nothing reads any more."""
        source = self._model.module
        # Steps of training are of the real model, and train that.
        called = [PREPARE, *reachable(source.functions, (INFER,))]
        functions = {k: g for k, g in source.functions.items() if k in called}
        functions[INFER] = graph
        variables: dict[str, VariableInfo] = dict(source.variables)
        for layer in layers.values():
            variables[layer.weight.info.key] = layer.weight.info
        prepare = functions.pop(PREPARE, None)
        read = reads(functions.values())
        if prepare is not None:
            kept = {k: v for k, v in prepare.updates.items() if read[k]}
            if kept:
                functions[PREPARE] = Graph((), (), (), kept)
        read = reads(functions.values())
        kept_variables = {k: v for k, v in variables.items() if read[k]}
        return Module(functions, kept_variables, source.metadata)

    def _report(
        self, layers: Mapping[Node, Layer], notes: Sequence[str]
    ) -> QuantizationReport:
        rows = [self._row(node, layers.get(node)) for node in self.sites.layers]
        config = self._config
        told = tuple(dict.fromkeys((*self._warnings, *notes)))
        return QuantizationReport(
            tuple(rows), config.weights, config.activations, config.method, told
        )

    def _row(self, node: Node, layer: Layer | None) -> LayerReport:
        x = node.inputs[0]
        assert x is not None  # noqa: S101 - layers have an image
        low, high = self._ranges[x]
        sample = self._seen[x].sample
        clipped = float(np.mean((sample < low) | (sample > high)))
        name, cost = self.sites.names[node], self._sensitivities.get(node)
        if layer is None:
            return LayerReport(name, "float32", np.inf, low, high, 0.0, cost)
        sqnr = layer.weight.sqnr
        return LayerReport(
            name, self._config.activations, sqnr, low, high, clipped, cost
        )
