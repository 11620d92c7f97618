"""Which sources a kernel library comes from: its identity, without importing any."""

from __future__ import annotations

import ast
from pathlib import Path
from zlib import crc32

from edgewise import errors
from edgewise.kernels.levels import Level

KERNELS = Path(__file__).parent
NATIVE = KERNELS / "native"
_PREFIX = "edgewise.kernels."
_FACTOR = 6364136223846793005  # mixes well (Knuth, MMIX)
# What the machine code of every module depends on beside what it imports.
_COMMON = (KERNELS / "levels.py", NATIVE / "emit.py", Path(errors.__file__))


def library_hash() -> int:
    """What ``ew_abi()`` of a library built from the sources here returns."""
    total = 0
    for file in sorted(_library_files()):
        # An odd factor keeps what any one file has changed.
        total = total * _FACTOR + crc32(file.read_bytes(), crc32(file.name.encode()))
    return (total + 2**63) % 2**64 - 2**63


def changed() -> float:
    """When one of the sources changed last, in seconds since the epoch."""
    return max(file.stat().st_mtime for file in _library_files())


def _library_files() -> list[Path]:
    return [*_COMMON, *NATIVE.glob("*.py"), *(KERNELS / "catalog").glob("*.py")]


def object_key(module: str, level: Level) -> str:
    """Name under which the object of one native module may be kept."""
    # Only who builds wants these; a run would pay 8 and 20 ms for them.
    import hashlib  # noqa: PLC0415
    from importlib import metadata  # noqa: PLC0415

    code = f"{level.triple} {level.cpu} {level.features} {level.fused}"
    tools = f"{code} {metadata.version('numba')} {metadata.version('llvmlite')}"
    total = hashlib.sha256(tools.encode())
    for file in sorted({*_COMMON, *_closure(module)}):
        total.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return f"{module}-{total.hexdigest()[:24]}"


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
