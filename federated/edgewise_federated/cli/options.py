"""Options that the commands of a fleet share, and what they turn into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from edgewise.cli.options import opened
from edgewise.errors import ConfigError

if TYPE_CHECKING:  # --help makes no trainer
    from edgewise.ir.op import Array
    from edgewise.model import Model
    from edgewise_federated.client import Data
    from edgewise_federated.config import FederatedConfig, Privacy
    from edgewise_trainer.optimizers import Optimizer

ModelFile = Annotated[
    Path | None,
    typer.Argument(help="An .ew or .onnx file; the shipped digits if left out."),
]
DataFile = Annotated[Path | None, typer.Option(help="An .npz of inputs and targets.")]
TestFile = Annotated[
    Path | None, typer.Option(help="An .npz to evaluate on; else a part of --data.")
]
Target = Annotated[str, typer.Option(help="Name of the targets.")]
Held = Annotated[
    float,
    typer.Option(help="Share of --data to evaluate on without --test.", max=0.9),
]
Rounds = Annotated[int, typer.Option(help="How many.", min=1)]
PerRound = Annotated[int, typer.Option(help="Devices asked in each round.", min=1)]
Epochs = Annotated[int, typer.Option(help="Passes of a device in a round.", min=1)]
BatchSize = Annotated[int, typer.Option(help="Examples of a step.", min=1)]
Strategy = Annotated[
    str,
    typer.Option(
        help="fedavg, fedprox, scaffold, fedadam, fedyogi, fedavgm, fedmedian, "
        "trimmed_mean or krum."
    ),
]
Options = Annotated[
    list[str] | None, typer.Option(help="A number of it, as mu=0.1. Repeatable.")
]
CodecName = Annotated[
    str, typer.Option(help="float32, float16, int8, int4 or topk:SHARE.")
]
Personal = Annotated[
    list[str] | None,
    typer.Option(help="What stays: last:K, bias, norm, or a pattern. Repeatable."),
]
Secure = Annotated[
    bool, typer.Option("--secure", help="The server sees sums of updates alone.")
]
Clip = Annotated[
    float | None, typer.Option(help="Largest norm of an update; with --noise.")
]
Noise = Annotated[
    float | None,
    typer.Option(help="Privacy: noise as a multiple of --clip."),
]
LossName = Annotated[str, typer.Option(help="As `edgewise train` has them.")]
OptimizerName = Annotated[str, typer.Option(help="As `edgewise train` has them.")]
Rate = Annotated[
    float | None, typer.Option("--lr", help="Learning rate; 0.05 for sgd.")
]
Seed = Annotated[int, typer.Option(help="Of all that is drawn.", min=0)]


SGD_RATE = 0.05  # a device does few steps in a round


class Task(NamedTuple):
    """What there is to learn.

    Attributes:
        model: Where it begins.
        train: Examples to learn from.
        test: Examples to evaluate on.
    """

    model: Model
    train: Data
    test: Data

    def part(self, rows: Array) -> Data:
        """Some of the examples to learn from."""
        return _rows(self.train, rows)


def config_of(
    *,
    options: list[str] | None,
    personal: list[str] | None,
    secure: bool,
    clip: float | None,
    noise: float | None,
    **plain: Any,
) -> FederatedConfig:
    """A configuration of what was given on the command line."""
    from edgewise_federated.config import FederatedConfig
    from edgewise_trainer.cli.options import chosen

    return FederatedConfig(
        options=_numbers(options),
        personal=chosen(personal) if personal else None,
        secure_aggregation=secure,
        privacy=_privacy(clip, noise),
        **plain,
    )


def optimizer_of(name: str, rate: float | None) -> Optimizer:
    """The optimizer of the devices."""
    from edgewise_trainer.cli.options import optimizer_of as made

    return made(name, rate_of(name, rate))


def rate_of(name: str, rate: float | None) -> float | None:
    """What was given, or what suits devices; None: the optimizer's own."""
    return SGD_RATE if name == "sgd" and rate is None else rate


def what_to_learn(
    model: Path | None,
    data: Path | None,
    test: Path | None,
    target: str,
    held_out: float,
    seed: int,
    *,
    quiet: bool,
) -> Task:
    """The model and the examples of files, or the shipped ones.

    Raises:
        ConfigError: One is there without the other, or there are too few examples.
    """
    if model is None and data is None and test is None:
        from edgewise_federated.sample import leaning_digits

        return Task(*leaning_digits())
    if model is None or data is None:
        raise ConfigError("want a model and --data, or neither: the shipped digits")
    from edgewise_trainer.cli.examples import load_examples

    loaded = opened(model, quiet=quiet)
    examples = load_examples(data, loaded, target)
    if test is not None:
        return Task(loaded, examples, load_examples(test, loaded, target))
    return Task(loaded, *_apart(examples, held_out, seed))


def _apart(examples: Data, share: float, seed: int) -> tuple[Data, Data]:
    """Examples to learn from, and others to evaluate on."""
    import numpy as np

    count = len(examples[1])
    order = np.random.default_rng(seed).permutation(count)
    held = round(share * count)
    if not 0 < held < count:
        raise ConfigError(
            f"--held-out {share}: leaves {count - held} of {count} examples to learn"
            f" from and {held} to evaluate on; want both, or --test"
        )
    return _rows(examples, order[held:]), _rows(examples, order[:held])


def _rows(data: Data, rows: Array) -> Data:
    from edgewise_trainer.data import taken

    inputs, targets = data
    return taken(inputs, rows), targets[rows]


def _privacy(clip: float | None, noise: float | None) -> Privacy | None:
    from edgewise_federated.config import Privacy

    if clip is None and noise is None:
        return None
    if clip is None or noise is None:
        raise ConfigError("--clip and --noise: want both, or neither")
    return Privacy(clip, noise)


def _numbers(given: list[str] | None) -> dict[str, float] | None:
    """``["mu=0.1"]`` as ``{"mu": 0.1}``."""
    if not given:
        return None
    found = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise ConfigError(
                f"--option {text!r}: want NAME=NUMBER, like mu=0.1"
            ) from None
    return found
