"""What a learner knows at one time; it is replaced as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from numbers import Integral
from typing import NamedTuple, Self

from edgewise.errors import ConfigError
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise_trainer.incremental.classes import class_count, grown, growth, masked
from edgewise_trainer.incremental.cut import halves
from edgewise_trainer.incremental.ewc import Past
from edgewise_trainer.losses import Loss, picks_classes
from edgewise_trainer.wanted import want_count, want_kinds

ALL = "all"


class Knowledge(NamedTuple):
    """A model, and what it has learned.

    Attributes:
        whole: The model, without a mask.
        seen: Classes that it was taught; None where its output is not of classes.
        past: What earlier tasks need of its parameters.
        cut: Where it is cut; None: all of it may learn.
    """

    whole: Model
    seen: frozenset[int] | None
    past: Past
    cut: str | None

    @property
    def learning(self) -> Model:
        """What is trained: all of it, or what lies behind the cut."""
        return self.whole if self.cut is None else halves(self.whole, self.cut).back

    @property
    def among_seen(self) -> Model:
        """What is trained, among the classes seen."""
        return self.among(self.learning)

    def among(self, model: Model) -> Model:
        """A model among the classes seen."""
        return model if self.seen is None else masked(model, self.seen)

    def with_classes(self, classes: Iterable[int]) -> Self:
        """With more classes, for which the head grows if need be.

        Raises:
            ConfigError: The head cannot grow.
        """
        if self.seen is None:
            return self
        # What is below 0 does not count, and is no class.
        seen = self.seen | {number for number in classes if number >= 0}
        more = growth(self.whole, max(seen, default=-1) + 1)
        if more is None:
            return self._replace(seen=seen)
        whole, past = grown(self.whole, more), self.past.grown(more)
        return self._replace(whole=whole, seen=seen, past=past)

    def with_trained(self, trained: Model) -> Self:
        """With the parameters and statistics of what was trained."""
        module = self.whole.module
        variables = {**module.variables, **trained.module.variables}
        return self._replace(
            whole=Model(Module(module.functions, variables, module.metadata))
        )


def beginning(
    model: Model, loss: Loss, known: Collection[int] | str, cut: str | None
) -> Knowledge:
    """What a learner knows at first.

    Args:
        model: What it begins with.
        loss: Of its first output: it tells whether that is of classes.
        known: Classes that it knows, or ``"all"``.
        cut: A tensor, or ``"last:K"``; None: all of it may learn.

    Raises:
        ConfigError: The output is not of classes, or ``known`` is something else.
    """
    nothing = Past({}, {})
    if not picks_classes(loss):
        return Knowledge(model, None, nothing, cut)
    count = class_count(model)
    if isinstance(known, str):
        if known != ALL:
            raise ConfigError(f"known={known!r}: want 'all', or numbers of classes")
        known = range(count)
    want_kinds("known", known, Integral, "'all', or numbers of classes")
    for number in known:
        want_count("known", number, 0)
    return Knowledge(model, frozenset(), nothing, cut).with_classes(map(int, known))
