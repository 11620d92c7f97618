"""``edgewise personalize``: a model learns from its user's own examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, ModelFile, Threads, not_over, opened, want_place
from edgewise.cli.output import progress, show_json, show_table
from edgewise_trainer.cli.options import Output, Trained, chosen

if TYPE_CHECKING:  # --help makes no learner
    from edgewise_trainer.incremental import IncrementalLearner, LearnReport
    from edgewise_trainer.incremental.stream import Examples

REFUSED = 1  # exit status where the update would have done harm

Remember = Annotated[
    Path | None,
    typer.Option(help="An .npz of examples that the model knows, to be replayed."),
]
Keep = Annotated[
    Path | None,
    typer.Option(help="An .npz of examples on which it must not get worse."),
]
Store = Annotated[
    Path | None, typer.Option(help="A file that keeps examples for the next time.")
]
Cut = Annotated[
    str | None,
    typer.Option(help="Tensor, or last:K: what lies before it is not trained."),
]


def personalize(
    model: ModelFile,
    examples: Annotated[Path, typer.Argument(help="An .npz of inputs and targets.")],
    output: Output,
    target: Annotated[str, typer.Option(help="Name of the targets.")] = "target",
    remember: Remember = None,
    keep: Keep = None,
    max_drop: Annotated[
        float, typer.Option(help="Accuracy that may be lost on --keep.")
    ] = 0.02,
    method: Annotated[
        str, typer.Option(help="none, replay, ewc, lwf, or several joined by +.")
    ] = "replay",
    replay_bytes: Annotated[
        int, typer.Option(help="Bytes of replayed examples.")
    ] = 20_000,
    store: Store = None,
    trainable: Trained = None,
    cut: Cut = None,
    epochs: Annotated[int, typer.Option(help="Passes over the examples.", min=1)] = 15,
    batch_size: Annotated[int, typer.Option(help="Examples of a step.", min=1)] = 16,
    rate: Annotated[
        float, typer.Option("--lr", "--rate", help="Learning rate of AdamW.")
    ] = 2e-3,
    seed: Annotated[int, typer.Option(help="Of the order of examples.")] = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Teach a model from a handful of examples without losing the rest.

    Classes beyond those of the model join its head.  Where --keep would get worse by
    more than --max-drop, nothing is written, and the exit status is 1.

    Example: edgewise personalize digits.ew mine.npz --remember some.npz -o mine.ew
    """
    from edgewise_trainer import optimizers
    from edgewise_trainer.cli.examples import load_examples
    from edgewise_trainer.incremental import IncrementalLearner

    for given in (model, examples, remember, keep):
        not_over(given, output)
    want_place(output)
    loaded = opened(model, quiet=json)

    def read(path: Path) -> Examples:
        return load_examples(path, loaded, target)

    learner = IncrementalLearner(
        loaded,
        method,
        optimizer=optimizers.AdamW(rate),
        trainable=chosen(trainable),
        replay_bytes=replay_bytes,
        store=store,
        keep=None if keep is None else read(keep),
        max_drop=max_drop,
        cut=cut,
        known="all",
        threads=threads,
        seed=seed,
    )
    if remember is not None:
        learner.remember(read(remember))
    report = _taught(learner, read(examples), epochs, batch_size, quiet=json)
    if report.accepted:
        learner.export().save(output)
    on = "the new examples" if keep is None else "the keep-set"
    _show(learner, report, output, on, json=json)
    if not report.accepted:
        raise typer.Exit(REFUSED)


def _taught(
    learner: IncrementalLearner,
    data: Examples,
    epochs: int,
    batch_size: int,
    *,
    quiet: bool,
) -> LearnReport:
    """One task, with a bar of its steps."""
    from edgewise_trainer import Epoch, Progress

    count = len(data[1])
    steps = epochs * -(-count // batch_size)
    with progress(f"learning from {count} examples", steps, quiet=quiet) as tick:

        def told(event: Progress | Epoch) -> None:
            if isinstance(event, Progress):
                tick()

        return learner.learn(data, epochs, batch_size, callbacks=(told,))


def _show(
    learner: IncrementalLearner,
    report: LearnReport,
    output: Path,
    on: str,
    *,
    json: bool,
) -> None:
    seconds = sum(epoch.seconds for epoch in report.history.epochs)
    if json:
        show_json(
            {
                "accepted": report.accepted,
                "reason": report.reason,
                "before": dict(report.before),
                "after": dict(report.after),
                "seconds": seconds,
                "classes": len(learner.classes),
                "replay": len(learner.replay),
                "file": str(output) if report.accepted else None,
            }
        )
        return
    rows = [
        (name, f"{report.before[name]:.4f}", f"{report.after[name]:.4f}")
        for name in report.after
    ]
    show_table((f"on {on}", "before", "after"), rows)
    if report.accepted:
        held = len(learner.replay)
        print(f"{output}: learned in {seconds:.1f} s; {held} examples to be replayed")
    else:
        print(report)
