"""A plan with addresses: words that native code reads, and references between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from edgewise.errors import KernelError
from edgewise.ir.op import Array, Call
from edgewise.ir.reference import outputs_of_node
from edgewise.named import NamedTuple
from edgewise.plan.flat import ABSENT
from edgewise.plan.plan import Plan
from edgewise.plan.storage import ARENA, Base, Place
from edgewise.runtime import memory, objects
from edgewise.runtime.memory import Arena
from edgewise.runtime.native import STEP_WORDS, Native
from edgewise.runtime.prepared import Preparations
from edgewise.types import TensorType, ValueType

# Do steps ``[first, last)`` of a table: 0, or ``step * 256 + status``.
RunSteps: TypeAlias = Callable[[int, int, int], int]
# A thread takes as many tasks at once as leave this many turns in a step.
TURNS = 64
NOWHERE = -1  # where words count from while they are being written


class Part(NamedTuple):
    """Native steps ``[first, last)``; or one node by reference, unless ``ABSENT``."""

    first: int
    last: int
    node: int


class Executable:
    """One plan, ready to run; one run at a time.

    Args:
        plan: What to run.
        arena: Working memory, shared with other plans; may move when it grows.
        variables: Arrays of the variables, which never move.
        native: The kernel library.
        run_steps: Runs native steps, with threads as the session has them.
        call: Runs the functions that its ops have as bodies.
        prepared: Other forms of the variables.
    """

    def __init__(
        self,
        plan: Plan,
        arena: Arena,
        variables: Mapping[str, Array],
        native: Native,
        run_steps: RunSteps,
        call: Call,
        prepared: Preparations,
    ) -> None:
        arena.reserve(plan.layout.size)
        self.plan = plan
        self._arena, self._variables, self._run_steps = arena, variables, run_steps
        self._call, self._objects = call, dict[int, Any]()
        self._prepared = prepared
        self._room = objects.Room(call.limit)
        self._words = memory.words(len(plan.steps.words))
        self._words[: len(plan.steps.words)] = plan.steps.words
        self._cells = self._words.data
        self._table = self._steps(native)
        self._steps_at = memory.address(self._table)
        self._parts = _parts(plan)
        self._singly = tuple(single for part in self._parts for single in _cut(part))
        self._inputs: Sequence[Any] = ()
        self._outputs: list[Any] = []
        self._empty = [_maker(plan.types[number]) for number in plan.flat.outputs]
        self._copies = bool(plan.output_copies or plan.update_copies)
        anchors = {base: self._anchor(base) for base in plan.steps.addresses}
        self._in_arena = anchors.get(ARENA)
        self._given, self._made = (
            [(int(b.key), a) for b, a in anchors.items() if b.place is place]
            for place in (Place.INPUT, Place.OUTPUT)
        )

    def _steps(self, native: Native) -> Array:
        rows = self.plan.steps.rows
        table = memory.words(STEP_WORDS * len(rows))
        start = memory.address(self._words)
        values: list[int] = []
        addresses = {row.symbol: 0 for row in rows}
        for symbol in addresses:
            addresses[symbol] = native.address(symbol)
        for symbol, place, tasks, _ in rows:
            chunk = max(1, tasks // TURNS)
            values += addresses[symbol], start + 8 * place, tasks, chunk
        table[: len(values)] = values
        return table

    def _fixed(self, base: Base) -> Array:
        if base.place is Place.VARIABLE:
            return self._variables[str(base.key)]
        if base.place is Place.PREPARED:
            return self._prepared.get(self.plan.prepared[int(base.key)])
        return self.plan.storage.constants[int(base.key)]

    def _anchor(self, base: Base) -> Anchor:
        """The words that count from ``base``, written where that never moves."""
        steps = self.plan.steps
        anchor = Anchor(self._cells, steps.addresses[base], steps.words)
        if base.place in (Place.VARIABLE, Place.CONSTANT, Place.PREPARED):
            anchor.move(memory.address(self._fixed(base)))
        return anchor

    def empty_outputs(self) -> list[Any]:
        """Fresh arrays for all outputs; None for those that are no arrays."""
        return [make() for make in self._empty]

    def run(self, inputs: Sequence[Any], outputs: list[Any]) -> None:
        """Compute ``outputs`` from ``inputs``: contiguous arrays of the plan's types.

        An output that is no array is put into the list.

        Raises:
            KernelError: A step stopped; variables are as before the run.
        """
        self._attach(inputs, outputs)
        try:
            for part in self._parts:
                self._do(part)
            if self._copies:
                self._finish(outputs)
        finally:
            self._detach()

    def timed(
        self, inputs: Sequence[Any], outputs: list[Any], seconds: list[float]
    ) -> None:
        """Run step by step, adding the time of each node to ``seconds``."""
        self._attach(inputs, outputs)
        try:
            for part in self._singly:
                node = part.node
                if node == ABSENT:
                    node = self.plan.steps.rows[part.first].node
                start = perf_counter()
                self._do(part)
                seconds[node] += perf_counter() - start
            self._finish(outputs)
        finally:
            self._detach()

    def _detach(self) -> None:
        self._inputs, self._outputs = (), []
        self._objects.clear()
        self._room.clear()

    def _attach(self, inputs: Sequence[Any], outputs: list[Any]) -> None:
        if self._in_arena is not None:
            self._in_arena.move(self._arena.base)
        self._inputs, self._outputs = inputs, outputs
        for position, anchor in self._given:
            anchor.move(memory.address(inputs[position]))
        for position, anchor in self._made:
            anchor.move(memory.address(outputs[position]))

    def _do(self, part: Part) -> None:
        first, last, node = part
        if node != ABSENT:
            self._reference(node)
            return
        status = self._run_steps(self._steps_at, first, last)
        if status:
            step, code = divmod(status, 256)
            raise self._stopped(self.plan.steps.rows[step].node, code)

    def _stopped(self, index: int, code: int) -> KernelError:
        node = self.plan.flat.nodes[index]
        return KernelError(node.op.name, node.label, code)

    def _reference(self, index: int) -> None:
        plan = self.plan
        op = plan.ops[index]
        inputs = [
            None if number == ABSENT else self.value(number)
            for number in plan.flat.reads[index]
        ]
        numbers = plan.flat.writes[index]
        types = tuple([plan.types[number] for number in numbers])
        label = plan.flat.nodes[index].label
        results = outputs_of_node(op, label, inputs, types, self._call)
        for number, result in zip(numbers, results, strict=True):
            base = plan.locations[number][0]
            if base.place is Place.OBJECT:
                kept = self._objects[int(base.key)] = objects.own(result)
                self._room.hold(op.name, kept, self._objects.values())
            else:
                self.value(number)[...] = result

    def value(self, number: int) -> Any:
        """A value's memory, valid during the run; or the object it is."""
        base, offset = self.plan.locations[number]
        type_ = self.plan.types[number]
        if not isinstance(type_, TensorType):
            return self._held(base)
        if base.place is Place.ARENA:
            return memory.view(self._arena.memory, offset, type_)
        return memory.part(self._held(base), offset, type_)

    def _held(self, base: Base) -> Any:
        """What lies at a base other than the arena."""
        if base.place is Place.INPUT:
            return self._inputs[int(base.key)]
        if base.place is Place.OUTPUT:
            return self._outputs[int(base.key)]
        if base.place is Place.OBJECT:
            return self._objects[int(base.key)]
        return self._fixed(base)

    def _finish(self, outputs: list[Any]) -> None:
        plan = self.plan
        for position in plan.output_copies:
            value = self.value(plan.flat.outputs[position])
            if outputs[position] is None:
                outputs[position] = value
            else:
                outputs[position][...] = value
        fresh = []
        for key in plan.update_copies:
            number = plan.flat.updates[key]
            source = self.value(number)
            # Two variables may change places: the first must not hide the second.
            aliases = plan.locations[number][0].place is Place.VARIABLE
            fresh.append((key, source.copy() if aliases else source))
        for key, source in fresh:
            self._variables[key][...] = source


