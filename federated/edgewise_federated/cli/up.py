"""``edgewise federate up``: a real fleet on this machine, for a few rounds."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, want_place
from edgewise.cli.output import progress, show_json
from edgewise_federated.cli.options import (
    BatchSize,
    CodecName,
    DataFile,
    Epochs,
    Held,
    ModelFile,
    Rate,
    Rounds,
    Secure,
    Seed,
    Target,
    TestFile,
    rate_of,
    what_to_learn,
)

if TYPE_CHECKING:  # --help imports no Flower
    from edgewise_federated.history import Round

WAIT = 300.0  # seconds for a round; processes of one machine share its cores


def up(
    model: ModelFile = None,
    data: DataFile = None,
    test: TestFile = None,
    target: Target = "target",
    held_out: Held = 0.2,
    nodes: Annotated[int, typer.Option(help="How many.", min=1)] = 2,
    rounds: Rounds = 3,
    tls: Annotated[
        bool, typer.Option("--tls", help="With TLS and keys of nodes, as elsewhere.")
    ] = False,
    epochs: Epochs = 3,
    batch_size: BatchSize = 10,
    codec: CodecName = "float32",
    secure: Secure = False,
    rate: Rate = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The .ew file to write.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Start a SuperLink and nodes as processes here, run rounds, stop them all.

    Without a model, the shipped network learns digits of people whose hands lean.

    Example: edgewise federate up --nodes 2 --rounds 3 --tls
    """
    from edgewise.model import load
    from edgewise_federated.config import FederatedConfig
    from edgewise_federated.deployment import Deployment
    from edgewise_federated.flower.fleet import LocalFleet
    from edgewise_federated.flower.processes import Family
    from edgewise_federated.partition import dealt

    if output is not None:
        want_place(output)
    task = what_to_learn(model, data, test, target, held_out, seed, quiet=json)
    config = FederatedConfig(
        rounds=rounds,
        clients_per_round=nodes,
        local_epochs=epochs,
        batch_size=batch_size,
        codec=codec,
        secure_aggregation=secure,
        deadline_s=WAIT,
        seed=seed,
    )
    lr = rate_of("sgd", rate)
    deployment = Deployment(task.model, config, rate=lr, test=task.test)
    parts = [task.part(rows) for rows in dealt(task.train[1], nodes, seed=seed)]
    # The names of its files show in the lines of processes: see what looks for nodes.
    with tempfile.TemporaryDirectory(prefix="edgewise-up-") as folder, Family() as all_:
        fleet = LocalFleet(all_, Path(folder), deployment, parts, tls=tls)
        start = time.monotonic()
        text = f"a SuperLink and {nodes} nodes, {rounds} rounds"
        found: list[Round] = []
        with progress(text, rounds, quiet=json) as tick:
            for one in fleet.rounds():
                found.append(one)
                tick()
                if not json:
                    print(one, flush=True)
        peaks = fleet.peaks()
        fleet.stop()
        if output is not None:
            load(fleet.kept.model).save(output)
    _show(found, peaks, time.monotonic() - start, output, json=json)


def _show(
    rounds: list[Round],
    peaks: tuple[int, ...],
    seconds: float,
    output: Path | None,
    *,
    json: bool,
) -> None:
    from edgewise.tools.text import size_text, time_text

    last, each = rounds[-1], sum(one.seconds for one in rounds) / len(rounds)
    if json:
        show_json(
            {
                "rounds": len(rounds),
                "nodes": len(peaks),
                "accuracy": last.accuracy,
                "loss": last.loss,
                "node_rss_mib": round(max(peaks) / 2**20, 1),
                "seconds_per_round": each,
                "seconds": seconds,
                "upload_bytes": sum(one.upload_bytes for one in rounds),
                "failures": sum(one.failures for one in rounds),
                "file": None if output is None else str(output),
            }
        )
        return
    print(
        f"{len(peaks)} nodes of at most {size_text(max(peaks))},"
        f" {time_text(each)} a round, {time_text(seconds)} in all"
    )
    if output is not None:
        print(output)
