"""What a node runs: something that is installed on its own machine."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from flwr.clientapp import ClientApp

from edgewise.errors import ConfigError
from edgewise_federated.deployment import examples, read
from edgewise_federated.flower.client import client_app
from edgewise_federated.flower.export import deployed

NAME = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"


def app_of(name: str, data: Path | None, state: Path | None) -> ClientApp:
    """What answers messages.

    Args:
        name: Folder that ``export`` wrote, or ``MODULE:NAME`` of an app.
        data: The device's examples, for a folder.
        state: Where it keeps what is its own; None: in a folder of the user's.

    Raises:
        ConfigError: There is none of that name, or it has no data.
    """
    if re.fullmatch(NAME, name) and not Path(name).exists():
        return installed(name)
    deployment = read(deployed(Path(name)))
    if data is None:
        raise ConfigError("want --data, an .npz of this device's inputs and `target`")
    mine = examples(data, deployment.model)
    return client_app(
        deployment.model,
        lambda _: mine,
        deployment.config,
        loss=deployment.loss,
        optimizer=deployment.descent,
        state_dir=state,
    )


def installed(name: str) -> ClientApp:
    """The app ``MODULE:NAME`` of what is installed here.

    Raises:
        ConfigError: There is none.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{name}: no app: {error}") from error
    if not isinstance(found, ClientApp):
        raise ConfigError(f"{name}: a {type(found).__name__}; want a ClientApp")
    return found
