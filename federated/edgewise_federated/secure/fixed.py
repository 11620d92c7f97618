"""Numbers as 32-bit words that can be added under masks, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgewise.errors import FederatedError
from edgewise_federated.secure.masks import Words, checked

LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Fixed:
    """Fixed-point numbers whose weighted sum never overflows.

    Attributes:
        bound: Numbers are clipped to plus and minus this.
        total_weight: The most that the weights of all parties can add up to.
    """

    bound: float
    total_weight: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bound) and self.bound > 0):
            raise FederatedError(f"a bound is above 0 and finite, got {self.bound}")
        if not 1 <= self.total_weight <= LARGEST:
            raise FederatedError(
                f"a total weight is 1 to {LARGEST}, got {self.total_weight}"
            )

    @property
    def levels(self) -> int:
        """Steps from 0 to the bound, for a weight of 1."""
        return LARGEST // self.total_weight

    @property
    def step(self) -> float:
        """Distance of numbers next to each other, for a weight of 1.

        A mean is within half of it, as every weight is at least 1.
        """
        return self.bound / self.levels

    def encode(self, values: NDArray[np.floating[Any]], weight: int) -> Words:
        """Words of the values times the weight.

        A word is at most ``weight * levels`` from 0, also after rounding, as that is an
        integer; so no sum over the total weight leaves 31 bits and a sign.
        """
        self._check(weight)
        numbers = np.asarray(values, np.float64)
        if np.isnan(numbers).any():
            raise FederatedError("values to add up hold a NaN: training diverged")
        numbers = np.clip(numbers, -self.bound, self.bound)
        numbers /= self.bound
        numbers *= weight * self.levels
        np.rint(numbers, out=numbers)
        return numbers.astype(np.int32).view(np.uint32)

    def decode(self, words: Words, weight: int) -> NDArray[np.float64]:
        """The mean that a sum of words stands for, of parties of this weight in all."""
        self._check(weight)
        numbers = checked(words, "sum of words").view(np.int32).astype(np.float64)
        numbers /= weight * self.levels
        numbers *= self.bound
        return numbers

    def _check(self, weight: int) -> None:
        if not 1 <= weight <= self.total_weight:
            raise FederatedError(f"a weight is 1 to {self.total_weight}, got {weight}")
