"""Which sources a kernel library comes from: its identity, without importing any."""

from __future__ import annotations

import ast
from pathlib import Path

from edgewise import errors
from edgewise.kernels.levels import Level

KERNELS = Path(__file__).parent
NATIVE = KERNELS / "native"
_PREFIX = "edgewise.kernels."
# What the machine code of every module depends on beside what it imports.
_COMMON = (KERNELS / "levels.py", NATIVE / "emit.py", Path(errors.__file__))


def library_hash() -> int:
    """What ``ew_abi()`` of a library built from the sources here returns."""
    return int.from_bytes(_digest(sorted(_library_files()))[:8], "little", signed=True)


def changed() -> float:
    """When one of the sources changed last, in seconds since the epoch."""
    return max(file.stat().st_mtime for file in _library_files())


def _library_files() -> list[Path]:
    return [*_COMMON, *NATIVE.glob("*.py"), *(KERNELS / "catalog").glob("*.py")]


def object_key(module: str, level: Level) -> str:
    """Name under which the object of one native module may be kept."""
    from importlib import metadata  # noqa: PLC0415 - 20 ms that no run should pay

    code = f"{level.triple} {level.cpu} {level.features} {level.fused}"
    tools = f"{code} {metadata.version('numba')} {metadata.version('llvmlite')}"
    files = sorted({*_COMMON, *_closure(module)})
    return f"{module}-{_digest(files, tools).hex()[:24]}"


def _digest(files: list[Path], more: str = "") -> bytes:
    import hashlib  # noqa: PLC0415 - 8 ms that a library newer than its sources saves

    total = hashlib.sha256(more.encode())
    for file in files:
        total.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return total.digest()


def _closure(module: str) -> set[Path]:
    """The file of ``module``, and those under ``kernels`` that it imports."""
    found: set[Path] = set()
    waiting = [NATIVE / f"{module}.py"]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        tree = ast.parse(file.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting += _kernel_files(node)
    return found


def _kernel_files(node: ast.ImportFrom) -> list[Path]:
    """Files under ``kernels`` that an import statement names, in either form."""
    names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    files = (
        KERNELS.joinpath(*name.removeprefix(_PREFIX).split(".")).with_suffix(".py")
        for name in names
        if name and name.startswith(_PREFIX)
    )
    return [file for file in files if file.exists()]
