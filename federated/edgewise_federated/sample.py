"""Something to learn where nothing is named: the shipped network, and a new hand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.convert import convert
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.tools.demo import NETWORK, held_out
from edgewise_trainer.demo import SLANT, slanted

LEARNED = 260  # of 360 digits; the others are read to see what came of it


class Sample(NamedTuple):
    """A model, and what there is to learn.

    Attributes:
        model: The network for handwritten digits.
        train: Digits that lean, of which it reads two of five.
        test: Others.
    """

    model: Model
    train: tuple[Array, Array]
    test: tuple[Array, Array]


def leaning_digits() -> Sample:
    """The shipped network, and digits of people whose hands lean."""
    images, labels = held_out()
    x, y = slanted(images, SLANT), labels.astype(np.int64)
    cut = slice(LEARNED), slice(LEARNED, None)
    train, test = ((x[part], y[part]) for part in cut)
    return Sample(convert(NETWORK), train, test)
