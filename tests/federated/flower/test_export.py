"""The app of a fleet in a folder: Flower packs it whole, and it is what was meant."""

from __future__ import annotations

import io
import tomllib
import warnings
import zipfile
from pathlib import Path

import pytest

import edgewise as ew
from edgewise.errors import ConfigError
from edgewise.tools.demo import NETWORK
from edgewise_federated import FederatedConfig
from edgewise_federated.deployment import Deployment, read
from edgewise_federated.flower.export import PACKAGE, deployed, export, stand_in
from edgewise_federated.flower.version import private

CODE = {f"{PACKAGE}/{name}.py" for name in ("__init__", "client", "server")}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "My app, 2"
    deployment = Deployment(ew.convert(NETWORK), FederatedConfig(rounds=4))
    export(folder, deployment, "/data/{node}.npz")
    return folder


def packed(folder: Path) -> dict[str, bytes]:
    """What Flower sends of an app."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = private("flwr.cli.build", "build_fab_from_disk")(folder)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_flower_packs_all_of_it(app: Path, tmp_path: Path) -> None:
    files = packed(app)
    settings = {f"{PACKAGE}/fleet.toml", f"{PACKAGE}/packed.json"}
    assert CODE | settings <= files.keys()
    for name in settings:
        (tmp_path / Path(name).name).write_bytes(files[name])
    assert read(tmp_path).config.rounds == 4


def test_it_says_what_it_is(app: Path) -> None:
    project = tomllib.loads((app / "pyproject.toml").read_text())
    assert project["project"]["name"] == "fleet-my-app-2"
    components = project["tool"]["flwr"]["app"]["components"]
    assert components["serverapp"] == f"{PACKAGE}.server:app"
    assert "'/data/{node}.npz'" in (app / PACKAGE / "client.py").read_text()


def test_one_for_this_machine_carries_no_model(app: Path, tmp_path: Path) -> None:
    stand_in(tmp_path / "small", app, rounds=2)
    files = packed(tmp_path / "small")
    assert files.keys() >= CODE
    assert f"{PACKAGE}/packed.json" not in files
    found = read(deployed(tmp_path / "small"))
    assert found.config.rounds == 2
    assert len(found.model.inputs) == 1


def test_nothing_is_overwritten(app: Path) -> None:
    with pytest.raises(ConfigError, match="holds something already"):
        export(app, Deployment(ew.convert(NETWORK), FederatedConfig()), "x")


def test_another_folder_is_no_app(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="want a folder that"):
        deployed(tmp_path)
