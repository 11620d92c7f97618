"""No two values that live at one time share memory, whatever the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.ir.graph import Graph, Value, constant, input_value, variable_value
from edgewise.ir.op import Array, Op, Sample
from edgewise.kernels.catalog.base import Binding, Call, In, Launch, Out, Scratch, Temp
from edgewise.ops import SgdUpdate
from edgewise.plan.arena import ALIGNMENT, Block, arrange
from edgewise.plan.flat import ABSENT, Flat
from edgewise.plan.plan import Plan, make_plan
from edgewise.plan.storage import Base, Place
from edgewise.types import DType, TensorType

ROW = TensorType(DType.F32, (33,))
LONG = TensorType(DType.F32, (2, 33))
WHOLE = TensorType(DType.I32, (33,))


class Toy(Op):
    """An op that exists for a test only; the tests plan it and never run it."""

    def reference(self, *inputs: Array) -> Array:
        raise NotImplementedError

    @staticmethod
    def samples() -> Iterator[Sample]:
        return iter(())


class Mix(Toy):
    """Elementwise on any number of equal inputs."""

    name: ClassVar[str] = "mix"
    in_place = (0, 1)

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]


class Window(Toy):
    """Reads its first input all over; may overwrite the second."""

    name: ClassVar[str] = "window"
    in_place = (1,)

    def infer(self, x: TensorType, *_rest: TensorType | None) -> TensorType:
        return x


class Halves(Toy):
    """Two outputs."""

    name: ClassVar[str] = "halves"

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        return x, ROW


class Flatten(Toy):
    """A view."""

    name: ClassVar[str] = "flatten"
    view = True

    def infer(self, x: TensorType) -> TensorType:
        return x.with_shape((x.elements,))


class Bits(Toy):
    """Another element type of the same size."""

    name: ClassVar[str] = "bits"
    in_place = (0,)

    def infer(self, x: TensorType) -> TensorType:
        return x.with_dtype(DType.I32 if x.dtype is DType.F32 else DType.F32)


def with_temporaries(call: Call) -> Binding | None:
    """A kernel for everything but ``halves``: temporaries and scratch of odd sizes."""
    if call.op.name == "halves":
        return None
    words = (*map(In, range(len(call.inputs))), Out(0), Temp(0, 8), Scratch(), 7)
    return Binding((Launch("toy", words, 3),), temps=(100,), scratch=64)


class Simulation:
    """Runs a plan on memory in which every byte says whose value it holds."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.memory: dict[Base, Array] = {}
        self.token = list(range(len(plan.types)))

    def bytes_of(self, number: int) -> Array:
        base, offset = self.plan.locations[number]
        memory = self.memory.setdefault(
            base, np.full(max(plan_size(self.plan, base), 1), -1)
        )
        size = self.plan.types[number].bytes
        assert offset + size <= memory.size
        assert offset % ALIGNMENT == 0
        return memory[offset : offset + size]

    def read(self, number: int) -> None:
        assert (self.bytes_of(number) == self.token[number]).all(), number

    def write(self, number: int) -> None:
        assert self.plan.locations[number][0].place in (Place.ARENA, Place.OUTPUT)
        self.bytes_of(number)[:] = number

    def run(self) -> None:
        flat = self.plan.flat
        leaves = [number for number, _ in flat.leaves]
        for number in leaves:
            self.bytes_of(number)[:] = number
        for index, op in enumerate(self.plan.ops):
            reads = [n for n in flat.reads[index] if n != ABSENT]
            if op.view:
                self.alias(flat.writes[index][0], reads[0])
            else:
                self.step(index, reads, flat.writes[index])
        for number in (*leaves, *flat.outputs, *flat.updates.values()):
            self.read(number)

    def alias(self, made: int, source: int) -> None:
        assert self.plan.locations[made] == self.plan.locations[source]
        self.token[made] = self.token[source]

    def step(self, index: int, reads: list[int], writes: tuple[int, ...]) -> None:
        temporaries = self.temporaries(index)
        for area in temporaries:
            area[:] = -2
        for number in reads:
            self.read(number)
        for number in writes:
            self.write(number)
        for number in writes:
            self.read(number)
        assert all((area == -2).all() for area in temporaries)

    def temporaries(self, index: int) -> list[Array]:
        """The bytes of the temporary and of three workers' scratch."""
        memory = self.memory.setdefault(ARENA, np.full(self.plan.layout.size, -1))
        words = self.plan.steps.words
        for row in self.plan.steps.rows:
            if row.node == index:
                last = row.start + len(self.plan.bindings[index].launches[0].words)
                temp, scratch = words[last - 3] - 8, words[last - 2]
                return [memory[temp : temp + 100], memory[scratch : scratch + 192]]
        return []


ARENA = Base(Place.ARENA, 0)


