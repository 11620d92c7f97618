"""The tree of commands: ours, and those other packages register."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Annotated

import typer

from edgewise.cli.bench import bench
from edgewise.cli.compare import compare
from edgewise.cli.compress import compress
from edgewise.cli.convert import convert
from edgewise.cli.demo import demo
from edgewise.cli.doctor import doctor
from edgewise.cli.inspect import inspect
from edgewise.cli.profile import profile
from edgewise.cli.quantize import quantize
from edgewise.cli.run import run
from edgewise.cli.siblings import COMMANDS as SIBLINGS
from edgewise.cli.siblings import GROUP
from edgewise.errors import ConfigError

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "convert": convert,
    "inspect": inspect,
    "run": run,
    "bench": bench,
    "profile": profile,
    "compare": compare,
    "quantize": quantize,
    "compress": compress,
    "doctor": doctor,
}


def app(named: str = "") -> typer.Typer:
    """The command line, plugins included.

    Args:
        named: The command that is called; of those that other packages bring, the
            others are listed only.
    """
    root = typer.Typer(
        name="edgewise",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback()(_options)
    for name, command in COMMANDS.items():
        root.command(name)(command)
    for name, sibling in SIBLINGS.items():
        if name == named:
            _add(root, metadata.EntryPoint(name, sibling.place, GROUP))
        else:
            root.command(name, help=sibling.summary)(_listed)
    for entry in sorted(metadata.entry_points(group=GROUP)):
        _add(root, entry)
    return root


def _add(root: typer.Typer, entry: metadata.EntryPoint) -> None:
    plugin = _plugin(entry)
    if isinstance(plugin, typer.Typer):
        root.add_typer(plugin, name=entry.name)
    else:
        root.command(entry.name)(plugin)


def _print_version(wanted: bool) -> None:
    if wanted:
        from edgewise.tools.doctor import version

        print(version())
        raise typer.Exit


def _options(
    version: Annotated[  # its callback does it, before all else
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and leave.",
        ),
    ] = False,
    debug: Annotated[  # read before parsing; shown in the help here
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Run any ONNX model on an edge device, and keep it learning there."""


def _listed() -> None:
    """Stands for a command that is not called."""


def _plugin(entry: metadata.EntryPoint) -> typer.Typer | Callable[..., None]:
    """A plugin's command; one that cannot be loaded says so when it is called."""
    try:
        loaded: typer.Typer | Callable[..., None] = entry.load()
    except (ImportError, AttributeError) as error:
        reason = f"command {entry.name!r} ({entry.value}) cannot be loaded: {error}"

        def unusable() -> None:
            """Cannot be loaded; call it to see why."""
            raise ConfigError(reason)

        return unusable
    return loaded
