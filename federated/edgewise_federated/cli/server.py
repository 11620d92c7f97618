"""``edgewise federate server``: the machine that all devices dial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.options import Json
from edgewise.cli.output import progress, show_json


def server(
    app: Annotated[
        Path, typer.Argument(help="A folder that `edgewise federate export` wrote.")
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="And the port.", min=1, max=65535)] = 8000,
    certificates: Annotated[
        Path | None,
        typer.Option(help="A folder that `edgewise federate certificates` wrote."),
    ] = None,
    node: Annotated[
        list[Path] | None,
        typer.Option(
            help="Public key of a node to let in. Repeatable; all of --certificates if"
            " left out."
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Go without, beyond this machine, too."),
    ] = False,
    state: Annotated[
        Path, typer.Option(help="A folder for all that is kept; runs in it go on.")
    ] = Path("edgewise-server"),
    json: Json = False,
) -> None:
    """Run a SuperLink and our rounds on it, until they are done.

    What is done is in the folder of --state after each round; who is killed and started
    again goes on from there.

    Example: edgewise federate server app --host 0.0.0.0 --certificates certs
    """
    from edgewise_federated.deployment import read
    from edgewise_federated.flower.certificates import files_of, public_keys
    from edgewise_federated.flower.export import deployed
    from edgewise_federated.flower.kept import Folder
    from edgewise_federated.flower.processes import Family
    from edgewise_federated.flower.serving import Serving
    from edgewise_federated.flower.superlink import Settings, dialled
    from edgewise_federated.flower.trust import want_certificates

    want_certificates(host, certificates, insecure=insecure)
    rounds = read(deployed(app)).config.rounds
    kept = Folder(state)
    files = None if certificates is None else files_of(certificates)
    keys = node or (() if certificates is None else public_keys(certificates))
    settings = Settings(kept.home, host, port, dialled(host), files, kept.database)
    with Family() as family:
        serving = Serving(family, settings, kept)
        serving.admit(keys)
        if not json:
            print(f"{settings.address}: {len(keys)} nodes let in", flush=True)
        with progress(f"{rounds} rounds", rounds, quiet=json) as tick:
            for one in serving.rounds(app):
                tick()
                if not json:
                    print(one, flush=True)
    done = kept.rounds()
    if json:
        rows = [one._asdict() for one in done]
        show_json({"rounds": rows, "file": str(kept.model)})
        return
    print(f"{kept.model}: after {len(done)} rounds")
