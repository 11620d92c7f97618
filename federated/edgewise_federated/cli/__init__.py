"""``edgewise federate``: one subcommand a file, imported with the group."""

from __future__ import annotations

from collections.abc import Callable

import typer

from edgewise_federated.cli.certificates import certificates
from edgewise_federated.cli.simulate import simulate

COMMANDS: dict[str, Callable[..., None]] = {
    "simulate": simulate,
    "certificates": certificates,
}

federate = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@federate.callback()
def _group() -> None:
    """Let devices learn together, each from data that it keeps.

    Example: edgewise federate simulate --devices 10 --rounds 10
    """


for _name, _command in COMMANDS.items():
    federate.command(_name)(_command)
