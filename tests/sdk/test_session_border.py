"""A session takes what fits, says what does not, and writes where it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from edgewise import ops
from edgewise.dims import symbol
from edgewise.errors import (
    ConfigError,
    DTypeError,
    ShapeError,
)
from edgewise.ir.graph import Graph, Value, constant, input_value
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model, check
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.types import DType, TensorType

N, T = symbol("N"), symbol("T")
ONE = SessionConfig(threads=1)


def f32(*shape: Any) -> TensorType:
    return TensorType(DType.F32, shape)


def model(
    inputs: dict[str, Value], outputs: dict[str, Value], **functions: Graph
) -> Model:
    graph = Graph(tuple(inputs.values()), tuple(outputs.values()), tuple(outputs))
    return Model(Module({"infer": graph, **functions}, {}))


def sum_model() -> Model:
    """``y = relu(a + b)`` and ``s = a + b`` for ``a, b: f32[N, 3]``."""
    a, b = input_value("a", f32(N, 3)), input_value("b", f32(N, 3))
    s = ops.Add()(a, b)
    return model({"a": a, "b": b}, {"y": ops.Relu()(s), "s": s})


def feed(rows: int = 2) -> dict[str, Array]:
    rng = np.random.default_rng(rows)
    return {name: rng.standard_normal((rows, 3)).astype("f4") for name in "ab"}


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(sum_model(), ONE) as session:
        yield session


@pytest.mark.parametrize("rows", [0, 1, 2, 33])
def test_outputs_come_by_name_in_order_for_any_size(
    session: Session, rows: int
) -> None:
    inputs = feed(rows)
    outputs = session.run(inputs)
    assert list(outputs) == ["y", "s"]
    np.testing.assert_array_equal(outputs["s"], inputs["a"] + inputs["b"])
    np.testing.assert_array_equal(outputs["y"], np.maximum(outputs["s"], 0))


def test_outputs_belong_to_the_caller(session: Session) -> None:
    first = session.run(feed())["y"]
    before = first.copy()
    session.run({name: array + 5 for name, array in feed().items()})
    np.testing.assert_array_equal(first, before)


def test_special_values_pass_through(session: Session) -> None:
    a = np.array([[np.nan, np.inf, -np.inf]], "f4")
    outputs = session.run({"a": a, "b": np.zeros_like(a)})
    np.testing.assert_array_equal(outputs["s"], a)
    np.testing.assert_array_equal(outputs["y"], [[np.nan, np.inf, 0]])


def test_calling_a_session_takes_inputs_in_order(session: Session) -> None:
    a, b = feed().values()
    y, s = session(a, b)
    np.testing.assert_array_equal(y, np.maximum(s, 0))
    with pytest.raises(ShapeError, match="got 1 inputs; want 2"):
        session(a)


def test_calling_gives_the_array_where_there_is_one_output() -> None:
    x = input_value("x", f32(3))
    with Session(model({"x": x}, {"y": ops.Relu()(x)}), ONE) as session:
        np.testing.assert_array_equal(session([-1.0, 0.5, 2.0]), [0, 0.5, 2])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"b": None}, ShapeError, "input 'b' is missing"),
        ({"c": np.zeros(1)}, ShapeError, "'c' is not an input; want inputs 'a', 'b'"),
        ({"a": np.zeros((2, 3))}, DTypeError, "'a': got float64; want float32"),
        ({"a": np.zeros((2, 3), "i4")}, DTypeError, "'a': got int32"),
        ({"a": np.zeros((2, 4), "f4")}, ShapeError, r"\[2, 4\]; want f32\[N, 3\]"),
        ({"a": np.zeros(3, "f4")}, ShapeError, r"'a': got 1 axes; want f32\[N, 3\]"),
        ({"a": np.zeros((5, 3), "f4")}, ShapeError, r"'b': got \[2, 3\].*axis 0 is 5"),
        ({"a": [[0.1, 0.2, 0.3]] * 2}, DTypeError, "exact in float32"),
        ({"a": [[1, 2, 3], [1]]}, ShapeError, "ragged"),
        ({"a": "text"}, DTypeError, "'a': got <U4"),
    ],
)
def test_inputs_that_do_not_fit_are_named(
    session: Session, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    wrong = {k: v for k, v in {**feed(), **change}.items() if v is not None}
    with pytest.raises(error, match=words):
        session.run(wrong)
    assert session.run(feed())["y"].shape == (2, 3)


@pytest.mark.parametrize("wrong", [None, np.zeros(3), [1, 2], "a"])
def test_a_feed_that_is_no_mapping_is_refused(session: Session, wrong: Any) -> None:
    with pytest.raises(DTypeError, match="want a mapping"):
        session.run(wrong)


def test_arrays_in_any_memory_order_are_taken(session: Session) -> None:
    wanted = session.run(feed())["y"]
    a, b = feed().values()
    wide = np.zeros((2, 6), "f4")
    wide[:, ::2] = a
    unaligned = np.zeros(25, "u1")[1:].view("f4").reshape(2, 3)
    unaligned[...] = b
    foreign = a.astype(">f4")
    for left, right in [(wide[:, ::2], unaligned), (np.asfortranarray(a), b)]:
        np.testing.assert_array_equal(session.run({"a": left, "b": right})["y"], wanted)
    np.testing.assert_array_equal(session.run({"a": foreign, "b": b})["y"], wanted)


def test_read_only_inputs_are_taken_and_never_written(session: Session) -> None:
    inputs = feed()
    for array in inputs.values():
        array.flags.writeable = False
    before = {name: array.copy() for name, array in inputs.items()}
    session.run(inputs)
    for name, array in inputs.items():
        np.testing.assert_array_equal(array, before[name])


def test_numbers_are_taken_where_they_are_exact() -> None:
    x = input_value("x", TensorType(DType.I64, ()))
    y = ops.Add()(x, constant(np.int64(1)))
    with Session(model({"x": x}, {"y": y}), ONE) as session:
        assert session(41) == 42
        assert session(np.int64(41)) == 42
        for wrong in (1.5, 2**63, True, np.int32(1)):
            with pytest.raises(DTypeError):
                session(wrong)


def test_outputs_are_written_to_given_arrays(session: Session) -> None:
    wanted = session.run(feed())
    y = np.empty((2, 3), "f4")
    s = np.empty((2, 6), "f4")[:, ::2]
    outputs = session.run(feed(), out={"y": y, "s": s})
    assert outputs["y"] is y
    assert outputs["s"] is s
    for name in ("y", "s"):
        np.testing.assert_array_equal(outputs[name], wanted[name])


def test_an_output_may_be_written_over_an_input(session: Session) -> None:
    inputs = feed()
    wanted = session.run(inputs)
    outputs = session.run(inputs, out={"s": inputs["a"], "y": inputs["b"]})
    assert outputs["s"] is inputs["a"]
    for name in ("y", "s"):
        np.testing.assert_array_equal(outputs[name], wanted[name])


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        ({"z": np.empty((2, 3), "f4")}, ShapeError, "'z' is not an output"),
        ({"y": np.empty((2, 4), "f4")}, ShapeError, r"out\['y'\]: got \[2, 4\]"),
        ({"y": np.empty((2, 3), "f8")}, DTypeError, "got float64"),
        ({"y": [0.0]}, DTypeError, "got list"),
        ({"y": np.broadcast_to(np.float32(0), (2, 3))}, ShapeError, "read-only"),
    ],
)
def test_targets_that_do_not_fit_are_refused(
    session: Session, out: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        session.run(feed(), out=out)


def test_outputs_that_are_inputs_constants_or_views_are_given_too() -> None:
    x = input_value("x", f32(2, 3))
    c = constant(np.arange(3, dtype=np.float32))
    flat = ops.Reshape((6,))(x)
    y = ops.Relu()(x)
    both = {"x": x, "c": c, "flat": flat, "y": y, "again": y}
    data = np.array([[1, -2, 3], [np.nan, 0, -0.0]], "f4")
    with Session(model({"x": x}, both), ONE) as session:
        outputs = session.run({"x": data})
        np.testing.assert_array_equal(outputs["x"], data)
        np.testing.assert_array_equal(outputs["flat"], data.ravel())
        np.testing.assert_array_equal(outputs["again"], outputs["y"])
        np.testing.assert_array_equal(outputs["c"], [0, 1, 2])
        outputs["c"][:] = 7  # theirs now: the constant stays
        outputs["again"][:] = 7
        np.testing.assert_array_equal(session.run({"x": data})["c"], [0, 1, 2])
        assert not np.shares_memory(outputs["y"], outputs["again"])
        assert not np.shares_memory(outputs["x"], data)


@pytest.mark.parametrize("out", [5, [1], "y"])
def test_outputs_of_another_kind_than_a_mapping_are_refused(out: object) -> None:
    x = input_value("x", TensorType(DType.F32, (2,)))
    graph = Graph((x,), (ops.Relu()(x),), ("y",))
    with (
        Session(Model(Module({"infer": graph}, {}))) as session,
        pytest.raises(DTypeError, match="want arrays by output name"),
    ):
        session.run({"x": np.zeros(2, np.float32)}, out=out)


def test_what_is_neither_a_model_nor_a_path_is_refused() -> None:
    for odd in (5, None, [1], object()):
        with pytest.raises(ConfigError, match="want a model or the path"):
            Session(odd)


def test_a_configuration_is_no_dictionary() -> None:
    for config in ({"threads": 2}, {}):
        with pytest.raises(ConfigError, match="got dict; want a SessionConfig"):
            Session(sum_model(), config)  # type: ignore[arg-type]  # what is tested


def test_what_is_no_path_is_refused() -> None:
    for path in (None, 5, b"model.ew"):
        for act in (Model.load, check, sum_model().save):
            with pytest.raises(ConfigError, match=r"want the path of an \.ew file"):
                act(path)  # type: ignore[operator]  # what is tested


def test_a_view_that_repeats_itself_is_not_copied_beyond_the_limit() -> None:
    vast = np.broadcast_to(np.zeros(3, "f4"), (10**10, 3))
    with (
        Session(sum_model()) as session,
        pytest.raises(ShapeError, match=r"'a': got \[10000000000, 3\].* the limit"),
    ):
        session.run({"a": vast, "b": vast})


def test_a_view_that_repeats_itself_within_the_limit_is_taken(session: Session) -> None:
    rows = np.broadcast_to(np.ones(3, "f4"), (4, 3))
    np.testing.assert_array_equal(session.run({"a": rows, "b": rows})["s"], rows * 2)


def test_a_run_without_memory_says_so(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("edgewise.runtime.feeds._convert", full)
    with pytest.raises(ShapeError, match="Unable to allocate 9 TiB; want less input"):
        session.run({"a": [[1, 2, 3]], "b": [[1, 2, 3]]})
