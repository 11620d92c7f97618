"""Branches and loops, with captures and nested, as sessions and references run them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from edgewise import ops
from edgewise.dims import Dim, symbol
from edgewise.errors import ConfigError, InternalError, KernelError, ShapeError
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
from edgewise.ir.parse import parse_module
from edgewise.ir.text import module_text
from edgewise.ir.verify import verify_module
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.tools.compare import compare
from edgewise.types import DType, SequenceType, TensorType, Unranked

N, M = symbol("N"), symbol("M")
I64 = TensorType(DType.I64, ())
BOOL = TensorType(DType.BOOL, ())
WEIGHT = np.asarray([1, 10, 100], np.float32)


def f32(*shape: Dim) -> TensorType:
    return TensorType(DType.F32, shape)


def graph(
    inputs: tuple[Value, ...], outputs: tuple[Value, ...], *binders: Value
) -> Graph:
    names = tuple(f"y{index}" for index in range(len(outputs)))
    return Graph(inputs, outputs, names, {}, binders)


def module(infer: Graph, **bodies: Graph) -> Module:
    variables = {"w": VariableInfo("w", f32(3), Role.PARAMETER, WEIGHT)}
    made = Module({"infer": infer, **bodies}, variables)
    verify_module(made)
    text, arrays = module_text(made)
    assert module_text(parse_module(text, arrays)).text == text
    back = read_bytes(write_bytes(made))
    assert module_text(back).text == text
    return back


def agree(made: Module, *feeds: Mapping[str, Any], **config: Any) -> dict[str, Any]:
    got: dict[str, Any] = {}
    with Session(Model(made), SessionConfig(**config)) as running:
        for feed in feeds:
            got = running.run(feed)
            infer = made.functions["infer"]
            want, _ = evaluate(infer, feed, {"w": WEIGHT}, functions=made.functions)
            assert got.keys() == want.keys()
            for name, value in want.items():
                same(got[name], value)
    return got


def same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert isinstance(got, list)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def branch(scale: float, *, keep: bool = True) -> Graph:
    """``x * scale`` with the shape of ``x``, or its first element alone."""
    x = input_value("x", f32(M))
    y = ops.Mul()(x, constant(np.float32(scale)))
    if not keep:
        y = ops.Slice((0,), (1,), (1,))(y)
    return graph((x,), (y,))


def test_a_branch_is_taken_by_the_condition() -> None:
    c, x = input_value("c", BOOL), input_value("x", f32(N))
    taken = ops.If.giving((f32(N),), then_branch="a", else_branch="b")(c, x)
    made = module(graph((c, x), (taken,)), a=branch(2), b=branch(-1))
    data = np.asarray([1, 2], "f4")
    agree(made, *({"c": np.asarray(c), "x": data} for c in (True, False)))


def test_branches_may_differ_in_size() -> None:
    c, x = input_value("c", BOOL), input_value("x", f32(N))
    taken = ops.If.giving((f32(symbol("k")),), then_branch="a", else_branch="b")(c, x)
    y = ops.Add()(taken, constant(np.float32(1)))
    made = module(graph((c, x), (y,), taken), a=branch(2), b=branch(3, keep=False))
    data = np.asarray([1, 2, 3], "f4")
    got = agree(made, *({"c": np.asarray(c), "x": data} for c in (True, False)))
    assert got["y0"].tolist() == [4]


def counting(stop: float) -> Graph:
    """Add the turn to the carried vector, until its sum passes ``stop``."""
    i, go = input_value("i", I64), input_value("go", BOOL)
    x, step = input_value("x", f32(M)), input_value("step", f32())
    y = ops.Add()(x, ops.Mul()(ops.Cast("f32")(i), step))
    y = ops.Add()(y, constant(np.float32(1)))
    on = ops.Less()(ops.ReduceSum((0,), False)(y), constant(np.float32(stop)))
    on = ops.And()(go, on)
    return graph((i, go, x, step), (on, y, ops.Neg()(y)))


def loop(
    trip: Value | None, go: Value | None, *rest: Value, types: tuple[TensorType, ...]
) -> tuple[Value, ...]:
    op = ops.Loop.giving(types, body="body", carried=1, scans=1)
    return op.node(trip, go, *rest, label="the loop")


@pytest.mark.parametrize(("trip", "turns"), [(0, 0), (2, 2), (100, 4)])
def test_a_loop_ends_by_its_count_or_its_condition(trip: int, turns: int) -> None:
    x, n = input_value("x", f32(N)), input_value("n", I64)
    step = constant(np.float32(0.5))
    last, rows = loop(n, None, x, step, types=(f32(N), f32(symbol("t"), N)))
    made = module(graph((x, n), (last, rows), rows), body=counting(12))
    got = agree(made, {"x": np.zeros(2, "f4"), "n": np.asarray(trip)})
    assert got["y1"].shape == (turns, 2)


def test_a_loop_whose_condition_fails_at_once_runs_no_turn() -> None:
    x, c = input_value("x", f32(N)), input_value("c", BOOL)
    step = constant(np.float32(1))
    last, rows = loop(None, c, x, step, types=(f32(N), f32(symbol("t"), N)))
    made = module(graph((x, c), (last, rows), rows), body=counting(3))
    feed = {"x": np.ones(2, "f4"), "c": np.asarray(False)}
    got = agree(made, feed | {"c": np.asarray(True)}, feed)
    assert got["y1"].shape == (0, 2)


def test_a_carried_value_may_grow() -> None:
    i, go, x = input_value("i", I64), input_value("go", BOOL), input_value("x", f32(M))
    body = graph((i, go, x), (go, ops.Concat(0)(x, ops.Neg()(x)), i))
    first, n = input_value("x", f32(N)), input_value("n", I64)
    types = (f32(symbol("k")), TensorType(DType.I64, (symbol("t"),)))
    last, rows = loop(n, None, first, types=types)
    total = ops.Tanh()(last)
    made = module(graph((first, n), (last, rows, total), last), body=body)
    feeds = [{"x": np.ones(2, "f4"), "n": np.asarray(n)} for n in (0, 1, 3)]
    assert agree(made, *feeds)["y0"].shape == (16,)


def test_loops_nest_and_read_values_from_all_around() -> None:
    ji, jg = input_value("j", I64), input_value("g", BOOL)
    acc, outer = input_value("acc", f32(3)), input_value("outer", f32(3))
    w = variable_value("w", f32(3))
    inner = graph((ji, jg, acc, outer), (jg, ops.Add()(ops.Mul()(acc, outer), w)))
    i, go = input_value("i", I64), input_value("go", BOOL)
    x, data = input_value("x", f32(3)), input_value("data", f32(3))
    turns = ops.Loop.giving((f32(3),), body="inner", carried=1, scans=0)
    y = turns(ops.Add()(i, constant(np.asarray(1))), None, x, data)
    even = ops.Equal()(
        ops.Mod(False)(i, constant(np.asarray(2))), constant(np.asarray(0))
    )
    chosen = ops.If.giving((f32(3),), then_branch="a", else_branch="b")(even, y)
    body = graph((i, go, x, data), (go, chosen))
    start, around = input_value("x", f32(3)), input_value("around", f32(3))
    n = input_value("n", I64)
    done = ops.Loop.giving((f32(3),), body="body", carried=1, scans=0)(
        n, None, start, around
    )
    made = module(
        graph((start, around, n), (done,)),
        body=body, inner=inner, a=branch(2), b=branch(-1),
    )  # fmt: skip
    feed = {"x": np.zeros(3, "f4"), "around": np.full(3, 2, "f4")}
    for turns_ in (0, 1, 4):
        agree(made, feed | {"n": np.asarray(turns_)}, threads=2)


def test_a_scan_walks_slices_both_ways_along_any_axis() -> None:
    s, a, b = (input_value(key, f32(M)) for key in "sab")
    total = ops.Add()(s, ops.Mul()(a, b))
    body = graph((s, a, b), (total, total, ops.Neg()(a)))
    state = input_value("s", f32(N))
    x, y = input_value("x", f32(4, N)), input_value("y", f32(N, 4))
    op = ops.Scan.giving(
        (f32(N), f32(4, N), f32(N, 4)),
        body="body",
        carried=1,
        in_axes=(0, 1),
        in_reverse=(False, True),
        out_axes=(0, 1),
        out_reverse=(True, False),
    )
    made = module(graph((state, x, y), op.node(state, x, y)), body=body)
    data = np.arange(12, dtype=np.float32)
    feed = {"s": np.ones(3, "f4"), "x": data.reshape(4, 3), "y": -data.reshape(3, 4)}
    got = agree(made, feed)
    assert got["y1"][0].tolist() == got["y0"].tolist()


def test_bodies_may_find_sizes_of_their_own() -> None:
    i, go, x = input_value("i", I64), input_value("go", BOOL), input_value("x", f32(M))
    where = ops.NonZero(symbol("k"))(x)
    kept = ops.Gather(0)(x, ops.Reshape((symbol("k"),))(where))
    body = graph((i, go, x), (go, ops.Sub()(kept, constant(np.float32(1))), i), where)
    first, n = input_value("x", f32(N)), input_value("n", I64)
    types = (f32(symbol("m")), TensorType(DType.I64, (symbol("t"),)))
    last, rows = loop(n, None, first, types=types)
    made = module(graph((first, n), (last, rows), last), body=body)
    data = np.asarray([1, 2, 3, 2, 5, 1], "f4")
    got = agree(made, *({"x": data, "n": np.asarray(n)} for n in (1, 3)))
    assert got["y0"].tolist() == [0, 2]


def test_a_loop_may_fill_a_sequence() -> None:
    kind = SequenceType(Unranked(DType.F32))
    i, go, s = input_value("i", I64), input_value("go", BOOL), input_value("s", kind)
    x = input_value("x", f32(M))
    longer = ops.SequenceInsert()(s, ops.Mul()(x, ops.Cast("f32")(i)))
    body = graph((i, go, s, x), (go, longer))
    data, n = input_value("x", f32(N)), input_value("n", I64)
    empty = ops.SequenceEmpty("f32")()
    made_of = ops.Loop.giving((kind,), body="body", carried=1, scans=0)
    s = made_of(n, None, empty, data)
    joined = ops.ConcatFromSequence(0, False, (symbol("k"),))(s)
    made = module(
        graph((data, n), (s, ops.SequenceLength()(s), joined), joined), body=body
    )
    got = agree(made, *({"x": np.ones(2, "f4"), "n": np.asarray(n)} for n in (1, 3)))
    assert [x.tolist() for x in got["y0"]] == [[0, 0], [1, 1], [2, 2]]


def test_compare_looks_into_a_model_with_a_loop() -> None:
    x, n = input_value("x", f32(N)), input_value("n", I64)
    step = constant(np.float32(0.5))
    last, rows = loop(n, None, x, step, types=(f32(N), f32(symbol("t"), N)))
    made = module(graph((x, n), (ops.Relu()(last), rows), rows), body=counting(12))
    feed = {"x": np.zeros(2, "f4"), "n": np.asarray(3)}
    rows_ = compare(Model(made), feed).rows
    assert [row.op for row in rows_] == ["loop", "loop", "relu"]
    assert not any(row.bad for row in rows_)


def test_an_error_in_a_body_names_its_node_and_leaves_the_session_well() -> None:
    i, go, x = input_value("i", I64), input_value("go", BOOL), input_value("x", f32(3))
    picked = ops.Gather(0)(x, ops.Reshape((1,))(i), label="deep inside")
    body = graph((i, go, x), (go, x, picked))
    first, n = input_value("x", f32(3)), input_value("n", I64)
    last, rows = loop(n, None, first, types=(f32(3), f32(symbol("t"), 1)))
    made = module(graph((first, n), (last, rows), rows), body=body)
    with Session(Model(made)) as running:
        with pytest.raises(KernelError, match="deep inside"):
            running.run({"x": np.ones(3, "f4"), "n": np.asarray(4)})
        got = running.run({"x": np.ones(3, "f4"), "n": np.asarray(3)})
        assert got["y1"].shape == (3, 1)


def test_rows_of_different_shapes_are_refused() -> None:
    i, go, x = input_value("i", I64), input_value("go", BOOL), input_value("x", f32(M))
    body = graph((i, go, x), (go, ops.Concat(0)(x, x), x))
    first = input_value("x", f32(1))
    types = (f32(symbol("k")), f32(symbol("t"), symbol("r")))
    last, rows = loop(constant(np.asarray(3)), None, first, types=types)
    made = module(graph((first,), (last, rows), last), body=body)
    with Session(Model(made)) as running, pytest.raises(ShapeError, match="one shape"):
        running.run({"x": np.ones(1, "f4")})


def endless() -> Module:
    """A loop without an end that keeps a row of every turn."""
    i, go, x = input_value("i", I64), input_value("go", BOOL), input_value("x", f32(M))
    body = graph((i, go, x), (go, x, x))
    first = input_value("x", f32(N))
    last, rows = loop(None, None, first, types=(f32(N), f32(symbol("t"), N)))
    return module(graph((first,), (last, rows), rows), body=body)


def test_a_loop_without_end_stops_at_the_memory_limit() -> None:
    config = SessionConfig(memory_limit=1_000_000)
    with (
        Session(Model(endless()), config) as running,
        pytest.raises(ShapeError, match="ends sooner"),
    ):
        running.run({"x": np.ones(1000, "f4")})


def test_an_interrupt_ends_a_loop_and_the_session_runs_on() -> None:
    # A shell's background jobs ignore interrupts, and so would the loop.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Session(Model(endless())) as running:
        killer = threading.Thread(
            target=lambda: (time.sleep(0.3), os.kill(os.getpid(), signal.SIGINT))
        )
        killer.start()
        with pytest.raises(KeyboardInterrupt):
            running.run({"x": np.ones(0, "f4")})
        killer.join()
        assert not running._turn.lock.locked()  # type: ignore[attr-defined]


def test_sessions_in_threads_take_turns_with_their_bodies() -> None:
    x, n = input_value("x", f32(N)), input_value("n", I64)
    step = constant(np.float32(0.5))
    last, rows = loop(n, None, x, step, types=(f32(N), f32(symbol("t"), N)))
    made = module(graph((x, n), (last, rows), rows), body=counting(1e9))
    results: list[Any] = []
    with Session(Model(made), SessionConfig(threads=2)) as running:
        feed = {"x": np.zeros(1000, "f4"), "n": np.asarray(20)}
        threads = [
            threading.Thread(target=lambda: results.append(running.run(feed)["y0"]))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
    assert len(results) == 4
    assert all(np.array_equal(results[0], other) for other in results)


def test_a_body_that_does_not_fit_its_op_is_no_module() -> None:
    c, x = input_value("c", BOOL), input_value("x", f32(N))
    taken = ops.If.giving((f32(N),), then_branch="a", else_branch="b")(c, x)
    infer = graph((c, x), (taken,))
    whole = input_value("x", TensorType(DType.I32, (M,)))
    for wrong, message in (
        (graph((whole,), (whole,)), "takes"),
        (graph((), (constant(WEIGHT),)), "takes"),
        (graph((x,), ()), "gives"),
        (Graph((x,), (x,), ("y",), {"w": variable_value("w", f32(3))}), "assigns"),
    ):
        with pytest.raises(InternalError, match=message):
            module(infer, a=branch(1), b=wrong)
    with pytest.raises(InternalError, match="not there"):
        module(infer, a=branch(1))


def test_a_module_without_infer_does_not_run() -> None:
    with pytest.raises(ConfigError, match="'a'"):
        Session(Model(Module({"a": branch(1)}, {})))
