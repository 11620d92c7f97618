"""The command ``edgewise``: one subcommand a file, errors as one line."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback

from edgewise import _env
from edgewise.errors import ConfigError, EdgewiseError

FAILED = 2  # exit status of an error that the user can do something about


def main() -> None:
    """Run the command that the arguments name."""
    # Wherever it stands: a user who sees a bad line adds it at the end and tries again.
    debug = "--debug" in sys.argv[1:]
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        _log_as_asked()
        _command(arguments)
    except BrokenPipeError:
        # Nobody reads on, as after `| head`: end as other tools do, by the signal.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    except (EdgewiseError, OSError) as error:
        if debug:
            traceback.print_exc()
        print(f"edgewise: {error}", file=sys.stderr)
        sys.exit(FAILED)
    except Exception as error:  # noqa: BLE001 - a bug of ours ends in one line, too
        if debug:
            traceback.print_exc()
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        hint = "a bug in edgewise; --debug shows where"
        print(f"edgewise: {what} ({hint})", file=sys.stderr)
        sys.exit(FAILED)


def _command(arguments: list[str]) -> None:
    from edgewise.cli.app import app

    try:
        app(_named(arguments))(arguments, prog_name="edgewise")
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # of which click makes a 1
            raise leaving.__context__ from None
        sys.stdout.flush()  # what is written last may be what nobody reads
        raise


def _named(arguments: list[str]) -> str:
    """The command that is called: what comes first and is no option."""
    return next((each for each in arguments if not each.startswith("-")), "")


def _log_as_asked() -> None:
    name = _env.log_level()
    if name is None:
        return
    level = logging.getLevelNamesMapping().get(name.upper())
    if level is None:
        raise ConfigError(
            f"EDGEWISE_LOG={name!r}: want DEBUG, INFO, WARNING, ERROR or CRITICAL"
        )
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
