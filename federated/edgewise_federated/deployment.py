"""What the machines of a fleet have to agree on, as files of one folder.

``fleet.toml`` says how they learn, for people to read and change; ``packed.json`` holds
the model and the server's test examples, because apps of Flower carry texts alone.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import ConfigError
from edgewise.format.read import read_bytes
from edgewise.format.whole import replace
from edgewise.format.write import write_bytes
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig, Privacy
from edgewise_trainer.cli.examples import load_examples
from edgewise_trainer.cli.options import optimizer_of
from edgewise_trainer.data import named
from edgewise_trainer.optimizers import Optimizer

HOW, PACKED = "fleet.toml", "packed.json"
MODEL, TEST, TARGET = "model.ew", "test.npz", "target"
HEAD = "# How a fleet learns: the same on all its machines.\n"
# What it may say, beside where the packed files are if they are not beside it.
KEYS = {"loss": str, "optimizer": str, "lr": float, "packed": str, "federated": dict}


class Deployment(NamedTuple):
    """What there is to learn, and how.

    Attributes:
        model: Where it begins.
        config: How rounds go.
        loss: What each device makes small.
        optimizer: By name, as ``edgewise train`` has them.
        rate: Of learning; None: the optimizer's own.
        test: (inputs by name, targets) that the server evaluates on; None: none.
    """

    model: Model
    config: FederatedConfig
    loss: str = "cross_entropy"
    optimizer: str = "sgd"
    rate: float | None = None
    test: Data | None = None

    @property
    def descent(self) -> Optimizer:
        """The optimizer of the devices."""
        return optimizer_of(self.optimizer, self.rate)


def write(folder: Path, deployment: Deployment) -> None:
    """Write the files of a folder that is there.

    Raises:
        ConfigError: Something of it cannot be written down.
        OSError: A file cannot be written.
    """
    files = {MODEL: write_bytes(deployment.model.module)}
    if deployment.test is not None:
        files[TEST] = _npz(deployment.test, deployment.model)
    packed = {name: base64.b64encode(data).decode() for name, data in files.items()}
    plain: dict[str, Any] = {
        "loss": deployment.loss,
        "optimizer": deployment.optimizer,
        "lr": deployment.rate,
        "federated": _differences(deployment.config),
    }
    text = HEAD + "".join(_toml(plain))
    for name, content in ((PACKED, json.dumps(packed)), (HOW, text)):
        data = content.encode()
        replace(folder / name, lambda file, data=data: file.write(data))  # type: ignore[misc]  # mypy does not infer it


def read(folder: Path) -> Deployment:
    """What ``write`` wrote, and people changed.

    Raises:
        ConfigError: A file is missing or damaged, or says what nobody knows.
        ModelFormatError: The model is damaged.
    """
    how = _how(folder / HOW)
    packed = folder / how.pop("packed", PACKED)
    files = _packed(packed)
    model = Model(read_bytes(files[MODEL]))
    test = _examples(files[TEST], packed) if TEST in files else None
    config = _config(how.pop("federated", {}), folder / HOW)
    rate = how.pop("lr", None)
    return Deployment(model, config, **how, rate=rate, test=test)


def examples(path: Path, model: Model) -> Data:
    """(inputs by name, targets) of a device's file; targets are called ``target``.

    Raises:
        ConfigError: Something is missing in it.
    """
    return load_examples(path, model, TARGET)


def point(folder: Path, source: Path, **changed: Any) -> None:
    """Write a small deployment that means another one, with fields changed.

    Args:
        folder: Where to; it is there.
        source: Folder of the other one, which stays where it is.
        changed: Fields of ``FederatedConfig``.
    """
    how = _how(source / HOW)
    how["packed"] = str((source / how.get("packed", PACKED)).absolute())
    how["federated"] = {**how.get("federated", {}), **changed}
    (folder / HOW).write_text("".join(_toml(how)), "utf-8")


def _how(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
    for key, value in found.items():
        kind = KEYS.get(key)
        if kind is None:
            raise ConfigError(f"{path}: says {key!r}; want {', '.join(KEYS)}")
        if not isinstance(value, (int, float) if kind is float else kind):
            raise ConfigError(f"{path}: {key} = {value!r}: want a {kind.__name__}")
    return found


def _packed(path: Path) -> dict[str, bytes]:
    try:
        packed = json.loads(path.read_text("utf-8"))
        files = {name: base64.b64decode(text) for name, text in packed.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigError(f"{path}: damaged: {error}") from error
    if MODEL not in files:
        raise ConfigError(f"{path}: damaged: holds no {MODEL}")
    return files


def _config(table: Any, path: Path) -> FederatedConfig:
    """A configuration of a table.

    Raises:
        ConfigError: A field is unknown, or of another kind.
    """
    try:
        given = dict(table)
        if "privacy" in given:
            given["privacy"] = Privacy(**given["privacy"])
        return FederatedConfig(**given)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path}: [federated]: {error}") from error


def _differences(config: FederatedConfig) -> dict[str, Any]:
    """The fields that are not as they are anyway."""
    found = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value != field.default:
            is_plain = not dataclasses.is_dataclass(value) or isinstance(value, type)
            found[field.name] = value if is_plain else dataclasses.asdict(value)
    return found


def _toml(table: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Lines of a table, then its tables."""
    for key, value in table.items():
        if not isinstance(value, Mapping) and value is not None:
            yield f"{key} = {_literal(key, value)}\n"
    for key, value in table.items():
        if isinstance(value, Mapping):
            below = f"{name}.{key}" if name else key
            yield f"\n[{below}]\n"
            yield from _toml(value, below)


def _literal(key: str, value: Any) -> str:
    """A value as TOML and JSON both write it."""
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return json.dumps(list(value), ensure_ascii=False)
    if isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    raise ConfigError(
        f"{key}={value!r}: cannot be written into {HOW}; want numbers and texts, or an"
        " app of your own with client_app and server_app"
    )


def arrays_of(data: Data, model: Model) -> dict[str, Array]:
    """Examples as a file has them: inputs by name, and targets."""
    inputs, targets = data
    return {**named(inputs, [one.name for one in model.inputs]), TARGET: targets}


def _npz(data: Data, model: Model) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays_of(data, model))
    return stream.getvalue()


def _examples(content: bytes, path: Path) -> Data:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays: dict[str, Array] = {name: file[name] for name in file.files}
        return arrays, arrays.pop(TARGET)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{path}: {TEST} is damaged: {error}") from error
