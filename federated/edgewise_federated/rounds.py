"""The loop of a federated run: ask, learn, check, join, evaluate, keep."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgewise.errors import CheckpointError, FederatedError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated import keep
from edgewise_federated.accountant import epsilon
from edgewise_federated.aggregate import mean, rule_of
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.fleet import Fleet
from edgewise_federated.history import FederatedHistory, Round
from edgewise_federated.select import answers, chosen, share_of
from edgewise_federated.server import Server
from edgewise_federated.update import Layout, Update
from edgewise_trainer import Trainer

if TYPE_CHECKING:  # only runs that hide updates want cryptography
    from edgewise_federated.sealed import Sealed

logger = logging.getLogger(__name__)
NOISE = 5  # what is drawn for
BYTES = 4  # of a float32 on its way down

Hook = Callable[[int, int, Update], "Update | None"]


class Answer(NamedTuple):
    """What came of one device.

    Attributes:
        update: What it sent; None: nothing that can be used.
        control: Its control, to be kept if its update is taken.
        bytes: What it sent in all.
        loss: Mean loss of its last pass.
    """

    update: Update | None
    control: Array | None
    bytes: int
    loss: float


class Loop:
    """One federated run.

    Args:
        config: What it is asked for.
        fleet: The devices.
        server: The model of all.
        layout: What its numbers are.
        trainer: Evaluates, and gives the model.
        evaluate: Evaluation data; None: none.
        hook: May change, drop or fail updates, for studying failures.
    """

    def __init__(
        self,
        config: FederatedConfig,
        fleet: Fleet,
        server: Server,
        layout: Layout,
        trainer: Trainer,
        evaluate: Data | None,
        hook: Hook | None,
    ) -> None:
        self._config, self._fleet, self._server = config, fleet, server
        self._layout, self._trainer = layout, trainer
        self._evaluate, self._hook = evaluate, hook
        self._rounds: list[Round] = []

    def run(self) -> FederatedHistory:
        """All rounds that are left."""
        self._resume()
        while len(self._rounds) < self._config.rounds:
            self._rounds.append(self._round(len(self._rounds) + 1))
            self._keep()
        return FederatedHistory(tuple(self._rounds), self._model())

    def _round(self, number: int) -> Round:
        start = time.monotonic()
        asked = chosen(self._config, self._fleet.size, number)
        sealed = self._sealed(number, asked)
        answered = {index: self._ask(number, index, sealed) for index in asked}
        good = {i: a for i, a in answered.items() if a.update is not None}
        self._want_quorum(number, len(asked), len(good))
        if good:
            self._join(number, good, sealed)
        loss, accuracy = self._evaluated(list(answered.values()))
        return Round(
            number,
            clients=len(asked),
            failures=len(asked) - len(good),
            loss=loss,
            accuracy=accuracy,
            upload_bytes=sum(answer.bytes for answer in answered.values()),
            download_bytes=len(asked) * self._download(),
            seconds=time.monotonic() - start,
            epsilon=self._epsilon(number),
        )

    def _sealed(self, number: int, asked: Sequence[int]) -> Sealed | None:
        """What hides updates; None where nothing does."""
        if not self._config.secure_aggregation:
            return None
        from edgewise_federated.sealed import Sealed  # noqa: PLC0415 - as said above

        there = [index for index in asked if answers(self._config, number, index)]
        private = self._config.privacy is not None
        weights = {i: 1 if private else self._fleet.examples(i) for i in there}
        return Sealed(weights, self._layout.reach(self._server.values))

    def _ask(self, number: int, index: int, sealed: Sealed | None) -> Answer:
        """A device's answer; what it cannot give is a failure, never an end."""
        if not answers(self._config, number, index):
            return Answer(None, None, 0, float("nan"))
        control = self._server.memory.get("control")
        mu = self._server.options.get("mu", 0.0)
        try:
            learned = self._fleet.learn(
                index, number, self._server.values, self._layout, control, mu
            )
        except FederatedError as error:
            logger.warning("round %d, device %d: %s", number, index, error)
            return Answer(None, None, 0, float("nan"))
        change = self._clipped(learned.change)
        if sealed is not None:
            arrived = sealed.words(index, change)
            sent = arrived.nbytes + sealed.overhead(index)
        else:
            arrived, sent = self._fleet.send(index, number, change)
        if learned.control is not None:
            sent += BYTES * self._layout.trained
        update = Update(
            self._layout.named(arrived),
            self._fleet.examples(index),
            learned.loss,
            sent,
        )
        taken = self._checked(number, index, update)
        return Answer(taken, learned.control, sent, learned.loss)

    def _clipped(self, change: Array) -> Array:
        """Within the norm that privacy allows."""
        privacy = self._config.privacy
        if privacy is None:
            return change
        norm = float(np.linalg.norm(change))
        return change * np.float32(min(1.0, privacy.clip / max(norm, 1e-12)))

    def _checked(self, number: int, index: int, update: Update) -> Update | None:
        """An update that may be used; None for any other."""
        try:
            found = self._hook(number, index, update) if self._hook else update
            if found is None:
                return None
            self._layout.check(found.arrays, self._config.max_norm)
        except Exception as error:  # noqa: BLE001 - whatever it does, the run goes on
            logger.warning("round %d, device %d: %s", number, index, error)
            return None
        return found

    def _want_quorum(self, number: int, asked: int, good: int) -> None:
        if self._config.privacy is not None:  # an empty round is as likely as it is
            return
        least = max(int(np.ceil(self._config.quorum * asked)), 1)
        if good < least:
            raise FederatedError(
                f"round {number}: {good} of {asked} devices gave an update; want"
                f" {least} (quorum={self._config.quorum:g})"
            )

    def _join(
        self, number: int, good: dict[int, Answer], sealed: Sealed | None
    ) -> None:
        """Let the updates of a round into the model."""
        if sealed is not None:
            self._server.apply(self._unsealed(number, good, sealed))
            return
        updates = [a.update for a in good.values() if a.update is not None]
        changes = np.stack([self._layout.flat(u.arrays) for u in updates])
        weights = np.asarray([u.examples for u in updates], np.float64)
        if self._config.privacy is not None:
            change = self._noisy(number, changes.sum(0, dtype=np.float64))
        else:
            rule = rule_of(self._config.strategy)
            change = rule(changes.astype(np.float64), weights)
        self._server.apply(change)
        moved = [
            self._fleet.keep(index, answer.control)
            for index, answer in good.items()
            if answer.control is not None
        ]
        if moved:
            share = len(moved) / self._fleet.size
            self._server.follow(mean(np.stack(moved), np.ones(len(moved))), share)

    def _unsealed(self, number: int, good: dict[int, Answer], sealed: Sealed) -> Array:
        """The mean change, of sums that nobody could look into."""
        sent = {
            index: self._layout.flat(answer.update.arrays).astype(np.uint32)
            for index, answer in good.items()
            if answer.update is not None
        }
        mean_ = sealed.mean(sent)
        if self._config.privacy is None:
            return mean_
        return self._noisy(number, mean_ * len(sent))

    def _noisy(self, number: int, total: Array) -> Array:
        """The mean over the expected number of devices, with noise on the sum."""
        privacy = self._config.privacy
        assert privacy is not None  # noqa: S101 - as asked
        draw = np.random.default_rng((self._config.seed, number, NOISE))
        deviation = privacy.clip * privacy.noise_multiplier
        noise = draw.normal(0.0, deviation, total.size)
        expected = share_of(self._config, self._fleet.size) * self._fleet.size
        return np.asarray((total + noise) / expected)

    def _epsilon(self, number: int) -> float | None:
        privacy = self._config.privacy
        if privacy is None:
            return None
        share = share_of(self._config, self._fleet.size)
        return epsilon(share, privacy.noise_multiplier, number, privacy.delta)

    def _evaluated(
        self, answered: Sequence[Answer]
    ) -> tuple[float | None, float | None]:
        if self._evaluate is None:
            losses = [a.loss for a in answered if np.isfinite(a.loss)]
            return float(np.mean(losses)) if losses else None, None
        self._trainer.restart(self._layout.named(self._server.values))
        found = self._trainer.evaluate(self._evaluate, len(self._evaluate[1]))
        return found["loss"], found.get("accuracy")

    def _download(self) -> int:
        """Bytes that each device is sent."""
        controls = self._layout.trained if "control" in self._server.memory else 0
        return BYTES * (self._layout.size + controls)

    def _model(self) -> Model:
        self._trainer.restart(self._layout.named(self._server.values))
        return self._trainer.export()

    def _facts(self) -> dict[str, Any]:
        """What a run has to be asked again to go on."""
        config = self._config
        free = {"rounds", "checkpoint_dir", "quorum"}
        names = [field.name for field in fields(config) if field.name not in free]
        facts = {name: repr(getattr(config, name)) for name in names}
        return facts | {"fleet": self._fleet.size, "layout": self._layout.hash}

    def _keep(self) -> None:
        if self._config.checkpoint_dir is None:
            return
        arrays = {"model": self._server.values}
        arrays |= {f"server/{k}": v for k, v in self._server.memory.items()}
        arrays |= {f"fleet/{k}": v for k, v in self._fleet.memory().items()}
        facts = {"run": self._facts(), "rounds": [list(one) for one in self._rounds]}
        keep.save(self._config.checkpoint_dir, keep.Kept(facts, arrays))

    def _resume(self) -> None:
        folder = self._config.checkpoint_dir
        kept = None if folder is None else keep.load(folder)
        if kept is None:
            return
        if kept.facts.get("run") != self._facts():
            raise CheckpointError(
                f"{folder}: holds a run of another kind: {kept.facts.get('run')};"
                f" want {self._facts()}"
            )
        self._rounds = [Round(*row) for row in kept.facts["rounds"]]
        self._server.values = kept.arrays["model"]
        for name, array in kept.arrays.items():
            owner, _, key = name.partition("/")
            if owner == "server":
                self._server.memory[key] = array
        own = {
            name.partition("/")[2]: array
            for name, array in kept.arrays.items()
            if name.startswith("fleet/")
        }
        self._fleet.remember(own)
        logger.info("%s: goes on after round %d", folder, len(self._rounds))
