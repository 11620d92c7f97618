"""Models to models whose layers run over bytes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Constant, Graph, Node, Value, Variable
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import INFER, Model
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.grid import grid
from edgewise.quant.observe import observed
from edgewise.quant.ranges import METHODS, Range
from edgewise.quant.report import KEY, LayerReport, QuantizationReport
from edgewise.quant.rewrite import Layer, Rewrite, read_variables
from edgewise.quant.sites import MOVES, Sites, moved_by
from edgewise.quant.weights import EIGHT, SEVEN, as_bytes
from edgewise.runtime.session import Session

logger = logging.getLogger(__name__)
PREPARE = "prepare"
FEW = 2  # batches; fewer say little about ranges

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
    config = config or QuantizeConfig()
    return Quantizer(model, calibration, config).result()


class Quantizer:
    """One quantisation: what was seen, and models of any choice of layers."""

    def __init__(
        self, model: Model, calibration: Batches | None, config: QuantizeConfig
    ) -> None:
        self._model, self._config = model, config
        self._graph = model.module.functions[INFER]
        self.sites = Sites(self._graph, model.module.variables)
        self.sites.layers[:] = [n for n in self.sites.layers if not self._kept(n)]
        if not self.sites.layers:
            raise ConfigError("quantize: got a model without layers for int8 kernels")
        self._seen = observed(model, self.sites.values, calibration or ())
        self._ranges = self._found()
        with Session(model) as session:
            self._arrays = {
                key: np.array(session.variables[key])
                for key, info in model.module.variables.items()
                if info.initial is None
            }

    def _kept(self, node: Node) -> bool:
        name = self.sites.names[node]
        return any(fnmatchcase(name, pattern) for pattern in self._config.keep)

    def _found(self) -> dict[Value, Range]:
        """A range for every value; those between which numbers only move share one."""
        method = METHODS[self._config.method]
        ranges = {value: method(seen) for value, seen in self._seen.items()}
        for node in self._graph.nodes():
            if isinstance(node.op, MOVES) and Value(node) in ranges:
                group = [v for v in (*moved_by(node), Value(node)) if v in ranges]
                low = min(ranges[value][0] for value in group)
                high = max(ranges[value][1] for value in group)
                ranges |= dict.fromkeys(group, (low, high))
        return ranges

    def result(self) -> Model:
        """The model that was asked for."""
        return self.model(self.sites.layers)

    def model(self, chosen: Sequence[Node]) -> Model:
        """The model with these layers over bytes."""
        wanted = self.sites.of(chosen, self._graph)
        symmetric = bool(self._config.symmetric)
        grids = {
            value: grid(*self._ranges[value], symmetric=symmetric) for value in wanted
        }
        layers = {node: self._layer(node) for node in chosen}
        graph = Rewrite(layers, grids).apply(self._graph)
        module = self._module(graph, layers)
        report = self._report(layers)
        metadata = {**module.metadata, KEY: report.text()}
        return Model(Module(module.functions, module.variables, metadata))

    def _layer(self, node: Node) -> Layer:
        weight = node.inputs[1]
        assert weight is not None and isinstance(weight.op, Variable)  # noqa: S101, PT018
        info = self._model.module.variables[weight.op.key]
        limit, bits = (SEVEN, 7) if self._config.reduce_range else (EIGHT, 8)
        whole = as_bytes(info, limit=limit, per_channel=self._config.per_channel)
        scale, shift = (self._array(v) for v in (*node.inputs, None, None)[2:4])
        return Layer(whole, scale, shift, bits)

    def _array(self, value: Value | None) -> Array | None:
        """What a factor of an epilogue is."""
        if value is None:
            return None
        if isinstance(value.op, Constant):
            return value.op.array
        if not isinstance(value.op, Variable):
            raise ConfigError(f"quantize: {value}: want a variable or a constant")
        initial = self._model.module.variables[value.op.key].initial
        return self._arrays[value.op.key] if initial is None else initial

    def _module(self, graph: Graph, layers: Mapping[Node, Layer]) -> Module:
        """The whole, without what nothing reads any more."""
        source = self._model.module
        functions = {**source.functions, INFER: graph}
        variables: dict[str, VariableInfo] = dict(source.variables)
        for layer in layers.values():
            variables[layer.weight.info.key] = layer.weight.info
        prepare = functions.pop(PREPARE, None)
        read = read_variables(functions.values())
        if prepare is not None:
            kept = {k: v for k, v in prepare.updates.items() if k in read}
            if kept:
                functions[PREPARE] = Graph((), (), (), kept)
        read |= read_variables(functions.values())
        kept_variables = {k: v for k, v in variables.items() if k in read}
        return Module(functions, kept_variables, source.metadata)

    def _report(self, layers: Mapping[Node, Layer]) -> QuantizationReport:
        rows = [self._row(node, layers.get(node)) for node in self.sites.layers]
        batches = max((seen.batches for seen in self._seen.values()), default=0)
        notes = []
        if batches < FEW:
            notes.append(f"calibration had {batches} batch: ranges may be too narrow")
        constant = [v for v, seen in self._seen.items() if seen.low == seen.high]
        notes += [
            f"{v.node.label or v.op.name} never changed: {self._seen[v].low:g}"
            for v in constant
        ]
        for note in notes:
            logger.warning("%s", note)
        config = self._config
        return QuantizationReport(
            tuple(rows), config.weights, config.activations, config.method, tuple(notes)
        )

    def _row(self, node: Node, layer: Layer | None) -> LayerReport:
        x = node.inputs[0]
        assert x is not None  # noqa: S101 - layers have an image
        low, high = self._ranges[x]
        sample = self._seen[x].sample
        clipped = float(np.mean((sample < low) | (sample > high)))
        name = self.sites.names[node]
        if layer is None:
            return LayerReport(name, "float32", np.inf, low, high, 0.0)
        return LayerReport(name, "int8", layer.weight.sqnr, low, high, clipped)
