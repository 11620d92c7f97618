"""An app of Flower's in a folder, for its own commands and for ours.

Stock machines run it as it is (``flwr run``); our node reads its settings and nothing
of its code.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Any

from edgewise.errors import ConfigError
from edgewise_federated.deployment import HOW, PACKED, Deployment, point, write
from edgewise_federated.flower.version import SUPPORTED

PACKAGE = "edgewise_app"
PROJECT = Template("""\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$name"
version = "0.1.0"
description = "A model that a fleet of devices trains together."
license = "Apache-2.0"
dependencies = ["edgewise", "flwr$flower"]

[tool.hatch.build.targets.wheel]
packages = ["$package"]

[tool.flwr.app]
publisher = "local"
fab-include = ["$package/*.py", "$package/$how"$packed]

[tool.flwr.app.components]
serverapp = "$package.server:app"
clientapp = "$package.client:app"
""")
CLIENT = Template('''\
"""The device's side: it learns from what it has."""

from pathlib import Path

from edgewise_federated import client_app
from edgewise_federated.deployment import examples, read

DATA = $data  # where each device has its examples; {node} is its number

deployment = read(Path(__file__).parent)


def data(node: int):
    """Inputs and targets of a device: change it to where they are."""
    return examples(Path(DATA.replace("{node}", str(node))), deployment.model)


app = client_app(
    deployment.model,
    data,
    deployment.config,
    loss=deployment.loss,
    optimizer=deployment.descent,
)
''')
SERVER = '''\
"""The server's side: it joins what devices learned."""

from pathlib import Path

from edgewise_federated import Round, server_app
from edgewise_federated.deployment import read
from edgewise_federated.flower.kept import Folder
from edgewise_federated.flower.processes import end_with_parent

end_with_parent()  # what is kept is whole after each round
deployment = read(Path(__file__).parent)
# Where history.json and, in the end, model.ew are written.
kept = Folder(Path(deployment.config.checkpoint_dir or "edgewise-server"))


def told(one: Round) -> None:
    """Say what came of a round, and write it down."""
    print(one, flush=True)
    kept.note(one)


app = server_app(
    deployment.model,
    deployment.config,
    evaluate=deployment.test,
    loss=deployment.loss,
    callbacks=[told],
    done=kept.finish,
)
'''
INIT = '"""A model that a fleet of devices trains together."""\n'


def export(folder: Path, deployment: Deployment, data: str) -> None:
    """Write an app that trains a model.

    Args:
        folder: Made; it must not be there, or be empty.
        deployment: What is trained, and how.
        data: Where each device has its examples, an ``.npz``; with ``{node}`` for its
            number.

    Raises:
        ConfigError: The folder holds something, or settings cannot be written down.
        OSError: A file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: holds something already; name a new folder")
    package = folder / PACKAGE
    package.mkdir(parents=True)
    write(package, deployment)
    _write_code(folder, f', "{PACKAGE}/{PACKED}"', data)


def deployed(folder: Path) -> Path:
    """Where the settings of an app are.

    Raises:
        ConfigError: The folder is no app of ours.
    """
    package = folder / PACKAGE
    if not (package / HOW).is_file():
        raise ConfigError(
            f"{folder}: no {PACKAGE}/{HOW}; want a folder that `edgewise federate"
            " export` wrote"
        )
    return package


def stand_in(folder: Path, app: Path, **changed: Any) -> None:
    """Write an app for this machine alone, which finds the model where it is.

    So a server carries no model of any size to itself, and what it keeps is where it
    was told and not where Flower unpacks apps.

    Args:
        folder: Made.
        app: Folder of the app that is meant.
        changed: Fields of ``FederatedConfig``.
    """
    package = folder / PACKAGE
    package.mkdir(parents=True)
    point(package, deployed(app), **changed)
    _write_code(folder, "", "nowhere")


def _write_code(folder: Path, packed: str, data: str) -> None:
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    project = PROJECT.substitute(
        name=f"fleet-{name}" if name else "fleet",
        flower=SUPPORTED,
        package=PACKAGE,
        how=HOW,
        packed=packed,
    )
    (folder / "pyproject.toml").write_text(project, "utf-8")
    package = folder / PACKAGE
    (package / "__init__.py").write_text(INIT, "utf-8")
    (package / "server.py").write_text(SERVER, "utf-8")
    client = CLIENT.substitute(data=repr(data))
    (package / "client.py").write_text(client, "utf-8")
