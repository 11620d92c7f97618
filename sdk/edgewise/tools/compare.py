"""Where a model's numbers go wrong: every op against its reference.

The model runs once with all its intermediate values given out.  Each op's reference is
then fed what the kernel was fed, so that a row shows the error of that op alone and not
what came down to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError, ShapeError
from edgewise.ir.graph import Constant, Graph, Input, Leaf, Node, Value, Variable
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.feeds import Inputs
from edgewise.runtime.session import Session
from edgewise.tools.text import table_text

# Of the largest magnitude in the reference: some hundred roundings of float32.
TOLERANCE = 1e-4


class Row(NamedTuple):
    """One output of one op, beside its reference.

    Attributes:
        op: Name of the op.
        name: Name of the node in the source model.
        cosine: Cosine of the angle between both, over the elements finite in both.
        max_abs: Largest absolute difference; infinite where only one of them is finite.
        finite: Whether the model's own values hold neither NaN nor infinity.
        bad: Whether they differ by more than the tolerance.
    """

    op: str
    name: str
    cosine: float
    max_abs: float
    finite: bool
    bad: bool


class Comparison(NamedTuple):
    """All rows, in the order of the run."""

    rows: tuple[Row, ...]

    @property
    def first_bad(self) -> Row | None:
        """The first op whose values differ from its reference."""
        return next((row for row in self.rows if row.bad), None)

    @property
    def first_not_finite(self) -> Row | None:
        """The first op that makes a NaN or an infinity."""
        return next((row for row in self.rows if not row.finite), None)

    def __str__(self) -> str:
        cells = [
            (
                row.op,
                row.name,
                f"{row.cosine:.7f}",
                f"{row.max_abs:.2e}",
                "yes" if row.finite else "NO",
                "BAD" if row.bad else "",
            )
            for row in self.rows
        ]
        return table_text(("op", "name", "cosine", "max abs", "finite", ""), cells)


def compare(
    model: Model, inputs: Mapping[str, Array], *, tolerance: float = TOLERANCE
) -> Comparison:
    """Run a model and check every op against its reference.

    Args:
        model: What to check.
        inputs: One array for every input.
        tolerance: Difference that is still good, relative to the largest magnitude of
            the reference; integers must be equal.
    """
    graph = _bound(model.module.functions["infer"], inputs)
    nodes = [node for node in graph.nodes() if not isinstance(node.op, Leaf)]
    made = [Value(node, i) for node in nodes for i in range(len(node.types))]
    known = _leaves(model, graph, inputs)
    known.update(zip(made, _run(model, graph, made, inputs), strict=True))
    return Comparison(
        tuple(row for node in nodes for row in _rows(node, known, tolerance))
    )


def compare_with_onnxruntime(
    model: Model,
    source: Path,
    inputs: Mapping[str, Array],
    *,
    tolerance: float = TOLERANCE,
) -> Comparison:
    """Run a model and the ONNX file it came from, and compare their outputs."""
    try:
        import onnxruntime  # noqa: PLC0415 - a peer, wanted here only
    except ImportError as error:
        raise ConfigError(
            "comparing with an ONNX file needs onnxruntime: pip install"
            " 'edgewise[bench]'"
        ) from error
    peer = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    names = [output.name for output in peer.get_outputs()]
    wanted = dict(zip(names, peer.run(None, dict(inputs)), strict=True))
    with Session(model, SessionConfig()) as session:
        got = session.run(dict(inputs))
    if got.keys() != wanted.keys():
        raise ConfigError(
            f"{source}: gives {sorted(wanted)}; want the model's {sorted(got)}"
        )
    rows = (
        _row("output", name, got[name], np.asarray(want), tolerance)
        for name, want in wanted.items()
    )
    return Comparison(tuple(rows))


def _leaves(
    model: Model, graph: Graph, inputs: Mapping[str, Array]
) -> dict[Value, Array]:
    """Arrays of all values that no op of the graph computes."""
    variables = _variables(model.module)
    known: dict[Value, Array] = {}
    for node in graph.nodes():
        match node.op:
            case Input(key=key):
                known[Value(node)] = inputs[key]
            case Variable(key=key):
                known[Value(node)] = variables[key]
            case Constant(array=array):
                known[Value(node)] = array
    return known


def _bound(graph: Graph, inputs: Mapping[str, Array]) -> Graph:
    """The graph at the sizes of the inputs: references take no symbols."""
    wanted = Inputs(
        [v.node.label for v in graph.inputs], [v.type for v in graph.inputs]
    )
    arrays = wanted.arrays(inputs)
    return graph.bind(wanted.sizes(tuple(array.shape for array in arrays)))


def _variables(module: Module) -> dict[str, Array]:
    """Variables as ``infer`` finds them; derived ones made by references."""
    arrays = {
        key: np.zeros(info.type.dims, info.type.dtype.numpy)
        if info.initial is None
        else info.initial
        for key, info in module.variables.items()
    }
    prepare = module.functions.get("prepare")
    if prepare is None:
        return arrays
    known: dict[Value, Array] = {}
    for node in prepare.nodes():
        for index, array in enumerate(_outputs(node, known, arrays)):
            known[Value(node, index)] = array
    return arrays | {key: known[value] for key, value in prepare.updates.items()}


def _outputs(
    node: Node, known: Mapping[Value, Array], variables: Mapping[str, Array]
) -> tuple[Array, ...]:
    """What a node of ``prepare`` gives, by its reference."""
    match node.op:
        case Variable(key=key):
            return (variables[key],)
        case Constant(array=array):
            return (array,)
    return _reference(node, known)


def _reference(node: Node, known: Mapping[Value, Array]) -> tuple[Array, ...]:
    result = node.op.reference(*(None if v is None else known[v] for v in node.inputs))
    return result if isinstance(result, tuple) else (result,)


def _run(
    model: Model, graph: Graph, made: list[Value], inputs: Mapping[str, Array]
) -> list[Array]:
    """What the engine computes for every value."""
    names = tuple(map(str, range(len(made))))
    observed = Graph(graph.inputs, tuple(made), names)
    with Session(Model(model.module.with_function("infer", observed))) as session:
        results = session.run(dict(inputs))
    return [results[name] for name in names]


def _rows(node: Node, known: Mapping[Value, Array], tolerance: float) -> Iterator[Row]:
    for index, want in enumerate(_reference(node, known)):
        got = known[Value(node, index)]
        yield _row(node.op.name, node.label, got, want, tolerance)


def _row(op: str, name: str, got: Array, want: Array, tolerance: float) -> Row:
    if got.shape != want.shape:
        raise ShapeError(
            f"{op} ({name!r}): gave the shape {got.shape}; want the reference's"
            f" {want.shape}"
        )
    if got.dtype.kind in "OU":
        same = bool(np.array_equal(got, want))
        return Row(op, name, float(same), 0.0 if same else np.inf, True, not same)
    a, b = _numbers(got), _numbers(want)
    finite = np.isfinite(a)
    both = finite & np.isfinite(b)
    largest = np.abs(b[both]).max(initial=0.0)
    max_abs = np.abs(a[both] - b[both]).max(initial=0.0)
    if not np.array_equal(a[~both], b[~both], equal_nan=True):
        max_abs = np.inf
    allowed = 0.0 if got.dtype.kind in "biu" else tolerance * max(largest, 1e-6)
    cosine = _cosine(a[both], b[both])
    bad = bool(max_abs > allowed)
    return Row(op, name, cosine, float(max_abs), bool(finite.all()), bad)


def _numbers(array: Array) -> Array:
    """All elements in double precision, complex ones as pairs."""
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    return array.astype(np.float64).ravel()


def _cosine(a: Array, b: Array) -> float:
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    if norms == 0:
        return 1.0 if np.array_equal(a, b) else 0.0
    return float(np.clip(a @ b / norms, -1, 1))
