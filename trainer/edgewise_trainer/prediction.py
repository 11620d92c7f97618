"""What a training step will take of memory and time, told from its plan."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import NamedTuple

from edgewise.ir.module import Module
from edgewise.plan.plan import Plan
from edgewise.plan.storage import Place
from edgewise.runtime import library, memory
from edgewise.runtime.native import STEP_WORDS
from edgewise.runtime.variables import constant_bytes
from edgewise.types import TensorType

# Of Python: a process that plans its first graph, and each node (MobileNetV2's steps of
# 94 to 3203 nodes, measured).
BASE, NODE = 6 << 20, 6 << 10
# A reference computes in numpy, much of it in double precision.
REFERENCE_COPIES, REFERENCE_SLOWER = 3, 20
# Of the peak of multiply-adds, what kernels reach; bytes a second of one thread.
REACHED, MOVED = 0.6, 14e9
LAUNCH = 2e-6  # seconds, of every op
PROBE = 200_000  # steps of 96 multiply-adds: half a millisecond


class Prediction(NamedTuple):
    """What a step will take.

    Attributes:
        peak_bytes: By how much the process grows at most, what the caller feeds aside.
        seconds: Time of a step.
    """

    peak_bytes: int
    seconds: float


def peak_bytes(plans: Sequence[Plan], module: Module, *, mapped: bool) -> int:
    """Bytes by which a process grows that runs plans, one at a time, in one arena.

    Args:
        plans: Those of a step.
        module: What holds the step.
        mapped: Whether its arrays lie in a file, of which pages become part of the
            process as they are read.
    """
    assigned = {key for graph in module.functions.values() for key in graph.updates}
    infos = module.variables
    held = sum(infos[key].type.bytes for key in assigned)
    if mapped:
        read = [i.initial.nbytes for i in infos.values() if i.initial is not None]
        held += sum(read) + sum(map(constant_bytes, module.functions.values()))
    recipes = {recipe for plan in plans for recipe in plan.prepared}
    held += sum(recipe.how.size for recipe in recipes)
    run = max(plan.layout.size + _beside(plan) for plan in plans)
    return BASE + NODE * sum(len(plan.ops) for plan in plans) + held + run


def seconds(plan: Plan, threads: int) -> float:
    """Time of a run, from what each op multiplies and moves."""
    rate = REACHED * multiply_adds_a_second() * threads
    total = 0.0
    for index, op in enumerate(plan.ops):
        types = [plan.types[n] if n >= 0 else None for n in plan.flat.reads[index]]
        made = [plan.types[n] for n in plan.flat.writes[index]]
        tensors = [t for t in (*types, *made) if isinstance(t, TensorType)]
        # What has become part of another op reads nothing.
        if op.view or op.bodies() or not types or len(tensors) < len(made):
            continue
        cost = op.cost(
            tuple(t if isinstance(t, TensorType) else None for t in types),
            tuple(t for t in made if isinstance(t, TensorType)),
        )
        slower = 1 if plan.bindings[index] is not None else REFERENCE_SLOWER
        total += LAUNCH + slower * (cost.macs / rate + cost.bytes / MOVED)
    return total


def multiply_adds_a_second() -> float:
    """What one thread of this machine does at best."""
    words, table = memory.words(3), memory.words(STEP_WORDS)
    place = memory.empty(64)
    small = struct.unpack("<i", struct.pack("<f", 0.5))[0]
    words[:] = memory.address(place), small, small
    native = library.load()
    address = native.address("peak_f32")
    table[:] = address, memory.address(words), PROBE, PROBE
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        native.run(0, memory.address(table), 0, 1, 1)
        best = min(best, time.perf_counter() - start)
    return 96 * PROBE / best


def predicted(
    plans: Sequence[Plan], module: Module, threads: int, *, mapped: bool
) -> Prediction:
    """Memory and time of plans that run one after the other."""
    total = sum(seconds(plan, threads) for plan in plans)
    return Prediction(peak_bytes(plans, module, mapped=mapped), total)


def _beside(plan: Plan) -> int:
    """Bytes of a run outside its arena: outputs, and what references compute with."""
    outputs = sum(
        buffer.size
        for buffer in plan.storage.buffers
        if buffer.base.place is Place.OUTPUT
    )
    return outputs + REFERENCE_COPIES * _largest_reference(plan)


def _largest_reference(plan: Plan) -> int:
    """Bytes that the largest op without kernels reads and makes."""
    largest = 0
    for segment in plan.segments:
        if not segment.native:
            node = segment.nodes[0]
            numbers = (*plan.flat.reads[node], *plan.flat.writes[node])
            types = [plan.types[n] for n in numbers if n >= 0]
            sizes = [t.bytes for t in types if isinstance(t, TensorType)]
            largest = max(largest, sum(sizes))
    return largest
