"""The way to do a step within so many bytes.

First all at once; then in parts of the batch, as large as fit; then with activations
made again, in more and more segments; then not at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from edgewise.errors import ConfigError
from edgewise.model import Model
from edgewise_trainer.prediction import peak_bytes
from edgewise_trainer.task import WHOLE, Step, Way
from edgewise_trainer.ways import batched, plans_of, work_of

SEGMENTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
TRIES = 6  # at the size of parts, before they are single examples


class Case(NamedTuple):
    """A step for which a way is sought.

    Attributes:
        model: The model.
        step: Its training step.
        batch: Examples of a batch.
        threads: That will run it.
    """

    model: Model
    step: Step
    batch: int
    threads: int

    def peak(self, way: Way) -> int:
        """By how much the process grows at most."""
        work = work_of(self.step, way, self.batch)
        module = work.module(self.model.module, self.step.states, {})
        examples = min(way.examples or self.batch, self.batch)
        plans = plans_of(work, module, examples, self.threads)
        return peak_bytes(plans, module, mapped=self.model.path is not None)


def way_within(case: Case, budget: int) -> Way:
    """The way that changes least and stays within ``budget`` bytes.

    Raises:
        ConfigError: There is none; the smallest budget that would do is named.
    """
    if case.step.graph.binders:
        raise ConfigError(
            "memory_budget: only a run knows the sizes of this model; leave it out"
        )
    if (least := case.peak(WHOLE)) <= budget:
        return WHOLE
    parts = case.batch > 1 and case.step.weight and batched(case.step.graph)
    for segments in SEGMENTS:
        way = Way(1 if parts else None, segments)
        peak = case.peak(way)
        if peak <= budget:
            return _larger(case, way, peak, budget) if parts else way
        least = min(least, peak)
    raise ConfigError(
        f"memory_budget={budget:,} bytes: a step of {case.batch} examples cannot do"
        f" with that; the smallest that would do is {least:,} bytes"
    )


def _larger(case: Case, way: Way, peak: int, budget: int) -> Way:
    """The way with the largest parts that stay within the budget.

    Memory grows about in proportion with examples: two sizes tell the rest.
    """
    half = -(-case.batch // 2)

    def at(examples: int) -> Way:
        return way._replace(examples=examples)

    more = case.peak(at(half)) if half > 1 else peak
    if more <= budget:
        return at(half)
    each = max((more - peak) / (half - 1), 1.0)
    parts = -(-case.batch // math.ceil(1 + (budget - peak) / each))
    for number in range(parts, parts + TRIES):
        examples = -(-case.batch // number)
        if examples == 1 or case.peak(at(examples)) <= budget:
            return at(examples)
    return way
