"""A plan with addresses: words that native code reads, and references between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import NamedTuple, TypeAlias

import numpy as np

from edgewise.errors import KERNEL_FAULT, EdgewiseError, InternalError, KernelError
from edgewise.ir.op import Array
from edgewise.plan.flat import ABSENT
from edgewise.plan.plan import Plan
from edgewise.plan.storage import ARENA, Base, Place
from edgewise.runtime import memory
from edgewise.runtime.memory import Arena
from edgewise.runtime.native import STEP_WORDS, Native

# Do steps ``[first, last)`` of a table: 0, or ``step * 256 + status``.
RunSteps: TypeAlias = Callable[[int, int, int], int]
# A thread takes as many tasks at once as leave this many turns in a step.
TURNS = 64


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
    """

    def __init__(
        self,
        plan: Plan,
        arena: Arena,
        variables: Mapping[str, Array],
        native: Native,
        run_steps: RunSteps,
    ) -> None:
        arena.reserve(plan.layout.size)
        self.plan = plan
        self._arena, self._variables, self._run_steps = arena, variables, run_steps
        self._words = memory.words(len(plan.steps.words))
        self._words[: len(plan.steps.words)] = plan.steps.words
        self._cells = self._words.data
        self._table = self._steps(native)
        self._steps_at = memory.address(self._table)
        self._parts = _parts(plan)
        self._singly = tuple(single for part in self._parts for single in _cut(part))
        self._inputs: Sequence[Array] = ()
        self._outputs: Sequence[Array] = ()
        self._output_types = [
            (plan.types[number].dims, plan.types[number].dtype.numpy)
            for number in plan.flat.outputs
        ]
        self._at: dict[Base, int] = {}
        for base in plan.steps.addresses:
            self._at[base] = 0
            if base.place in (Place.VARIABLE, Place.CONSTANT):
                self._move(base, memory.address(self._fixed(base)))
        self._moving = [
            (base, base.place is Place.INPUT, int(base.key))
            for base in plan.steps.addresses
            if base.place in (Place.INPUT, Place.OUTPUT)
        ]

    def _steps(self, native: Native) -> Array:
        rows = self.plan.steps.rows
        table = memory.words(STEP_WORDS * len(rows))
        start = memory.address(self._words)
        values: list[int] = []
        for row in rows:
            chunk = max(1, row.tasks // TURNS)
            values += native.address(row.symbol), start + 8 * row.start
            values += row.tasks, chunk
        table[: len(values)] = values
        return table

    def _fixed(self, base: Base) -> Array:
        if base.place is Place.VARIABLE:
            return self._variables[str(base.key)]
        return self.plan.storage.constants[int(base.key)]

    def _move(self, base: Base, address: int) -> None:
        """Let the words that count from ``base`` count from ``address``."""
        distance = address - self._at[base]
        if distance:
            cells = self._cells
            for position in self.plan.steps.addresses[base]:
                cells[position] += distance
            self._at[base] = address

    def empty_outputs(self) -> list[Array]:
        """Fresh arrays for all outputs."""
        return [np.empty(shape, dtype) for shape, dtype in self._output_types]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute ``outputs`` from ``inputs``: contiguous arrays of the plan's types.

        Raises:
            KernelError: A step stopped; variables are as before the run.
        """
        self._attach(inputs, outputs)
        try:
            for part in self._parts:
                self._do(part)
            self._finish(outputs)
        finally:
            self._inputs = self._outputs = ()

    def timed(
        self, inputs: Sequence[Array], outputs: Sequence[Array], seconds: list[float]
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
            self._inputs = self._outputs = ()

    def _attach(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if self._at.get(ARENA, self._arena.base) != self._arena.base:
            self._move(ARENA, self._arena.base)
        self._inputs, self._outputs = inputs, outputs
        for base, given, position in self._moving:
            at = memory.address((inputs if given else outputs)[position])
            if at != self._at[base]:
                self._move(base, at)

    def _do(self, part: Part) -> None:
        if part.node != ABSENT:
            self._reference(part.node)
            return
        status = self._run_steps(self._steps_at, part.first, part.last)
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
        try:
            results = op.reference(*inputs)
        except EdgewiseError:
            raise
        except Exception as error:
            raise self._stopped(index, KERNEL_FAULT) from error
        if not isinstance(results, tuple):
            results = (results,)
        for number, result in zip(plan.flat.writes[index], results, strict=True):
            target = self.value(number)
            if np.shape(result) != target.shape or result.dtype != target.dtype:
                raise InternalError(
                    f"{op.name}: its reference gave {result.dtype}"
                    f"{list(np.shape(result))}; want {plan.types[number]}"
                )
            target[...] = result

    def value(self, number: int) -> Array:
        """A value's memory, valid during the run."""
        base, offset = self.plan.locations[number]
        type_ = self.plan.types[number]
        if base.place is Place.ARENA:
            return memory.view(self._arena.memory, offset, type_)
        if base.place is Place.INPUT:
            array = self._inputs[int(base.key)]
        elif base.place is Place.OUTPUT:
            array = self._outputs[int(base.key)]
        else:
            array = self._fixed(base)
        return array.reshape(type_.dims)

    def _finish(self, outputs: Sequence[Array]) -> None:
        plan = self.plan
        for position in plan.output_copies:
            outputs[position][...] = self.value(plan.flat.outputs[position])
        fresh = []
        for key in plan.update_copies:
            number = plan.flat.updates[key]
            source = self.value(number)
            # Two variables may change places: the first must not hide the second.
            aliases = plan.locations[number][0].place is Place.VARIABLE
            fresh.append((key, source.copy() if aliases else source))
        for key, source in fresh:
            self._variables[key][...] = source


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
