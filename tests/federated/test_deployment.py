"""What machines of a fleet agree on: written, changed by people, read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise.errors import ConfigError, ModelFormatError
from edgewise.tools.demo import NETWORK
from edgewise_federated import Device, FederatedConfig, Privacy
from edgewise_federated.deployment import HOW, PACKED, Deployment, point, read, write
from edgewise_trainer.optimizers import AdamW

CONFIG = FederatedConfig(
    rounds=7,
    local_epochs=3,
    strategy="fedprox",
    options={"mu": 0.5, "server_lr": 1.0},
    codec="topk:0.1",
    personal=["fc*", 'odd "name" ü'],
    privacy=Privacy(1.5, 2.0),
    deadline_s=12.5,
    seed=3,
)


@pytest.fixture(scope="module")
def model() -> ew.Model:
    return ew.convert(NETWORK)


@pytest.fixture
def folder(tmp_path: Path, model: ew.Model) -> Path:
    x = np.arange(2 * 64, dtype=np.float32).reshape(2, 1, 8, 8)
    test = x, np.array([3, 4])
    write(tmp_path, Deployment(model, CONFIG, "hinge", "adamw", 0.25, test))
    return tmp_path


def test_what_is_written_is_read(folder: Path, model: ew.Model) -> None:
    found = read(folder)
    assert found.config == CONFIG
    assert (found.loss, found.descent) == ("hinge", AdamW(lr=0.25))
    for name, array in model.parameters().items():
        np.testing.assert_array_equal(found.model.parameters()[name], array)
    inputs, targets = found.test
    assert inputs["image"].shape == (2, 1, 8, 8)
    assert inputs["image"].ravel()[-1] == 127
    assert targets.tolist() == [3, 4]


def test_what_is_as_always_is_not_written(tmp_path: Path, model: ew.Model) -> None:
    write(tmp_path, Deployment(model, FederatedConfig()))
    found = read(tmp_path)
    assert found.config == FederatedConfig()
    assert found.test is None
    assert "rounds" not in (tmp_path / HOW).read_text()


def test_people_may_change_it(folder: Path) -> None:
    text = (folder / HOW).read_text()
    (folder / HOW).write_text(text.replace("rounds = 7", "rounds = 9  # more"))
    assert read(folder).config.rounds == 9


def test_a_small_one_means_another(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    point(place, folder, rounds=2, checkpoint_dir="/kept here")
    found = read(place)
    assert (found.config.rounds, found.config.checkpoint_dir) == (2, "/kept here")
    assert found.config.privacy == CONFIG.privacy
    assert found.test is not None
    assert sorted(path.name for path in place.iterdir()) == [HOW]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("round = 3", "round"),
        ("federated = 3", "federated"),
        ("[federated]\nround = 3", "round"),
        ("[federated]\nrounds = 0", "rounds"),
        ("[federated]\nrounds = 'many'", "rounds"),
        ("[federated]\nprivacy = 3", "federated"),
        ("[federated.privacy]\nclip = 1.0", "noise_multiplier"),
        ("loss = 3", "loss"),
        ("lr = 'fast'", "lr"),
        ("lr = ", HOW),
        ("packed = '/no/such/file'", "/no/such/file"),
        ("\0", HOW),
    ],
)
def test_what_nobody_knows_is_refused_by_name(
    folder: Path, text: str, says: str
) -> None:
    (folder / HOW).write_text(text)
    with pytest.raises(ConfigError, match=says):
        read(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model.ew": 3}', "\xff"])
def test_damaged_files_are_refused(folder: Path, content: str) -> None:
    (folder / PACKED).write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match="damaged"):
        read(folder)


def test_a_damaged_model_is_refused(folder: Path) -> None:
    (folder / PACKED).write_text(json.dumps({"model.ew": "AAAA"}))
    with pytest.raises(ModelFormatError):
        read(folder)


def test_damaged_examples_are_refused(folder: Path) -> None:
    packed = json.loads((folder / PACKED).read_text())
    (folder / PACKED).write_text(json.dumps({**packed, "test.npz": "AAAA"}))
    with pytest.raises(ConfigError, match=r"test\.npz is damaged"):
        read(folder)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=HOW):
        read(tmp_path)


def test_what_cannot_be_written_is_refused(tmp_path: Path, model: ew.Model) -> None:
    config = FederatedConfig(devices=(Device(), Device(speed=0.5)))
    with pytest.raises(ConfigError, match="devices"):
        write(tmp_path, Deployment(model, config))
    assert list(tmp_path.iterdir()) == []
