"""The loop of a federated run: ask, wait, check, let in, evaluate, keep."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.accountant import epsilon
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew, Seal
from edgewise_federated.history import FederatedHistory, Round
from edgewise_federated.ledger import Ledger
from edgewise_federated.order import Order, Reply, Sums
from edgewise_federated.select import share_of
from edgewise_federated.strategy import Strategy
from edgewise_federated.update import Layout, Update
from edgewise_trainer import Trainer

logger = logging.getLogger(__name__)
FLOAT = 4  # bytes of a float32 on its way down

Hook = Callable[[int, int, Update], "Update | None"]
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
        self._config, self._crew, self._strategy = config, crew, strategy
        self._layout, self._trainer = layout, trainer
        self._evaluate, self._hook = evaluate, hook
        self._ledger = Ledger(config, crew, strategy, layout)

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
        start = time.monotonic()
        asked = self._strategy.chosen(number, self._crew)
        until = self._crew.now() + self._config.deadline_s
        seal = None
        if self._config.secure_aggregation:
            seal = self._crew.seal(number, asked, until)
        orders = self._orders(number, asked if seal is None else seal.devices)
        for device, order in orders.items():
            self._crew.send(device, order)
        replies = self._replies(number, orders.keys(), until)
        good = [reply for reply in replies if reply.update is not None]
        self._want_quorum(number, len(asked), len(good))
        self._let_in(number, good, orders, seal, until)
        loss, accuracy = self._evaluated(replies)
        return Round(
            number,
            clients=len(asked),
            failures=len(asked) - len(good),
            loss=loss,
            accuracy=accuracy,
            upload_bytes=sum(reply.bytes for reply in replies),
            download_bytes=len(asked) * self._download(),
            seconds=time.monotonic() - start,
            epsilon=self._epsilon(number),
        )

    def _orders(self, number: int, devices: Collection[int]) -> dict[int, Order]:
        """What each device is asked."""
        privacy, strategy = self._config.privacy, self._strategy
        members = {device: self._crew.member(device) for device in devices}
        weights = {i: 1 if privacy else m.examples for i, m in members.items()}
        total, hidden = sum(weights.values()), self._config.secure_aggregation
        return {
            device: Order(
                number,
                strategy.values,
                member.epochs,
                strategy.mu,
                strategy.control,
                privacy.clip if privacy else None,
                Sums(weights[device], total) if hidden else None,
            )
            for device, member in members.items()
        }

    def _replies(
        self, number: int, devices: Collection[int], until: float
    ) -> list[Reply]:
        """One reply of each device, checked, in order of devices.

        Who has not answered when the crew's clock shows ``until`` has failed.
        """
        found: dict[int, Reply] = {}
        while len(found) < len(devices):
            reply = self._crew.next(until)
            if reply is None:
                break
            if reply.number == number and reply.device in devices - found.keys():
                found[reply.device] = self._checked(reply)
        self._crew.forget()
        for device in devices - found.keys():
            found[device] = Reply(device, number, None, failure="no answer in time")
            logger.warning("round %d, device %d: no answer in time", number, device)
        return [found[device] for device in sorted(found)]

    def _checked(self, reply: Reply) -> Reply:
        """The reply with an update that may be used, or with none."""
        number, device = reply.number, reply.device
        if reply.update is None:
            logger.warning("round %d, device %d: %s", number, device, reply.failure)
            return reply
        try:
            hook, update = self._hook, reply.update
            found = update if hook is None else hook(number, device, update)
            if found is None:
                return reply._replace(update=None, failure="vanished")
            sends = self._crew.member(device).sends
            sends.check(found.arrays, self._config.max_norm)
        except Exception as error:  # noqa: BLE001 - whatever it does, the run goes on
            logger.warning("round %d, device %d: %s", number, device, error)
            return reply._replace(update=None, failure=str(error))
        return reply._replace(update=found)

    def _want_quorum(self, number: int, asked: int, good: int) -> None:
        if self._config.privacy is not None:  # an empty round is as likely as it is
            return
        least = max(int(np.ceil(self._config.quorum * asked)), 1)
        if good < least:
            raise FederatedError(
                f"round {number}: {good} of {asked} devices gave an update; want"
                f" {least} (quorum={self._config.quorum:g})"
            )

    def _let_in(
        self,
        number: int,
        good: Sequence[Reply],
        orders: Mapping[int, Order],
        seal: Seal | None,
        until: float,
    ) -> None:
        """Let the updates of a round into the model."""
        if seal is not None:
            mean = self._opened(good, orders, seal, until)
            self._strategy.take_sum(number, mean, len(good), self._crew)
        elif good:
            self._strategy.take(number, good, self._crew)
        self._crew.settle([reply.device for reply in good])

    def _opened(
        self,
        good: Sequence[Reply],
        orders: Mapping[int, Order],
        seal: Seal,
        until: float,
    ) -> Array:
        """The mean change of those whose words arrived."""
        from edgewise_federated.sealed import mean  # noqa: PLC0415 - wants cryptography

        sent = {
            reply.device: self._layout.flat(reply.update.arrays).astype(np.uint32)
            for reply in good
            if reply.update is not None
        }
        told = {i: order.sums for i, order in orders.items() if order.sums is not None}
        weights = [told[device].weight for device in sent]
        total = seal.total(sent, until)
        found = mean(total, weights, max(sums.total for sums in told.values()))
        return found * self._layout.reach(self._strategy.values)

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
