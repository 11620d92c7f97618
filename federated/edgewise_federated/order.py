"""What a device is asked, and what it answers: plain data, so that it can travel."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.ir.op import Array
from edgewise_federated.update import Layout, Update


class Sums(NamedTuple):
    """What a device has to know to hide its change in a sum.

    Attributes:
        weight: Of its change in the sum.
        total: Weight of all that take part.
    """

    weight: int
    total: int


class Order(NamedTuple):
    """What one device is asked to do.

    Attributes:
        number: Of the round; of the order itself where devices run all the time.
            Decides what the device draws, and names the order in the reply.
        values: The model of all, flat float32.
        epochs: Passes over its data.
        mu: Of fedprox.
        control: SCAFFOLD: the control of all, flat; None: there are none.
        clip: Largest norm of its change; None: any.
        sums: How its change is hidden; None: it is not.
    """

    number: int
    values: Array
    epochs: int
    mu: float = 0.0
    control: Array | None = None
    clip: float | None = None
    sums: Sums | None = None


class Reply(NamedTuple):
    """What came of an order.

    Attributes:
        device: Who answers.
        number: Of the order.
        update: What it learned, decoded; None: it failed.
        control: SCAFFOLD: by how much its control changed, flat, of what it sends.
        bytes: What it sent in all.
        failure: Why there is no update.
    """

    device: int
    number: int
    update: Update | None
    control: Array | None = None
    bytes: int = 0
    failure: str = ""


class Member(NamedTuple):
    """What is known of a device before it is asked.

    Attributes:
        examples: How many it learns from.
        sends: The parameters whose changes it sends.
        epochs: Passes over its data in a round, if it has the time.
        speed: Examples it passes over in a second; infinite: nobody knows.
        available: The chance that it answers.
    """

    examples: int
    sends: Layout
    epochs: int
    speed: float = float("inf")
    available: float = 1.0
