"""Sizes that only a run knows: a session finds them, and gives what references give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise import ops
from edgewise.dims import Dim, symbol
from edgewise.errors import InternalError, KernelError, ShapeError
from edgewise.format.read import read_bytes
from edgewise.format.write import write_bytes
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import (
    Graph,
    Value,
    constant,
    input_value,
    variable_value,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.ir.verify import verify
from edgewise.model import Model
from edgewise.plan.stages import cut
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.types import DType, TensorType

N = symbol("N")
I64 = DType.I64
WEIGHT = np.arange(6, dtype=np.float32)


def f32(*shape: Dim) -> TensorType:
    return TensorType(DType.F32, shape)


def graph(
    inputs: tuple[Value, ...], outputs: tuple[Value, ...], *binders: Value
) -> Graph:
    names = tuple(f"y{index}" for index in range(len(outputs)))
    made = Graph(inputs, outputs, names, {}, binders)
    verify(made)
    return made


def session(made: Graph, **config: Any) -> Session:
    variables = {"w": VariableInfo("w", f32(6), Role.PARAMETER, WEIGHT)}
    module = read_bytes(write_bytes(Module({"infer": made}, variables)))
    return Session(Model(module), SessionConfig(**config))


def agree(made: Graph, running: Session, feed: dict[str, Array]) -> dict[str, Any]:
    got = running.run(feed)
    want, _ = evaluate(made, feed, {"w": WEIGHT})
    for name, array in want.items():
        assert got[name].dtype == array.dtype, name
        np.testing.assert_array_equal(got[name], array, err_msg=name)
    return got


def positive(x: Value, name: str) -> tuple[Value, Value]:
    """The positive elements of a vector, and the binder that counts them."""
    where = ops.NonZero(symbol(name))(ops.Greater()(x, constant(np.float32(0))))
    flat = ops.Reshape((symbol(name),))(where)
    return ops.Gather(0)(x, flat), where


def kept_and_padded() -> Graph:
    """Two stages: what is positive, then as many zeros behind it as an input says."""
    x = input_value("x", f32(N))
    n = input_value("n", TensorType(I64, ()))
    kept, where = positive(x, "k")
    read = ops.ReadDims(("m",))(n)
    padded = ops.Pad((0, symbol("m")), "constant", 7.0)(kept)
    return graph((x, n), (padded, kept, where, read), where, read)


def test_sizes_differ_from_run_to_run_in_one_session() -> None:
    made = kept_and_padded()
    with session(made) as running:
        for data, more in (([1, -2, 3], 2), ([-1.0], 0), ([4, 5, 6, 7], 1), ([], 3)):
            feed = {"x": np.asarray(data, "f4"), "n": np.asarray(more)}
            got = agree(made, running, feed)
            assert len(got["y0"]) == sum(v > 0 for v in data) + more


def test_what_needs_no_found_size_runs_in_one_stage() -> None:
    found = cut(kept_and_padded())
    assert [len(stage.actions) for stage in found.stages] == [2, 0]
    assert [action.node.op.name for action in found.stages[0].actions] == [
        "non_zero",
        "read_dims",
    ]


def test_a_size_found_late_needs_a_stage_of_its_own() -> None:
    x = input_value("x", f32(N))
    once, first = positive(x, "a")
    twice, second = positive(ops.Sub()(once, constant(np.float32(1))), "b")
    made = graph((x,), (twice, x), first, second)
    assert len(cut(made).stages) == 3
    with session(made) as running:
        agree(made, running, {"x": np.asarray([0.5, 3, -1, 2], "f4")})
        agree(made, running, {"x": np.asarray([-1, -1], "f4")})


def test_a_binder_may_follow_a_binder_in_one_stage() -> None:
    x = input_value("x", f32(N))
    n = input_value("n", TensorType(I64, (1,)))
    again = ops.ReadDims(("b",))(ops.ReadDims(("a",))(n))
    y = ops.Fill((symbol("a"), symbol("b")))(constant(np.float32(2)))
    made = graph((x, n), (y,), again.node.inputs[0], again)  # type: ignore[arg-type]
    assert len(cut(made).stages) == 2
    with session(made) as running:
        got = agree(made, running, {"x": np.zeros(1, "f4"), "n": np.asarray([3])})
        assert got["y0"].shape == (3, 3)


def test_outputs_belong_to_the_caller() -> None:
    x = input_value("x", f32(6))
    kept, where = positive(x, "k")
    w = variable_value("w", f32(6))
    made = graph((x,), (x, x, where, where, w, kept), where)
    with session(made) as running:
        feed = {"x": np.asarray([1, -1, 2, -2, 3, -3], "f4")}
        got = agree(made, running, feed)
        arrays = [*got.values(), feed["x"], WEIGHT]
        for index, array in enumerate(arrays):
            for other in arrays[index + 1 :]:
                assert not np.may_share_memory(array, other)


def test_outputs_can_be_written_to_arrays_of_the_caller() -> None:
    made = kept_and_padded()
    with session(made) as running:
        feed = {"x": np.asarray([1, -1, 2], "f4"), "n": np.asarray(1)}
        target = np.zeros(3, "f4")
        got = running.run(feed, out={"y0": target})
        assert got["y0"] is target
        assert target.tolist() == [1, 2, 7]
        with pytest.raises(ShapeError, match="y0"):
            running.run(feed, out={"y0": np.zeros(4, "f4")})


@pytest.mark.parametrize("size", [-1, 2**50, 2**63 - 1, -(2**63)])
def test_a_size_that_is_none_is_an_error_and_the_next_run_is_well(size: int) -> None:
    made = kept_and_padded()
    with session(made) as running:
        feed = {"x": np.ones(2, "f4"), "n": np.asarray(size)}
        with pytest.raises(ShapeError, match="m = "):
            running.run(feed)
        agree(made, running, {"x": np.ones(2, "f4"), "n": np.asarray(2)})


def test_what_asks_for_more_than_the_limit_is_refused_before_it_is_made() -> None:
    made = kept_and_padded()
    with session(made, memory_limit=10_000) as running:
        feed = {"x": np.ones(2, "f4"), "n": np.asarray(100_000)}
        with pytest.raises(ShapeError, match="memory_limit"):
            running.run(feed)
        agree(made, running, {"x": np.ones(2, "f4"), "n": np.asarray(1000)})
    with session(made) as running, pytest.raises(ShapeError, match="memory_limit"):
        running.run({"x": np.ones(2, "f4"), "n": np.asarray(2**42)})


def test_found_sizes_that_do_not_fit_an_op_are_an_error() -> None:
    x = input_value("x", f32(N))
    n = input_value("n", TensorType(I64, (2,)))
    read = ops.ReadDims(("a", "b"))(n)
    y = ops.Reshape((symbol("a"), symbol("b")))(x)
    made = graph((x, n), (y,), read)
    with session(made) as running:
        agree(made, running, {"x": np.ones(6, "f4"), "n": np.asarray([2, 3])})
        with pytest.raises(ShapeError, match="reshape"):
            running.run({"x": np.ones(6, "f4"), "n": np.asarray([2, 4])})


def test_a_declared_size_that_the_run_breaks_is_an_error() -> None:
    x = input_value("x", f32(N))
    where = ops.NonZero(3)(x)
    made = graph((x,), (where,))
    with session(made) as running:
        agree(made, running, {"x": np.ones(3, "f4")})
        with pytest.raises(ShapeError, match="non_zero"):
            running.run({"x": np.ones(4, "f4")})


def test_plans_are_kept_by_the_sizes_and_the_oldest_makes_room() -> None:
    made = kept_and_padded()
    with session(made, max_plans=2) as running:
        for more in range(5):
            agree(made, running, {"x": np.ones(2, "f4"), "n": np.asarray(more)})
        steps = running._functions["infer"]._steps  # type: ignore[attr-defined]
        assert all(len(step.function._ready) <= 2 for step in steps)


def test_a_profile_names_every_op_of_every_stage() -> None:
    made = kept_and_padded()
    with session(made) as running:
        profile = running.profile({"x": np.ones(3, "f4"), "n": np.asarray(1)}, runs=2)
        names = [row.op for row in profile.rows]
        assert sorted(names) == ["gather", "greater", "non_zero", "pad", "read_dims"]
        assert all(row.seconds >= 0 for row in profile.rows)
        assert running.memory.arena_bytes >= running.memory.lower_bound_bytes


def test_variables_are_updated_when_the_last_stage_has_ended_well() -> None:
    x = input_value("x", f32(N))
    kept, where = positive(x, "k")
    count = ops.ReduceSum((0,), False)(ops.Mul()(kept, constant(np.float32(0))))
    total = ops.Add()(variable_value("s", f32()), count)
    total = ops.Add()(total, constant(np.float32(1)))
    # The second stage fails where there are not two.
    two = ops.Reshape((2,))(kept)
    made = Graph((x,), (two,), ("y",), {"s": total}, (where,))
    module = Module({"infer": made}, {"s": VariableInfo("s", f32(), Role.STATE)})
    with Session(Model(module)) as running:
        running.run({"x": np.asarray([1, 2], "f4")})
        with pytest.raises(ShapeError):
            running.run({"x": np.asarray([1, 2, 3], "f4")})
        assert running._variables["s"] == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, n: ((ops.Fill((symbol("m"),))(x),), ()), "'m'"),
        (lambda x, n: ((n,), (n,)), "gives no symbol"),
        (lambda x, n: ((n,), (ops.ReadDims(("N",))(n),)), "which has one"),
        (
            lambda x, n: ((n,), (ops.NonZero(2 * symbol("k"))(n),)),
            "stands alone in none",
        ),
    ],
)
def test_a_graph_whose_sizes_come_from_nowhere_is_no_graph(
    build: Any, message: str
) -> None:
    x = input_value("x", f32())
    n = ops.Neg()(input_value("n", TensorType(I64, ())))
    free = input_value("free", f32(N))
    outputs, binders = build(x, n)
    inputs = (x, n.node.inputs[0], free)
    names = tuple(map(str, range(len(outputs))))
    with pytest.raises(InternalError, match=message):
        verify(Graph(inputs, outputs, names, {}, binders))  # type: ignore[arg-type]


def test_an_error_of_a_binder_names_its_node() -> None:
    s = ops.SequenceConstruct()(input_value("x", f32(2)))
    x = s.node.inputs[0]
    assert x is not None
    i = input_value("i", TensorType(I64, ()))
    at = ops.SequenceAt((symbol("a"),))(s, i, label="the pick")
    made = graph((x, i), (at,), at)
    with session(made) as running:
        agree(made, running, {"x": np.ones(2, "f4"), "i": np.asarray(-1)})
        with pytest.raises(KernelError, match="the pick"):
            running.run({"x": np.ones(2, "f4"), "i": np.asarray(1)})


@st.composite
def programs(draw: st.DrawFn) -> Graph:
    """Vectors that grow and shrink by what they hold."""
    x, n = input_value("x", f32(N)), input_value("n", TensorType(I64, ()))
    values, binders = [x], list[Value]()
    for index in range(draw(st.integers(1, 7))):
        v = draw(st.sampled_from(values))
        match draw(st.integers(0, 5)):
            case 0:
                kept, where = positive(v, f"k{index}")
                binders.append(where)
                values.append(kept)
            case 1:
                size = ops.Add()(n, constant(np.asarray(index)))
                read = ops.ReadDims((f"m{index}",))(size)
                binders.append(read)
                values.append(ops.Pad((0, symbol(f"m{index}")), "constant", 1.0)(v))
            case 2:
                values.append(ops.Sub()(v, constant(np.float32(1))))
            case 3:
                values.append(ops.Concat(0)(v, draw(st.sampled_from(values))))
            case 4:
                values.append(ops.Tile((2,))(ops.Neg()(v)))
            case _:
                scale = ops.ReduceSum((0,), True)(v)
                values.append(ops.Add()(v, ops.Cast("f32")(ops.Cast("i32")(scale))))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return graph((x, n), tuple(outputs), *binders)


@settings(max_examples=40, deadline=None)
@given(programs(), st.data())
def test_whatever_the_graph_stages_give_what_the_references_give(
    made: Graph, data: st.DataObject
) -> None:
    with session(made, threads=1) as running:
        for _ in range(2):
            whole = data.draw(st.lists(st.integers(-3, 3), max_size=6))
            feed = {
                "x": np.asarray(whole, "f4"),
                "n": np.asarray(data.draw(st.integers(0, 3))),
            }
            agree(made, running, feed)
