"""``edgewise federate node``: this device takes part, in one process."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

App = Annotated[
    str,
    typer.Argument(
        help="A folder that `edgewise federate export` wrote, or MODULE:NAME of an app"
        " of Flower's that is installed here."
    ),
]
Address = Annotated[
    str, typer.Option("--superlink", help="HOST:PORT of the SuperLink.")
]
Authority = Annotated[
    Path | None, typer.Option("--ca", help="Certificate by which it is known.")
]
Key = Annotated[Path | None, typer.Option(help="Private key of this node.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Go without, beyond this machine, too.")
]


def node(
    app: App,
    superlink: Address,
    data: Annotated[
        Path | None,
        typer.Option(help="An .npz of this device's inputs and their `target`."),
    ] = None,
    ca: Authority = None,
    key: Key = None,
    insecure: Insecure = False,
    state: Annotated[
        Path | None,
        typer.Option(
            help="A folder for what this device remembers between rounds; else one of"
            " the user's."
        ),
    ] = None,
    number: Annotated[
        int, typer.Option(help="Of this device in the fleet, from 0 on.", min=0)
    ] = 0,
) -> None:
    """Learn from this device's data whenever a SuperLink asks, until stopped.

    Nothing that the server sends is run, and nothing but updates leaves the device.

    Example: edgewise federate node app --data mine.npz --superlink
    fleet.example.org:8000 --ca ca.crt --key nodes/pi-1
    """
    from edgewise_federated.flower.local import app_of
    from edgewise_federated.flower.node import Node
    from edgewise_federated.flower.trust import place_of

    place = place_of(superlink, ca, key, insecure=insecure)
    chosen = app_of(app, data, state)
    # What a node says is all that whoever looks after it sees, and requests are noise.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    Node(chosen, place, {"partition-id": number}).run()
