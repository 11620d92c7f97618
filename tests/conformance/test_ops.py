"""Every op over all its samples: types, references, symbols, text, packing, cost."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import edgewise.ops
from edgewise.dims import Dim, symbol
from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Value, constant, input_value
from edgewise.ir.op import OPS, Array, Op, Sample
from edgewise.ir.parse import parse_graph
from edgewise.ir.text import graph_text
from edgewise.ir.verify import verify
from edgewise.types import DType, TensorType

CORE = sorted(n for n, home in OPS.homes.items() if home.startswith("edgewise.ops."))
# Those whose inputs are arrays; lists, and functions of a module, make no samples.
ARRAYS = [name for name in CORE if not OPS[name].objects]
# The last axis of this input says how many axes are indexed, or sizes are read.
INDEX_TUPLES = {"gather_nd": 1, "scatter_nd": 1, "read_dims": 0}
# These look at no element, or compare whatever they are given.
MOVE = {
    "reshape", "transpose", "concat", "slice", "expand", "tile", "pad", "where",
    "gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd",
    "one_hot", "fill", "arange", "dim_value", "triangle", "pack_panels", "pack_taps",
    "equal", "unique",
    # These are made for strings.
    "string_concat", "string_split", "string_normalize", "regex_full_match",
    "count_ngrams", "look_up", "one_of", "parse_number",
}  # fmt: skip

Types = tuple["TensorType | None", ...]


def samples(name: str) -> Iterator[tuple[Sample, Types]]:
    count = 0
    for sample in OPS[name].samples():
        count += 1
        yield sample, tuple(None if a is None else type_of(a) for a in sample.inputs)
    assert count, f"{name} has no samples"


def type_of(array: Array) -> TensorType:
    return TensorType(DType.of(array.dtype), array.shape)


def outputs(sample: Sample) -> tuple[Array, ...]:
    result = sample.op.reference(*sample.inputs)
    return result if isinstance(result, tuple) else (result,)


def as_graph(sample: Sample, types: Types) -> Graph:
    inputs = [
        None if type_ is None else input_value(f"x{index}", type_)
        for index, type_ in enumerate(types)
    ]
    values = sample.op.node(*inputs, label='the "node"')
    names = tuple(f"y{index}" for index in range(len(values)))
    return Graph(tuple(v for v in inputs if v is not None), values, names)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_reference_gives_the_inferred_types_and_leaves_its_inputs(name: str) -> None:
    for sample, types in samples(name):
        before = [None if a is None else a.tobytes() for a in sample.inputs]
        wanted = sample.op.infer_all(types)
        results = outputs(sample)
        assert all(isinstance(result, np.ndarray) for result in results), sample.op
        assert tuple(map(type_of, results)) == wanted, (sample.op, types)
        after = [None if a is None else a.tobytes() for a in sample.inputs]
        assert before == after, (sample.op, types)
        for result in results:
            aliased = [a for a in sample.inputs if a is not None and a is result]
            assert not aliased, (sample.op, types)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_graph_of_the_op_is_sound_and_survives_text(name: str) -> None:
    for sample, types in samples(name):
        graph = as_graph(sample, types)
        verify(graph)
        text, arrays = graph_text(graph)
        back = parse_graph(text, arrays)
        assert graph_text(back).text == text
        old, new = graph.outputs[0].node, back.outputs[0].node
        assert (new.op, new.types, new.label) == (old.op, old.types, old.label)
        assert [v is None for v in new.inputs] == [v is None for v in old.inputs]


@pytest.mark.parametrize("name", ARRAYS)
def test_evaluating_a_graph_of_the_op_is_its_reference(name: str) -> None:
    for sample, types in samples(name):
        feeds = {f"x{i}": a for i, a in enumerate(sample.inputs) if a is not None}
        got, updates = evaluate(as_graph(sample, types), feeds, {})
        assert not updates
        for result, wanted in zip(got.values(), outputs(sample), strict=True):
            assert raw(result) == raw(wanted), (sample.op, types)


def raw(array: Array) -> object:
    """What tells two arrays apart: bytes, or the objects that pointers lead to."""
    return array.tolist() if array.dtype == object else array.tobytes()


def symbolic(type_: TensorType, axes: range) -> TensorType:
    def dim(axis: int, size: Dim) -> Dim:
        known = axis not in axes or not isinstance(size, int) or size == 1
        return size if known else symbol(f"s{size}")

    return type_.with_shape(tuple(dim(*pair) for pair in enumerate(type_.shape)))


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("name", ARRAYS)
def test_symbols_bound_after_inference_give_the_concrete_types(
    name: str, first_only: bool
) -> None:
    for sample, types in samples(name):
        unknown = []
        for index, type_ in enumerate(types):
            rank = 0 if type_ is None else type_.rank
            keep_last = INDEX_TUPLES.get(name) == index
            axes = range(min(rank, 1) if first_only else rank)
            if keep_last and len(axes) == rank > 0:
                axes = range(rank - 1)
            unknown.append(None if type_ is None else symbolic(type_, axes))
        values = {f"s{n}": n for t in types if t is not None for n in t.dims}
        inferred = sample.op.infer_all(tuple(unknown))
        bound = tuple(type_.bind(values) for type_ in inferred)
        assert bound == sample.op.infer_all(types), (sample.op, unknown)


@pytest.mark.parametrize("name", CORE)
def test_an_op_says_what_it_does_and_has_its_class_in_the_package(name: str) -> None:
    cls = OPS[name]
    assert cls.__doc__
    assert getattr(edgewise.ops, cls.__name__) is cls
    assert edgewise.ops.__name__ + "." in cls.__module__
    assert OPS.homes[name] == cls.__module__


def test_the_stub_names_exactly_the_core_ops() -> None:
    assert edgewise.ops.__file__
    stub = Path(edgewise.ops.__file__).with_suffix(".pyi").read_text()
    listed = next(
        ast.literal_eval(node.value)
        for node in ast.parse(stub).body
        if isinstance(node, ast.Assign)
    )
    assert listed == sorted(OPS[name].__name__ for name in CORE)
    assert dir(edgewise.ops) == listed


def test_a_class_that_is_none_of_the_ops_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        edgewise.ops.Nonsense  # noqa: B018


@pytest.mark.parametrize("name", sorted({*ARRAYS} - MOVE))
def test_strings_are_refused_by_ops_that_compute(name: str) -> None:
    sample, types = next(samples(name))
    strings = tuple(None if t is None else t.with_dtype(DType.STRING) for t in types)
    with pytest.raises(DTypeError):
        sample.op.infer_all(strings)


@pytest.mark.parametrize("name", sorted({*ARRAYS} - {"concat"}))
def test_too_many_inputs_are_refused_with_the_name_of_the_op(name: str) -> None:
    sample, types = next(samples(name))
    extra = (TensorType(DType.F32, (1,)),) * 9
    with pytest.raises(ShapeError, match=f"{name}"):
        sample.op.infer_all((*types, *extra))


@pytest.mark.parametrize("name", ["pack_panels", "pack_taps"])
def test_unpacking_gives_back_the_logical_array(name: str) -> None:
    for sample, (type_,) in samples(name):
        assert type_ is not None
        (stored,) = outputs(sample)
        unpack = sample.op.unpack  # type: ignore[attr-defined]  # of pack ops
        np.testing.assert_array_equal(unpack(stored, type_), sample.inputs[0])
        with pytest.raises(ShapeError):
            unpack(np.zeros((9, 9, 9, 9), stored.dtype), type_)


def test_a_panel_holds_a_column_a_lane_and_zeros_beyond() -> None:
    weight = np.arange(3 * 18, dtype=np.float32).reshape(3, 18)
    stored = OPS["pack_panels"]((0, 1)).reference(weight)
    assert isinstance(stored, np.ndarray)
    assert stored.shape == (2, 3, 16)
    np.testing.assert_array_equal(stored[1, :, :2], weight[:, 16:])
    assert not stored[1, :, 2:].any()


def macs(op: Op, *shapes: tuple[int, ...] | None) -> int:
    types = tuple(None if s is None else TensorType(DType.F32, s) for s in shapes)
    return op.cost(types, op.infer_all(types)).macs


def test_costs_count_multiply_adds() -> None:
    ops = OPS
    assert macs(ops["matmul"](), (2, 7, 5), (5, 3)) == 2 * 7 * 5 * 3
    assert macs(ops["linear"](20), (7, 5), (2, 5, 16)) == 7 * 5 * 20
    conv = ops["conv"](6, (3, 3), groups=2)
    assert macs(conv, (1, 5, 5, 4), (2, 18, 16)) == 9 * 6 * 18
    assert macs(ops["depthwise_conv"]((3, 3)), (1, 5, 5, 4), (9, 4)) == 9 * 4 * 9
    gru = ops["gru"](7)
    assert macs(gru, (5, 2, 3), (2, 3, 16), (2, 7, 16)) == 5 * 2 * 7 * 3 * (3 + 7)
    assert macs(ops["relu"](), (5, 2)) == 0


def test_bytes_count_inputs_and_outputs() -> None:
    type_ = TensorType(DType.F32, (5, 2))
    assert OPS["add"]().cost((type_, type_), (type_,)).bytes == 120


def test_constants_of_all_kinds_survive_text() -> None:
    arrays = [
        np.asarray([1.5, np.nan, np.inf, -np.inf, -0.0], "f4"),
        np.asarray(2.0, "f2"),
        np.zeros((0, 3), "i8"),
        np.asarray([[True, False]]),
        np.arange(99, dtype=np.int32),
        np.asarray([1e-40, 0.1], "f4"),
    ]
    values = tuple(constant(array) for array in arrays)
    graph = Graph((), values, tuple(f"y{i}" for i in range(len(values))))
    back = parse_graph(*graph_text(graph))
    assert [value.op for value in back.outputs] == [value.op for value in values]
    assert [v.type for v in back.outputs] == [v.type for v in values]
    assert isinstance(back.outputs[0], Value)
