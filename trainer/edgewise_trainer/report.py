"""What a trainer will do, and what that will take: told before a step is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

TRAINED, FROZEN, UNREACHABLE = "trained", "frozen", "unreachable"
GRADIENT, NONE, NOT_NEEDED = "gradient", "none", "not needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainabilityReport:
    """What a trainer will do, and what it will take.

    Attributes:
        parameters: ``"trained"``, ``"frozen"`` or ``"unreachable"`` (to be trained, but
            the loss does not depend on it, or has no gradient) of every parameter.
        ops: ``"gradient"``, ``"none"`` or ``"not needed"`` (no trained parameter comes
            before it) of every op between inputs and loss, by kind and name.
        batch_size: What the predictions are for.
        peak_bytes: By how much the process will grow at most, from before the model was
            loaded, batches aside; None where only a run knows.
        seconds: Time of a step, roughly; None where only a run knows.
        problem: Why it cannot be trained; empty where it can.
        notes: What is done to keep to a budget of memory, and what that changes.
    """

    parameters: Mapping[str, str]
    ops: Mapping[str, str]
    batch_size: int
    peak_bytes: int | None
    seconds: float | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    shapes: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """A table of parameters, ops and what a step takes."""
        rows = [
            (name, self.shapes.get(name, ""), state)
            for name, state in self.parameters.items()
        ]
        rows += [("", "", ""), *_kinds(self.ops)]
        widths = [max(len(row[j]) for row in rows) for j in range(2)]
        lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}".rstrip() for a, b, c in rows]
        return "\n".join((*lines, "", *self._totals()))

    def _totals(self) -> list[str]:
        states = Counter(self.parameters.values())
        counts = ", ".join(f"{number} {state}" for state, number in states.items())
        lines = [f"parameters: {counts}"]
        if self.peak_bytes is not None and self.seconds is not None:
            lines.append(
                f"a step of batch {self.batch_size}: {self.peak_bytes / 2**20:.1f} MiB"
                f" at the peak, about {_duration(self.seconds)}"
            )
        return [*lines, *self.notes, *([self.problem] if self.problem else [])]


def _kinds(ops: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """How many ops of each kind; those without a gradient one by one."""
    counts = Counter((n.split()[0], s) for n, s in ops.items() if s != NONE)
    rows = [(kind, str(number), state) for (kind, state), number in counts.items()]
    return rows + [(name, "1", NONE) for name, state in ops.items() if state == NONE]


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
