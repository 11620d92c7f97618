"""The loop of a federated run: a round, what it came to, and what is kept of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgewise.errors import FederatedError
from edgewise.model import Model
from edgewise_federated.accountant import epsilon
from edgewise_federated.buffered import Buffered
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew
from edgewise_federated.history import FederatedHistory, Round
from edgewise_federated.ledger import Ledger, Owner
from edgewise_federated.order import Reply
from edgewise_federated.outcome import Way
from edgewise_federated.pace import Paced
from edgewise_federated.replies import Gate, Hook
from edgewise_federated.select import share_of
from edgewise_federated.strategy import Strategy
from edgewise_federated.together import Together
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer

FLOAT = 4  # bytes of a float32 on its way down

Callback = Callable[[Round], object]


class Loop:
    """One federated run.

    Args:
        config: What it is asked for.
        crew: The devices.
        strategy: Who is asked, and what is made of the answers.
        layout: What the numbers of the model are.
        trainer: Evaluates, and gives the model.
        evaluate: Evaluation data; None: none.
        hook: May change, drop or fail updates, for studying failures.
    """

    def __init__(
        self,
        config: FederatedConfig,
        crew: Crew,
        strategy: Strategy,
        layout: Layout,
        trainer: Trainer,
        evaluate: Data | None,
        hook: Hook | None,
    ) -> None:
        crew = Paced(crew, config.deadline_s)
        self._config, self._crew, self._strategy = config, crew, strategy
        self._layout, self._trainer, self._evaluate = layout, trainer, evaluate
        gate = Gate(config, crew, hook)
        self._way: Way = (
            Buffered(config, crew, strategy, gate)
            if config.mode == "buffered"
            else Together(config, crew, strategy, layout, gate)
        )
        # In this order: a way goes on with those orders that its crew still knows of.
        owners: dict[str, Owner] = {
            "server": strategy,
            "crew": crew,
            "way": self._way,
        }
        facts: dict[str, Any] = {"layout": layout.hash}
        if config.checkpoint_dir is not None:  # not every strategy can be kept
            facts |= crew.facts() | strategy.facts()
        self._ledger = Ledger(config, owners, facts)

    def run(self, callbacks: Sequence[Callback] = ()) -> FederatedHistory:
        """All rounds that are left; each is told once it is kept."""
        rounds = self._ledger.resume()
        while len(rounds) < self._config.rounds:
            rounds.append(self._round(len(rounds) + 1))
            self._ledger.keep(rounds)
            for told in callbacks:
                told(rounds[-1])
        return FederatedHistory(tuple(rounds), self._model())

    def _round(self, number: int) -> Round:
        start, begun = time.monotonic(), self._crew.now()
        outcome = self._way.round(number)
        waited = self._crew.now() - begun
        if not np.isfinite(self._strategy.values).all():
            raise FederatedError(
                f"round {number}: the model left the finite numbers; max_norm= refuses"
                " updates that are too large"
            )
        loss, accuracy = self._evaluated(outcome.replies)
        return Round(
            number,
            clients=len(outcome.replies),
            failures=outcome.failures,
            loss=loss,
            accuracy=accuracy,
            upload_bytes=sum(reply.bytes for reply in outcome.replies),
            download_bytes=outcome.orders * self._download(),
            seconds=time.monotonic() - start,
            epsilon=self._epsilon(number),
            waited=waited,
        )

    def _epsilon(self, number: int) -> float | None:
        privacy = self._config.privacy
        if privacy is None:
            return None
        share = share_of(self._config, self._crew.size)
        return epsilon(share, privacy.noise_multiplier, number, privacy.delta)

    def _evaluated(self, replies: Sequence[Reply]) -> tuple[float | None, float | None]:
        if self._evaluate is None:
            found = [r.update.loss for r in replies if r.update is not None]
            losses = [loss for loss in found if np.isfinite(loss)]
            return float(np.mean(losses)) if losses else None, None
        self._trainer.restart(self._layout.named(self._strategy.values))
        scores = self._trainer.evaluate(self._evaluate, len(self._evaluate[1]))
        return scores["loss"], scores.get("accuracy")

    def _download(self) -> int:
        """Bytes that each device is sent."""
        controls = 0 if self._strategy.control is None else self._layout.trained
        return FLOAT * (self._layout.size + controls)

    def _model(self) -> Model:
        self._trainer.restart(self._layout.named(self._strategy.values))
        return self._trainer.export()
