"""``edgewise train``: a model learns from examples in a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, ModelFile, Threads, not_over, opened, want_place
from edgewise.cli.output import progress, show_json
from edgewise.errors import ConfigError
from edgewise_trainer.cli.options import (
    OPTIMIZERS,
    Output,
    Trained,
    chosen,
    optimizer_of,
)

if TYPE_CHECKING:  # --help makes no trainer
    from edgewise_trainer import Epoch, Progress, Trainer
    from edgewise_trainer.incremental.stream import Examples
    from edgewise_trainer.schedules import Rate

SCHEDULES = ("constant", "cosine", "one-cycle")

Validation = Annotated[
    Path | None, typer.Option(help="An .npz to evaluate on after each pass.")
]
Loss = Annotated[
    str,
    typer.Option(
        help="cross_entropy, hinge, kl, mse, mae, huber, binary_cross_entropy, cosine, "
        "cosine_embedding or contrastive."
    ),
]
Rating = Annotated[
    float | None, typer.Option("--lr", help="Learning rate; else the optimizer's own.")
]
Budget = Annotated[
    str | None,
    typer.Option(help="Memory that the process may grow by, as 64MB."),
]
Checkpoint = Annotated[
    Path | None, typer.Option(help="A checkpoint, written after each pass.")
]
Resume = Annotated[
    bool,
    typer.Option(
        help="Go on with --checkpoint where it is there: with its loss, optimizer and "
        "schedule, up to --epochs passes with those done."
    ),
]


def train(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="An .npz of inputs and targets.")],
    output: Output,
    target: Annotated[str, typer.Option(help="Name of the targets.")] = "target",
    validation: Validation = None,
    epochs: Annotated[int, typer.Option(help="Passes over the data.", min=1)] = 10,
    batch_size: Annotated[int, typer.Option(help="Examples of a step.", min=1)] = 32,
    loss: Loss = "cross_entropy",
    optimizer: Annotated[str, typer.Option(help=", ".join(OPTIMIZERS))] = "adamw",
    rate: Rating = None,
    schedule: Annotated[str, typer.Option(help=", ".join(SCHEDULES))] = "constant",
    trainable: Trained = None,
    memory_budget: Budget = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Train for int8, and write that model.")
    ] = False,
    checkpoint: Checkpoint = None,
    resume: Resume = False,
    with_step: Annotated[
        bool, typer.Option(help="Write the training step into the file, too.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the order of examples.")] = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Train a model on examples.

    Example: edgewise train model.ew data.npz -o trained.ew --epochs 5 --lr 1e-3
    """
    from edgewise.quant.config import QuantizeConfig
    from edgewise_trainer import Trainer
    from edgewise_trainer.cli.examples import load_examples

    _want_files((model, data, validation), output, checkpoint)
    if resume and checkpoint is None:
        raise ConfigError("--resume: want --checkpoint, the file to go on with")
    loaded = opened(model, quiet=json)
    examples = load_examples(data, loaded, target)
    held_out = None if validation is None else load_examples(validation, loaded, target)
    if resume and checkpoint is not None and checkpoint.exists():
        trainer = Trainer.resume(checkpoint, threads=threads)
    else:
        steps = epochs * _batches(examples, batch_size)
        trainer = Trainer(
            loaded,
            loss,
            optimizer_of(optimizer, rate, lambda lr: _schedule(schedule, lr, steps)),
            chosen(trainable),
            batch_size=batch_size,
            memory_budget=memory_budget,
            quantize=QuantizeConfig() if int8 else None,
            threads=threads,
            seed=seed,
        )
    left = max(epochs - trainer.epochs, 0)
    passes = _fitted(
        trainer, examples, held_out, left, batch_size, checkpoint, quiet=json
    )
    if with_step:
        trainer.save(output)
    else:
        trainer.export().save(output)
    _show(trainer, passes, output, json=json)


def _want_files(
    read: tuple[Path | None, ...], output: Path, checkpoint: Path | None
) -> None:
    """Raise where files would be lost, or could not be written in the end."""
    if checkpoint is not None and checkpoint.absolute() == output.absolute():
        raise ConfigError(f"{output}: is the checkpoint, too; name another file")
    for written in (output, checkpoint):
        for given in read:
            not_over(given, written)
        if written is not None:
            want_place(written)


def _fitted(
    trainer: Trainer,
    examples: Examples,
    held_out: Examples | None,
    epochs: int,
    batch_size: int,
    checkpoint: Path | None,
    *,
    quiet: bool,
) -> tuple[Epoch, ...]:
    """Passes over the data, with a bar of their steps and a line for each."""
    count, steps = len(examples[1]), epochs * _batches(examples, batch_size)
    text = f"training on {count} examples"
    with progress(text, steps, quiet=quiet) as tick:
        told = _teller(trainer, checkpoint, tick, quiet=quiet)
        history = trainer.fit(examples, epochs, batch_size, held_out, (told,))
    return history.epochs


def _teller(
    trainer: Trainer,
    checkpoint: Path | None,
    tick: Callable[[], None],
    *,
    quiet: bool,
) -> Callable[[Progress | Epoch], None]:
    """What sees steps and passes: it shows them, and writes the checkpoint."""
    from edgewise_trainer import Epoch, History

    def told(event: Progress | Epoch) -> None:
        if not isinstance(event, Epoch):
            tick()
            return
        want_sound(trainer, event.loss)
        if checkpoint is not None:
            trainer.save_checkpoint(checkpoint)
        if not quiet:
            print(History((event,)), flush=True)

    return told


def want_sound(trainer: Trainer, loss: float) -> None:
    """Raise ``ConfigError`` where a training has diverged: nothing is written then."""
    import numpy as np

    parameters = trainer.parameters().values()
    if not math.isfinite(loss) or not all(np.isfinite(p).all() for p in parameters):
        raise ConfigError(
            f"epoch {trainer.epochs}: the loss is {loss}: the training has diverged; "
            "want a lower --lr, or data without NaN"
        )


def _schedule(name: str, rate: float, steps: int) -> Rate:
    from edgewise_trainer import schedules

    if name == "constant":
        return rate
    if name == "cosine":
        return schedules.Cosine(rate, steps)
    if name == "one-cycle":
        return schedules.OneCycle(rate, steps)
    raise ConfigError(f"--schedule {name!r}: want {', '.join(SCHEDULES)}")


def _batches(examples: Examples, size: int) -> int:
    return -(-len(examples[1]) // size)


def _show(
    trainer: Trainer, passes: tuple[Epoch, ...], output: Path, *, json: bool
) -> None:
    seconds = sum(epoch.seconds for epoch in passes)
    if not json:
        none = "" if passes else f": all {trainer.epochs} passes were done before"
        print(f"{output}: {trainer.steps} steps in {seconds:.1f} s{none}")
        return
    rows = [
        {
            "epoch": epoch.number,
            "loss": epoch.loss,
            "seconds": epoch.seconds,
            "validation": dict(epoch.validation),
        }
        for epoch in passes
    ]
    figures = {"epochs": rows, "steps": trainer.steps, "seconds": seconds}
    show_json({**figures, "trained": len(trainer.trained), "file": str(output)})
