"""``edgewise federate simulate``: rounds over simulated devices, in this process."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, want_place
from edgewise.cli.output import progress, show_json
from edgewise.errors import ConfigError
from edgewise_federated.cli.options import (
    BatchSize,
    Clip,
    CodecName,
    DataFile,
    Epochs,
    Held,
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
    TestFile,
    config_of,
    optimizer_of,
    what_to_learn,
)

if TYPE_CHECKING:  # --help makes no trainer
    from collections.abc import Callable

    from edgewise_federated.history import FederatedHistory, Round

DRAWN = (".png", ".svg", ".pdf")


def simulate(
    model: ModelFile = None,
    data: DataFile = None,
    test: TestFile = None,
    target: Target = "target",
    held_out: Held = 0.2,
    devices: Annotated[int, typer.Option(help="How many there are.", min=1)] = 10,
    split: Annotated[
        str,
        typer.Option(
            help="Who has what: random; labels:2, two labels or so each; dirichlet:0.3,"
            " the less alike the smaller the number."
        ),
    ] = "random",
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
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A folder; a run that it holds goes on where it was."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The .ew file to write.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A picture of the rounds: .png, .svg or .pdf.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Try federated rounds: deal examples to devices, and let them learn together.

    Without a model, the shipped network learns digits of people whose hands lean.

    Example: edgewise federate simulate --devices 10 --rounds 10 --codec int8

    Example: edgewise federate simulate model.ew --data data.npz --split labels:2
    """
    from edgewise_federated.partition import dealt
    from edgewise_federated.simulate import simulate as simulated
    from edgewise_trainer import Trainer

    _want_places(output, plot)
    config = config_of(
        rounds=rounds,
        clients_per_round=min(per_round, devices),
        local_epochs=epochs,
        batch_size=batch_size,
        strategy=strategy,
        options=option,
        codec=codec,
        personal=personal,
        secure=secure,
        clip=clip,
        noise=noise,
        checkpoint_dir=None if checkpoint is None else str(checkpoint),
        seed=seed,
    )
    way = optimizer_of(optimizer, rate)
    task = what_to_learn(model, data, test, target, held_out, seed, quiet=json)
    rows = dealt(task.train[1], devices, split, seed)
    before = Trainer(task.model, loss).evaluate(task.test)
    counts = len(task.train[1]), len(task.test[1])
    text = f"{counts[0]} examples on {devices} devices, {counts[1]} to test"
    with progress(text, rounds, quiet=json) as tick:
        history = simulated(
            task.model,
            [task.part(part) for part in rows],
            config,
            loss=loss,
            optimizer=way,
            evaluate=task.test,
            callbacks=(_teller(checkpoint, tick, quiet=json),),
        )
    if output is not None:
        history.model.save(output)
    if plot is not None:
        history.plot(plot)
    _show(history, before, output, json=json)


def _want_places(output: Path | None, plot: Path | None) -> None:
    """Raise where results could not be written in the end."""
    if output is not None:
        want_place(output)
    if plot is None:
        return
    if plot.suffix not in DRAWN:
        raise ConfigError(f"--plot {plot}: want a name that ends in {', '.join(DRAWN)}")
    if not plot.parent.is_dir():
        raise ConfigError(f"{plot}: cannot be written: no folder {plot.parent}")
    if find_spec("matplotlib") is None:
        raise ConfigError("--plot wants matplotlib: pip install matplotlib")


def _teller(
    checkpoint: Path | None, tick: Callable[[], None], *, quiet: bool
) -> Callable[[Round], None]:
    """What is told each round, and shows it."""
    begun = False

    def told(done: Round) -> None:
        nonlocal begun
        tick()
        if quiet:
            return
        if not begun and done.number > 1:
            print(f"{checkpoint}: goes on after round {done.number - 1}")
        begun = True
        print(done, flush=True)

    return told


def _show(
    history: FederatedHistory,
    before: dict[str, float],
    output: Path | None,
    *,
    json: bool,
) -> None:
    from edgewise.tools.text import size_text, time_text

    rounds = history.rounds
    up = sum(one.upload_bytes for one in rounds)
    down = sum(one.download_bytes for one in rounds)
    seconds = sum(one.seconds for one in rounds)
    if json:
        figures = {"upload_bytes": up, "download_bytes": down, "seconds": seconds}
        rows = [one._asdict() for one in rounds]
        file = None if output is None else str(output)
        show_json({"before": before, **figures, "rounds": rows, "file": file})
        return
    name = "loss" if rounds[-1].accuracy is None else "accuracy"
    after = getattr(rounds[-1], name)
    print(
        f"{name} {before[name]:.4f} before, {after:.4f} after {len(rounds)} rounds;"
        f" {size_text(up)} up, {size_text(down)} down, {time_text(seconds)}"
    )
    if output is not None:
        print(output)
