"""``edgewise federate certificates``: who is who, in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.options import Json
from edgewise.cli.output import show_json


def certificates(
    folder: Annotated[Path, typer.Argument(help="Where the files are written.")],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name or address by which nodes on other machines dial the server."
            " Repeatable."
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(help="Name of a node to make a pair of keys for. Repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """Make an authority, a certificate for the server, and keys for nodes.

    Where the folder has certificates already, keys of further nodes are added.

    Example: edgewise federate certificates certs --host fleet.example.org --node pi-1
    """
    from edgewise_federated.flower.certificates import (
        files_of,
        make_certificates,
        make_node_keys,
    )

    files = files_of(folder)
    made: list[Path] = []
    if host or not (node and files.authority.exists()):
        made += make_certificates(folder, host or ())
    made += make_node_keys(folder, node or ())
    if json:
        show_json({"files": [str(path) for path in made]})
        return
    for path in made:
        print(path)
