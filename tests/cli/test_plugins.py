"""Commands that other packages register."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ENTRIES = """[edgewise.commands]
hello = hello_plugin:hello
tree = hello_plugin:tree
gone = no_such_package:command
odd = hello_plugin:missing
"""
PLUGIN = '''
import typer

tree = typer.Typer()


@tree.command()
def leaf() -> None:
    """A leaf."""
    print("a leaf")


@tree.command()
def root() -> None:
    """A root."""
    print("a root")


def hello(name: str) -> None:
    """Greet."""
    print(f"hello, {name}")
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with commands, installed as far as ``importlib.metadata`` can see."""
    (tmp_path / "hello_plugin.py").write_text(PLUGIN)
    info = tmp_path / "hello_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hello-plugin\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)


@pytest.mark.usefixtures("plugin")
def test_a_function_becomes_a_command(command) -> None:
    done = command("hello", "world")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hello, world\n"


@pytest.mark.usefixtures("plugin")
def test_a_tree_becomes_a_command_with_subcommands(command) -> None:
    assert command("tree", "leaf").stdout == "a leaf\n"
    assert command("tree", "root").stdout == "a root\n"


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("name", ["gone", "odd"])
def test_a_broken_command_breaks_itself_only(command, name: str) -> None:
    done = command(name)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert f"command '{name}'" in line
    assert command("--version").returncode == 0


def test_without_plugins_there_are_our_commands_only(command) -> None:
    assert "hello" not in command("--help").stdout


def test_the_version_is_printed(command) -> None:
    done = command("--version")
    assert done.returncode == 0
    assert done.stdout.strip()
