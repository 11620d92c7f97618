"""The demonstration goes on: people whose hands lean teach one network together."""

from __future__ import annotations

from typing import NamedTuple

from edgewise_federated.config import FederatedConfig
from edgewise_federated.partition import at_random
from edgewise_federated.sample import leaning_digits
from edgewise_federated.simulate import simulate
from edgewise_trainer import Trainer
from edgewise_trainer.optimizers import SGD

PEOPLE = 8
ROUNDS = 8


class Federated(NamedTuple):
    """What the demonstration measured; accuracies on digits that nobody learned from.

    Attributes:
        devices: Of one person each.
        examples: Digits on all of them.
        rounds: Of learning.
        before: Accuracy of the model that was sent to them.
        after: Accuracy of the model that came of it.
        upload_bytes: From one device, in all rounds.
        download_bytes: To one device, in all rounds.
        seconds: It took.
    """

    devices: int
    examples: int
    rounds: int
    before: float
    after: float
    upload_bytes: int
    download_bytes: int
    seconds: float


def federated() -> Federated:
    """Let a few devices learn; each keeps its digits, and sends changes of a byte."""
    model, (x, y), test = leaning_digits()
    config = FederatedConfig(
        rounds=ROUNDS,
        clients_per_round=PEOPLE,
        local_epochs=3,
        batch_size=10,
        codec="int8",
    )
    hands = at_random(len(y), PEOPLE)
    before = Trainer(model).evaluate(test)["accuracy"]
    history = simulate(
        model,
        [(x[rows], y[rows]) for rows in hands],
        config,
        optimizer=SGD(0.05),
        evaluate=test,
    )
    rounds = history.rounds
    return Federated(
        devices=PEOPLE,
        examples=len(y),
        rounds=ROUNDS,
        before=before,
        after=rounds[-1].accuracy or 0.0,
        upload_bytes=sum(one.upload_bytes for one in rounds) // PEOPLE,
        download_bytes=sum(one.download_bytes for one in rounds) // PEOPLE,
        seconds=sum(one.seconds for one in rounds),
    )
