"""The command reference names what there is."""

from __future__ import annotations

from pathlib import Path

from edgewise.cli.app import COMMANDS
from edgewise.cli.siblings import COMMANDS as SIBLINGS

REFERENCE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_every_command_is_in_the_reference() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert [
        name for name in (*COMMANDS, *SIBLINGS) if f"| `{name}` |" not in text
    ] == []
