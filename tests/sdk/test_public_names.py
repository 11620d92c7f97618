"""What users import: the list is frozen, and every name on it is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import edgewise
from edgewise.format.versions import EDGEWISE_VERSION

NAMES = [
    "CheckpointError",
    "ConfigError",
    "ConvertConfig",
    "DTypeError",
    "DelegateError",
    "EdgewiseError",
    "FederatedError",
    "InternalError",
    "KernelError",
    "KernelLibraryError",
    "MemoryReport",
    "Model",
    "ModelFormatError",
    "Profile",
    "QuantizeConfig",
    "Session",
    "SessionConfig",
    "ShapeError",
    "TensorInfo",
    "TrainabilityError",
    "UnsupportedOpError",
    "check",
    "compare",
    "convert",
    "load",
    "quantize",
]


def test_the_public_names_are_these() -> None:
    assert sorted(edgewise.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(edgewise, name).__doc__


def test_every_error_is_an_edgewise_error() -> None:
    errors = [name for name in NAMES if name.endswith("Error")]
    assert len(errors) == 13
    for name in errors:
        assert issubclass(getattr(edgewise, name), edgewise.EdgewiseError)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = edgewise.nothing
    assert "nothing" not in dir(edgewise)


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "before", ["", "import edgewise.convert.config", "edgewise.ConvertConfig"]
)
def test_convert_is_a_function_whatever_was_imported_before(before: str) -> None:
    code = f"import edgewise\n{before}\nprint(edgewise.convert.__class__.__name__)"
    assert run_python(code).strip() == "function"


def test_importing_the_package_imports_no_part_of_it() -> None:
    code = "import sys, edgewise; print(*(m for m in sys.modules if 'edgewise' in m))"
    assert run_python(code).split() == ["edgewise"]


def test_naming_a_session_imports_nothing_heavy() -> None:
    heavy = ("onnx", "numba", "llvmlite", "typer", "rich", "scipy", "ml_dtypes")
    code = "import sys, edgewise; edgewise.Session; print(*sys.modules)"
    assert not set(heavy) & set(run_python(code).split())


def test_the_package_knows_its_version() -> None:
    assert edgewise.__version__ == EDGEWISE_VERSION