def plan_size(plan: Plan, base: Base) -> int:
    if base == ARENA:
        return plan.layout.size
    return max(buffer.size for buffer in plan.storage.buffers if buffer.base == base)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    inputs = (input_value("x", ROW), input_value("y", LONG))
    values = [*inputs, variable_value("w", ROW), constant(np.ones(33, np.float32))]

    def pick(like: TensorType | None = None) -> Value:
        return draw(
            st.sampled_from([v for v in values if like is None or v.type == like])
        )

    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(["mix", "window", "halves", "flatten", "bits"]))
        x = pick()
        if kind == "mix":
            values.append(Mix()(x, pick(x.type)))
        elif kind == "window":
            values.append(Window()(x, draw(st.sampled_from([None, pick(x.type)]))))
        elif kind == "halves":
            values.extend(Halves().node(x))
        elif kind == "flatten":
            values.append(Flatten()(x))
        else:
            values.append(Bits()(x))
    outputs = tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=4)))
    updates = {"w": pick(ROW)} if draw(st.booleans()) else {}
    names = tuple(f"out{index}" for index in range(len(outputs)))
    return Graph(inputs, outputs, names, updates)


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_every_value_is_whole_when_it_is_read(graph: Graph) -> None:
    Simulation(make_plan(Flat(graph), workers=3, find=with_temporaries)).run()


@st.composite
def block_lists(draw: st.DrawFn) -> list[Block]:
    moments = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)
    pairs = draw(st.lists(st.tuples(st.integers(0, 500), moments), max_size=40))
    return [Block(size, first, last) for size, (first, last) in pairs]


@settings(deadline=None, max_examples=60)
@given(block_lists())
def test_blocks_that_meet_in_time_do_not_meet_in_memory(blocks: list[Block]) -> None:
    layout = arrange(blocks)
    for i, a in enumerate(blocks):
        assert layout.offsets[i] % ALIGNMENT == 0
        assert layout.offsets[i] + a.size <= layout.size
        for j, b in enumerate(blocks[:i]):
            if a.first <= b.last and b.first <= a.last and a.size and b.size:
                start, other = layout.offsets[i], layout.offsets[j]
                assert start + a.size <= other or other + b.size <= start
    assert layout.size >= layout.lower_bound


def test_no_blocks_take_no_memory() -> None:
    assert arrange([]) == ([], 0, 0)


def test_a_chain_of_elementwise_ops_takes_one_buffer() -> None:
    x = input_value("x", ROW)
    y = Mix()(x)
    for _ in range(5):
        y = Mix()(y)
    plan = make_plan(Flat(Graph((x,), (y,), ("y",))), find=with_temporaries)
    made = {plan.locations[n] for writes in plan.flat.writes for n in writes}
    assert made == {(Base(Place.OUTPUT, 0), 0)}


@pytest.mark.parametrize("leaf", [variable_value("w", ROW), constant(np.ones(33))])
def test_variables_and_constants_are_never_overwritten(leaf: Value) -> None:
    graph = Graph((), (Mix()(leaf),), ("y",))
    plan = make_plan(Flat(graph), find=with_temporaries)
    assert plan.locations[plan.flat.outputs[0]][0] == Base(Place.OUTPUT, 0)


def test_an_input_that_is_read_by_an_unsafe_slot_too_is_not_overwritten() -> None:
    x = input_value("x", ROW)
    dying = Mix()(x)
    graph = Graph((x,), (Mix()(Window()(dying, dying), x),), ("y",))
    plan = make_plan(Flat(graph), find=with_temporaries)
    window = plan.flat.writes[1][0]
    assert plan.locations[window] != plan.locations[plan.flat.reads[1][0]]


def test_an_output_that_is_an_input_or_given_twice_is_copied() -> None:
    x = input_value("x", ROW)
    y = Mix()(x)
    graph = Graph((x,), (x, y, y, Flatten()(x)), ("a", "b", "c", "d"))
    plan = make_plan(Flat(graph), find=with_temporaries)
    assert plan.output_copies == (0, 2, 3)


def test_an_empty_tensor_takes_no_memory() -> None:
    x = input_value("x", TensorType(DType.F32, (0, 4)))
    y = Window()(Window()(x, None), None)
    plan = make_plan(Flat(Graph((x,), (y,), ("y",))), find=lambda _: None)
    assert plan.layout.size == 0


def test_a_variable_is_written_directly_only_where_nothing_reads_it() -> None:
    w, v = variable_value("w", ROW), variable_value("v", ROW)
    updates = {"w": Mix()(v), "derived": Window()(v, None)}
    graph = Graph((), (Mix()(w),), ("y",), updates)
    direct = {"w", "derived"}
    plan = make_plan(Flat(graph), direct=direct, find=with_temporaries)
    assert plan.update_copies == ("w",)
    assert Base(Place.VARIABLE, "derived") in {base for base, _ in plan.locations}


def update(*behind: Value) -> Flat:
    """A step of descent, and other outputs that the graph gives."""
    w, grad = variable_value("w", ROW), input_value("grad", ROW)
    rate = input_value("rate", TensorType(DType.F32, ()))
    new = SgdUpdate(0.9).node(w, grad, rate, variable_value("v", ROW))
    updates = dict(zip(("w", "v"), new, strict=True))
    names = tuple(map(str, range(len(behind))))
    return Flat(Graph((grad, rate), behind, names, updates))


def test_a_step_of_an_optimizer_overwrites_what_nothing_else_reads() -> None:
    flat = update()
    plan = make_plan(flat)
    assert plan.update_copies == ()
    assert plan.layout.size == 0
    for key, number in flat.updates.items():
        assert plan.locations[number] == (Base(Place.VARIABLE, key), 0)


def test_a_variable_that_is_given_back_too_is_not_overwritten() -> None:
    flat = update(variable_value("v", ROW))
    assert make_plan(flat).update_copies == ("v",)


def test_no_variable_is_overwritten_before_the_last_reference() -> None:
    flat = update()
    assert make_plan(flat, find=lambda _: None).update_copies == ("w", "v")