class Anchor:
    """The words of a plan that count from one address."""

    __slots__ = ("_at", "_cells", "_words")

    def __init__(
        self, cells: memoryview, positions: Sequence[int], offsets: Sequence[int]
    ) -> None:
        self._cells, self._at = cells, NOWHERE
        self._words = [(position, offsets[position]) for position in positions]

    def move(self, address: int) -> None:
        """Let the words count from ``address``.

        An interrupt or a fork may come between any two of them.  So each is written
        whole, from its offset, and until all are the address counts as unknown.
        """
        if address == self._at:
            return
        self._at = NOWHERE
        cells = self._cells
        for position, offset in self._words:
            cells[position] = offset + address
        self._at = address


def _maker(type_: ValueType) -> Callable[[], Any]:
    """What makes memory for an output."""
    if isinstance(type_, TensorType):
        return partial(np.empty, type_.dims, type_.dtype.numpy)
    return lambda: None


def _parts(plan: Plan) -> tuple[Part, ...]:
    parts = []
    first = 0
    for segment in plan.segments:
        if segment.native:
            launches = (plan.bindings[node] for node in segment.nodes)
            last = first + sum(len(b.launches) for b in launches if b is not None)
            parts.append(Part(first, last, ABSENT))
            first = last
        else:
            parts.append(Part(0, 0, segment.nodes[0]))
    return tuple(parts)


def _cut(part: Part) -> tuple[Part, ...]:
    """A part as parts of one step each."""
    if part.node != ABSENT:
        return (part,)
    return tuple(Part(n, n + 1, ABSENT) for n in range(part.first, part.last))
