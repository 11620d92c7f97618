"""What the packages beside this one bring to the command.

They know this package, and it knows of them but their names: a command of theirs is
imported when it is called, so that no other one waits for a trainer.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

GROUP = "edgewise.commands"  # of entry points: commands of any other package


class Sibling(NamedTuple):
    """A command.

    Attributes:
        place: Its function or group, as an entry point names it.
        summary: What it does, for the list of commands.
    """

    place: str
    summary: str


COMMANDS = {
    "train": Sibling(
        "edgewise_trainer.cli.train:train", "Train a model on examples in a file."
    ),
    "personalize": Sibling(
        "edgewise_trainer.cli.personalize:personalize",
        "Teach a model from a handful of examples without losing the rest.",
    ),
    "federate": Sibling(
        "edgewise_federated.cli:federate",
        "Let devices learn together, each from data that it keeps.",
    ),
}
# Of the demonstration:
PERSONALIZED = "edgewise_trainer.demo:personalized"
FEDERATED = "edgewise_federated.demo:federated"


def loaded(place: str) -> Callable[..., Any]:
    """The function at a place."""
    function: Callable[..., Any] = metadata.EntryPoint("", place, GROUP).load()
    return function
