"""Where a model's numbers go wrong: every op against its reference.

The model runs once with all its intermediate values given out.  Each op's reference is
then fed what the kernel was fed, so that a row shows the error of that op alone and not
what came down to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import ConfigError, ShapeError
from edgewise.ir.evaluate import Bodies, bind, compute, evaluate
from edgewise.ir.fit import described
from edgewise.ir.graph import Graph, Leaf, Value
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model, want_model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.tools.text import table_text

# Of the largest magnitude in the reference: some hundred roundings of float32.
TOLERANCE = 1e-4
# What onnxruntime may log: it has warnings by the hundred on models that it runs well.
ERRORS = 3


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
        table = table_text(("op", "name", "cosine", "max abs", "finite", ""), cells)
        bad, odd = self.first_bad, self.first_not_finite
        return (
            f"{table}\n"
            f"first bad: {f'{bad.op} {bad.name!r}' if bad else 'none'}\n"
            f"first NaN or infinity: {f'{odd.op} {odd.name!r}' if odd else 'none'}"
        )


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
    want_model(model)
    if not isinstance(inputs, Mapping):
        raise ConfigError(
            f"inputs: got {type(inputs).__name__}; want a mapping of names to arrays"
        )
    functions, variables = model.module.functions, _variables(model.module)
    graph = bind(functions["infer"], inputs, variables, functions)
    call = Bodies(functions, variables)
    made = [
        Value(node, index)
        for node in graph.nodes()
        if not isinstance(node.op, Leaf)
        for index in range(len(node.types))
    ]
    known = dict(zip(made, _run(model, graph, made, inputs), strict=True))
    rows: list[Row] = []
    for node in graph.nodes():
        fed = tuple(None if value is None else known[value] for value in node.inputs)
        for index, want in enumerate(compute(node, fed, inputs, variables, call)):
            got = known.setdefault(Value(node, index), want)
            if not isinstance(node.op, Leaf):
                rows.append(_row(node.op.name, node.label, got, want, tolerance))
    return Comparison(tuple(rows))


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
            "comparing with an ONNX file needs onnxruntime: pip install onnxruntime"
        ) from error
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = ERRORS
        peer = onnxruntime.InferenceSession(
            source, options, providers=["CPUExecutionProvider"]
        )
        names = [output.name for output in peer.get_outputs()]
        wanted = dict(zip(names, peer.run(None, dict(inputs)), strict=True))
    except Exception as error:  # it has no base of its own errors
        reason = " ".join(str(error).split())
        raise ConfigError(f"{source}: onnxruntime refuses it: {reason}") from error
    with Session(model, SessionConfig()) as session:
        got = session.run(dict(inputs))
    if got.keys() != wanted.keys():
        raise ConfigError(
            f"{source}: gives {sorted(wanted)}; want the model's {sorted(got)}"
        )
    rows = (
        _row("output", name, got[name], _as_given(want), tolerance)
        for name, want in wanted.items()
    )
    return Comparison(tuple(rows))


def _as_given(value: Any) -> Any:
    """An output of onnxruntime as we give it."""
    if isinstance(value, list):
        return [np.asarray(item) for item in value]
    return None if value is None else np.asarray(value)


def _variables(module: Module) -> dict[str, Array]:
    """Variables as ``infer`` finds them; derived ones made by references."""
    arrays = {
        key: np.zeros(info.type.dims, info.type.dtype.numpy)
        if info.initial is None
        else info.initial
        for key, info in module.variables.items()
    }
    prepare = module.functions.get("prepare")
    if prepare is not None:
        arrays.update(evaluate(prepare, {}, arrays)[1])
    return arrays


def _run(
    model: Model, graph: Graph, made: list[Value], inputs: Mapping[str, Array]
) -> list[Array]:
    """What the engine computes for every value."""
    names = tuple(map(str, range(len(made))))
    observed = Graph(graph.inputs, tuple(made), names)
    with Session(Model(model.module.with_function("infer", observed))) as session:
        results = session.run(dict(inputs))
    return [results[name] for name in names]


def _row(op: str, name: str, got: Any, want: Any, tolerance: float) -> Row:
    if not isinstance(got, np.ndarray) or not isinstance(want, np.ndarray):
        return _whole(op, name, got, want, tolerance)
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


def _whole(op: str, name: str, got: Any, want: Any, tolerance: float) -> Row:
    """A sequence as its worst tensor; something absent is only like what is absent."""
    given, wanted = (x if isinstance(x, list) else [x] for x in (got, want))
    if len(given) != len(wanted) or (got is None) != (want is None):
        raise ShapeError(
            f"{op} ({name!r}): gave {described(got)}; want {described(want)}"
        )
    rows = [
        _row(op, name, a, b, tolerance)
        for a, b in zip(given, wanted, strict=True)
        if a is not None
    ]
    return max(
        rows, key=lambda row: row.max_abs, default=Row(op, name, 1, 0, True, False)
    )


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
