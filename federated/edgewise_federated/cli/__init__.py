"""``edgewise federate``: one subcommand a file, imported with the group."""

from __future__ import annotations

from collections.abc import Callable

import typer

from edgewise_federated.cli.certificates import certificates
from edgewise_federated.cli.export import export
from edgewise_federated.cli.node import node
from edgewise_federated.cli.server import server
from edgewise_federated.cli.simulate import simulate
from edgewise_federated.cli.up import up

COMMANDS: dict[str, Callable[..., None]] = {
    "simulate": simulate,
    "up": up,
    "certificates": certificates,
    "export": export,
    "server": server,
    "node": node,
}

federate = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@federate.callback()
def _group() -> None:
    """Let devices learn together, each from data that it keeps.

    Example: edgewise federate up --nodes 2 --rounds 3 --tls
    """


for _name, _command in COMMANDS.items():
    federate.command(_name)(_command)
