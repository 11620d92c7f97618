"""The demonstration goes on: the shipped network learns the hand of its user."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from edgewise.convert import convert
from edgewise.ir.op import Array
from edgewise.tools.demo import NETWORK, held_out
from edgewise_trainer.incremental import IncrementalLearner
from edgewise_trainer.optimizers import AdamW

EACH = 5  # digits of the user, of every class
KNOWN = 100  # digits of others, to be replayed
SLANT = 0.7  # pixels from one row to the next


class Personalized(NamedTuple):
    """What the demonstration measured; accuracies on digits not learned from.

    Attributes:
        examples: Digits of the user that were learned from.
        own_before: Accuracy on other digits of the user.
        own_after: The same afterwards.
        rest_before: Accuracy on digits of other people.
        rest_after: The same afterwards.
        seconds: It took.
    """

    examples: int
    own_before: float
    own_after: float
    rest_before: float
    rest_after: float
    seconds: float


def slanted(images: Array, slant: float) -> Array:
    """Images ``[N, 1, H, W]`` whose rows lean: a hand that the network never saw."""
    height, width = images.shape[2:]
    found = np.zeros_like(images)
    wide = np.pad(images, ((0, 0), (0, 0), (0, 0), (width, width)))
    for row in range(height):
        place = slant * (row - (height - 1) / 2) + width
        left = int(np.floor(place))
        part = np.float32(place - left)
        pair = wide[:, :, row, left : left + width + 1]
        found[:, :, row] = (1 - part) * pair[..., :-1] + part * pair[..., 1:]
    return found


def personalized() -> Personalized:
    """Learn a few digits of a user, beside a few that were known."""
    images, labels = held_out()
    own = slanted(images, SLANT)
    first = [np.flatnonzero(labels == kind)[:EACH] for kind in range(10)]
    mine = np.concatenate(first)
    others = np.setdiff1d(np.arange(len(labels)), mine)
    known, test = others[:KNOWN], others[KNOWN:]
    learner = IncrementalLearner(
        convert(NETWORK), "replay", optimizer=AdamW(2e-3), known="all"
    )

    def accuracies() -> tuple[float, float]:
        found = (
            learner.evaluate((x[test], labels[test]))["accuracy"] for x in (own, images)
        )
        return next(found), next(found)

    before = accuracies()
    start = time.perf_counter()
    learner.remember((images[known], labels[known]))
    learner.learn((own[mine], labels[mine]), epochs=15, batch_size=16)
    seconds = time.perf_counter() - start
    after = accuracies()
    return Personalized(
        examples=len(mine),
        own_before=before[0],
        own_after=after[0],
        rest_before=before[1],
        rest_after=after[1],
        seconds=seconds,
    )
