"""What a session keeps between runs, what stops one, and what it tells of itself."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from edgewise import ops
from edgewise.dims import symbol
from edgewise.errors import (
    DIVISION_BY_ZERO,
    KERNEL_FAULT,
    ConfigError,
    DelegateError,
    EdgewiseError,
    InternalError,
    KernelError,
    ModelFormatError,
)
from edgewise.ir.graph import Graph, Value, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array, Op, Sample
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.executable import Executable
from edgewise.runtime.function import Function
from edgewise.runtime.session import Session
from edgewise.types import DType, TensorType

N, T = symbol("N"), symbol("T")
ONE = SessionConfig(threads=1)


class Odd(Op):
    """An op without a kernel, whose reference can be told to go wrong."""

    name: ClassVar[str] = "odd"
    result: str = "right"

    def infer(self, x: TensorType) -> TensorType:
        return x

    def reference(self, x: Array) -> Array:
        if self.result == "raises":
            raise RuntimeError(self.result)
        if self.result == "wrong type":
            return x.astype(np.float64)
        return x + 1

    @staticmethod
    def samples() -> Iterator[Sample]:
        return iter(())


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


def test_an_op_without_a_kernel_runs_by_its_reference() -> None:
    x = input_value("x", f32(N))
    y = ops.Relu()(Odd()(ops.Relu()(x)))
    with Session(model({"x": x}, {"y": y}), ONE) as session:
        np.testing.assert_array_equal(session([-1.0, 2.0]), [1, 3])
        rows = session.profile({"x": [1.0]}, runs=2).rows
        assert [(row.op, row.kernel is None) for row in rows] == [
            ("relu", False),
            ("odd", True),
            ("relu", False),
        ]


def test_a_reference_that_goes_wrong_stops_the_run_by_name() -> None:
    x = input_value("x", f32(2))
    node = Odd("raises")(x, label="bad one")
    with Session(model({"x": x}, {"y": node}), ONE) as session:
        with pytest.raises(KernelError, match=r"odd \(node 'bad one'\)") as caught:
            session([1.0, 2.0])
        assert caught.value.status == KERNEL_FAULT
    with (
        Session(model({"x": x}, {"y": Odd("wrong type")(x)}), ONE) as session,
        pytest.raises(InternalError, match="float64"),
    ):
        session([1.0, 2.0])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_that_stops_names_its_node_and_the_session_lives(threads: int) -> None:
    a = input_value("a", TensorType(DType.I64, (N,)))
    y = ops.Div()(ops.Add()(a, a), a, label="ratio")
    with Session(model({"a": a}, {"y": y}), SessionConfig(threads=threads)) as session:
        with pytest.raises(KernelError, match=r"ratio.*division by zero") as caught:
            session([3, 0])
        assert (caught.value.op, caught.value.status) == ("div", DIVISION_BY_ZERO)
        np.testing.assert_array_equal(session([3, -1]), [2, 2])


def test_derived_variables_are_computed_when_a_session_opens() -> None:
    stored = np.array([1.0, -2.0], "f4")
    w, d = variable_value("w", f32(2)), variable_value("d", f32(2))
    prepare = Graph((), (), (), {"d": ops.Neg()(w)})
    x = input_value("x", f32(N, 2))
    graph = Graph((x,), (ops.Mul()(x, d),), ("y",))
    variables = {
        "w": VariableInfo("w", f32(2), Role.PARAMETER, stored),
        "d": VariableInfo("d", f32(2), Role.DERIVED),
    }
    module = Module({"infer": graph, "prepare": prepare}, variables)
    with Session(Model(module), ONE) as session:
        np.testing.assert_array_equal(session([[3.0, 5.0]]), [[-3, 10]])
        assert session.memory.weights_bytes == 16
    assert stored.tolist() == [1, -2]


def test_a_state_is_carried_from_run_to_run_unless_the_run_fails() -> None:
    count = variable_value("count", TensorType(DType.I64, (1,)))
    x = input_value("x", TensorType(DType.I64, (1,)))
    more = ops.Add()(count, x)
    graph = Graph((x,), (ops.Div()(more, x), count), ("y", "old"), {"count": more})
    info = VariableInfo("count", TensorType(DType.I64, (1,)), Role.STATE)
    with Session(Model(Module({"infer": graph}, {"count": info})), ONE) as session:
        assert [session([2])[0][0] for _ in range(3)] == [1, 2, 3]
        with pytest.raises(KernelError):
            session([0])
        assert session([2])[1][0] == 6


def conv_model(*, grows: bool) -> Model:
    """A convolution, whose weight may grow by itself in every run."""
    weight = np.random.default_rng(0).standard_normal((32, 32, 3, 3), "f4")
    stored = ops.PackPanels((2, 3, 1, 0)).reference(weight)
    type_ = TensorType(DType.F32, stored.shape)
    w, x = variable_value("w", type_), input_value("x", f32(1, N, 20, 32))
    updates = {"w": ops.Add()(w, w)} if grows else {}
    graph = Graph((x,), (ops.Conv(32, (3, 3))(x, w),), ("y",), updates)
    info = VariableInfo("w", type_, Role.STATE, stored)
    return Model(Module({"infer": graph}, {"w": info}))


def test_other_forms_of_variables_are_shared_by_plans_and_may_be_declined() -> None:
    rng = np.random.default_rng(0)
    made, plain = conv_model(grows=False), SessionConfig(threads=1, winograd=False)
    xs = [rng.standard_normal((1, rows, 20, 32), "f4") for rows in (20, 24, 20)]
    with Session(made, ONE) as session, Session(made, plain) as exact:
        for x in xs:
            np.testing.assert_allclose(session(x), exact(x), rtol=0, atol=1e-3)
            assert session.memory.prepared_bytes == 36 * 32 * 32 * 4
        assert exact.memory.prepared_bytes == 0
        (row,) = session.profile({"x": xs[0]}, runs=1).rows
        assert (row.kernel or "").endswith("winograd4_products_f32")


def test_what_a_run_assigns_is_kept_in_one_form() -> None:
    x = np.random.default_rng(0).standard_normal((1, 20, 20, 32), "f4")
    with Session(conv_model(grows=True), ONE) as session:
        first = np.array(session(x))
        np.testing.assert_array_equal(session(x), first * 2)
        assert session.memory.prepared_bytes == 0


def test_plans_are_kept_for_the_last_shapes_only() -> None:
    with Session(sum_model(), SessionConfig(threads=1, max_plans=2)) as session:
        for rows in (1, 2, 1, 3, 1):
            session.run(feed(rows))
        function = session._functions["infer"]
        assert isinstance(function, Function)
        kept = [shapes[0][0] for shapes in function._ready]
        assert kept == [3, 1]


def big_model() -> Model:
    x = input_value("x", f32(N, 64))
    a = ops.Softmax(1)(x)
    return model({"x": x}, {"y": ops.Add()(ops.Mul()(a, x), ops.Softmax(1)(a))})


def test_memory_tells_of_the_largest_plan_and_its_bound() -> None:
    with Session(big_model(), ONE) as session:
        assert session.memory == (0, 0, 0, 0)
        for rows in (50, 200, 3):
            session(np.ones((rows, 64), "f4"))
        memory = session.memory
        assert memory.lower_bound_bytes <= memory.arena_bytes
        assert memory.arena_bytes <= 1.15 * memory.lower_bound_bytes
        assert memory.lower_bound_bytes >= 200 * 64 * 4


def test_a_plan_beyond_the_arena_limit_is_refused() -> None:
    config = SessionConfig(threads=1, arena_limit=60_000)
    with Session(big_model(), config) as session:
        wanted = session(np.ones((8, 64), "f4"))
        with pytest.raises(ConfigError, match=r"arena_limit=60000: .* needs"):
            session(np.ones((1000, 64), "f4"))
        np.testing.assert_array_equal(session(np.ones((8, 64), "f4")), wanted)


def test_a_smaller_plan_still_works_after_the_arena_has_moved() -> None:
    rng = np.random.default_rng(0)
    small, large = (rng.standard_normal((rows, 64)).astype("f4") for rows in (2, 999))
    with Session(big_model(), ONE) as session:
        before = session(small)
        session(large)
        np.testing.assert_array_equal(session(small), before)


def test_many_threads_may_call_one_session() -> None:
    rng = np.random.default_rng(1)
    batches = [rng.standard_normal((rows, 64)).astype("f4") for rows in range(1, 9)]
    with Session(big_model(), SessionConfig(threads=2)) as session:
        wanted = [session(batch) for batch in batches]
        wrong: list[int] = []

        def caller(index: int) -> None:
            batch, want = batches[index], wanted[index]
            same = [np.array_equal(session(batch), want) for _ in range(20)]
            wrong.extend([index] * same.count(False))

        threads = [threading.Thread(target=caller, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_profile_has_a_row_for_every_op_and_can_be_shown(tmp_path: Path) -> None:
    with Session(big_model(), ONE) as session:
        profile = session.profile({"x": np.ones((40, 64), "f4")}, runs=3)
        with pytest.raises(ConfigError, match="runs=0"):
            session.profile({"x": np.ones((40, 64), "f4")}, runs=0)
    assert sorted(row.op for row in profile.rows) == [
        "add",
        "mul",
        "softmax",
        "softmax",
    ]
    for row in profile.rows:
        assert row.kernel
        assert row.precision == "float32"
        assert row.seconds > 0
        assert row.bytes >= 2 * 40 * 64 * 4
    assert "softmax" in profile.table()
    profile.chrome_trace(tmp_path / "trace.json")
    assert "traceEvents" in (tmp_path / "trace.json").read_text()


def test_a_run_without_memory_ends_in_an_error_of_ours_and_the_session_lives(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Executable, "run", full)
        with pytest.raises(EdgewiseError, match="more memory than there is"):
            session.run(feed())
    session.run(feed())


def test_a_closed_session_says_so() -> None:
    session = Session(sum_model(), ONE)
    session.close()
    session.close()
    for use in (
        lambda: session.run(feed()),
        lambda: session(1, 2),
        lambda: session.memory,
    ):
        with pytest.raises(ConfigError, match="closed"):
            use()


def test_a_run_keeps_no_hold_of_its_inputs(session: Session) -> None:
    inputs = feed()
    watched = [weakref.ref(array) for array in inputs.values()]
    session.run(inputs)
    del inputs
    gc.collect()
    assert [ref() for ref in watched] == [None, None]


def test_a_file_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.ew"
    path.write_bytes(b"not a model at all" * 10)
    with pytest.raises(ModelFormatError, match=r"broken\.ew"):
        Session(path)
    with pytest.raises(ModelFormatError, match=r"missing\.ew"):
        Session(tmp_path / "missing.ew")


def test_a_session_opens_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sum.ew"
    sum_model().save(path)
    with Session(str(path), ONE) as session:
        assert session.run(feed())["y"].shape == (2, 3)


def test_delegates_and_cpus_that_are_not_there_are_refused() -> None:
    with pytest.raises(DelegateError, match="'npu'"):
        Session(sum_model(), SessionConfig(delegates=("npu",)))
    with pytest.raises(ConfigError, match="99999"):
        Session(sum_model(), SessionConfig(cores=(99999,)))


def test_the_environment_sets_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWISE_THREADS", "many")
    with pytest.raises(ConfigError, match="EDGEWISE_THREADS='many'"):
        Session(sum_model())
    monkeypatch.setenv("EDGEWISE_THREADS", "1")
    with Session(sum_model()) as session:
        assert session.threads == 1
