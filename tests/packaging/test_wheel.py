"""What the wheel holds."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"edgewise", "edgewise_trainer", "edgewise_federated"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built without isolation: the environment has what the build needs."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_it_installs_our_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES


def test_it_is_for_one_platform_and_any_python(wheel: zipfile.ZipFile) -> None:
    (info,) = (name for name in wheel.namelist() if name.endswith("/WHEEL"))
    text = wheel.read(info).decode()
    assert "Root-Is-Purelib: false" in text
    assert "Tag: py3-none-" in text
    assert "-any" not in text


def test_it_brings_the_kernel_library(wheel: zipfile.ZipFile) -> None:
    libraries = [i for i in wheel.infolist() if i.filename.endswith(".so")]
    assert libraries
    assert all(i.filename.startswith("edgewise/lib/") for i in libraries)
    assert all(wheel.read(i)[:4] == b"\x7fELF" for i in libraries)


def test_it_brings_the_demo_and_the_licences(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    for part in ("digits.onnx", "digits.npz", "NOTICE"):
        assert f"edgewise/demo_data/{part}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_it_is_typed(wheel: zipfile.ZipFile) -> None:
    for package in PACKAGES:
        assert f"{package}/py.typed" in wheel.namelist()
