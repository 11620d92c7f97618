"""Which examples stay when a memory is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

ANY = 0  # the class of examples that have none


@dataclass(slots=True)
class Occupancy:
    """What a memory holds, class by class.

    Attributes:
        capacity: Examples at most.
        places: Slots of each class.
        seen: Examples that were offered so far, by class.
    """

    capacity: int
    places: dict[int, list[int]] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.places.values()))

    def put(self, kind: int, slot: int) -> None:
        """Note that a free slot is taken."""
        self.places.setdefault(kind, []).append(slot)

    def replace(self, old: int, index: int, kind: int) -> int:
        """Give the slot of one example of class ``old`` to one of class ``kind``."""
        slots = self.places[old]
        slot = slots[index]
        slots[index] = slots[-1]
        slots.pop()
        self.put(kind, slot)
        return slot


# Makes room for one more example of a class that was just counted: its slot, or None
# where the example is not to be kept.
Policy = Callable[[Occupancy, int, np.random.Generator], "int | None"]


def offered(
    held: Occupancy, kind: int, policy: Policy, rng: np.random.Generator
) -> int | None:
    """The slot of one more example, or None where it is not to be kept."""
    held.seen[kind] = held.seen.get(kind, 0) + 1
    if len(held) < held.capacity:
        slot = len(held)
        held.put(kind, slot)
        return slot
    return policy(held, kind, rng) if held.capacity else None


def reservoir(held: Occupancy, kind: int, rng: np.random.Generator) -> int | None:
    """Every example seen so far stays with the same chance (Vitter, 1985)."""
    place = int(rng.integers(sum(held.seen.values())))
    if place >= held.capacity:
        return None
    for old, slots in held.places.items():
        if place < len(slots):
            return held.replace(old, place, kind)
        place -= len(slots)
    return None


def balanced(held: Occupancy, kind: int, rng: np.random.Generator) -> int | None:
    """Classes share the room alike (Chrysakis and Moens, 2020).

    A class that is not the largest takes from the largest; within the largest every
    example seen so far stays with the same chance.
    """
    largest = max(held.places, key=lambda key: (len(held.places[key]), -key))
    own = held.places.get(kind, [])
    if len(own) < len(held.places[largest]):
        index = int(rng.integers(len(held.places[largest])))
        return held.replace(largest, index, kind)
    index = int(rng.integers(held.seen[kind]))
    return held.replace(kind, index, kind) if index < len(own) else None


POLICIES: dict[str, Policy] = {"reservoir": reservoir, "balanced": balanced}
