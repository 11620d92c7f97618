"""``edgewise federate export``: a fleet's app in a folder."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, opened
from edgewise.cli.output import show_json
from edgewise_federated.cli.options import (
    BatchSize,
    Clip,
    CodecName,
    Epochs,
    LossName,
    ModelFile,
    Noise,
    OptimizerName,
    Options,
    PerRound,
    Personal,
    Rate,
    Rounds,
    Secure,
    Seed,
    Strategy,
    Target,
    config_of,
    rate_of,
)

if TYPE_CHECKING:  # --help makes no trainer
    from edgewise.model import Model
    from edgewise_federated.client import Data

STEPS = """\
one server: edgewise federate server {app} --host 0.0.0.0 --certificates certs
each node:  edgewise federate node {app} --data mine.npz --superlink HOST:8000 \
--ca ca.crt --key KEY"""


def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    model: ModelFile = None,
    test: Annotated[
        Path | None, typer.Option(help="An .npz that the server evaluates on.")
    ] = None,
    target: Target = "target",
    data: Annotated[
        str,
        typer.Option(help="Where devices have their .npz; {node} for their number."),
    ] = "/var/lib/edgewise/{node}.npz",
    rounds: Rounds = 10,
    per_round: PerRound = 10,
    epochs: Epochs = 3,
    batch_size: BatchSize = 10,
    strategy: Strategy = "fedavg",
    option: Options = None,
    codec: CodecName = "float32",
    personal: Personal = None,
    secure: Secure = False,
    clip: Clip = None,
    noise: Noise = None,
    loss: LossName = "cross_entropy",
    optimizer: OptimizerName = "sgd",
    rate: Rate = None,
    deadline: Annotated[
        float, typer.Option(help="Seconds of a round; who is late has failed.")
    ] = 60.0,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write an app of Flower's that trains a model over real devices.

    `edgewise federate server` and `node` run it, and so do stock SuperLinks and
    SuperNodes by `flwr run`.

    Example: edgewise federate export app model.ew --test test.npz --codec int8
    """
    from edgewise_federated.deployment import HOW, Deployment
    from edgewise_federated.flower.export import PACKAGE
    from edgewise_federated.flower.export import export as written

    config = config_of(
        rounds=rounds,
        clients_per_round=per_round,
        local_epochs=epochs,
        batch_size=batch_size,
        strategy=strategy,
        options=option,
        codec=codec,
        personal=personal,
        secure=secure,
        clip=clip,
        noise=noise,
        deadline_s=deadline,
        seed=seed,
    )
    what, examples = _task(model, test, target, quiet=json)
    lr = rate_of(optimizer, rate)
    deployment = Deployment(what, config, loss, optimizer, lr, examples)
    written(folder, deployment, data)
    if json:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        show_json({"files": [str(path) for path in files]})
        return
    print(f"{folder}: change {folder / PACKAGE / HOW} as you like, copy it, and start")
    print(STEPS.format(app=quote(folder.name)))


def _task(
    model: Path | None, test: Path | None, target: str, *, quiet: bool
) -> tuple[Model, Data | None]:
    """What is trained, and what the server evaluates on."""
    if model is None:
        from edgewise_federated.sample import leaning_digits

        sample = leaning_digits()
        return sample.model, sample.test
    from edgewise_trainer.cli.examples import load_examples

    loaded = opened(model, quiet=quiet)
    return loaded, None if test is None else load_examples(test, loaded, target)
