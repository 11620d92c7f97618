"""Build the kernel library into wheels and editable installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path(__file__).resolve().parent / "sdk"
LIBRARIES = SOURCES / "edgewise" / "lib"
BUILD = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from edgewise.kernels.native.build import main; main()"
)


class KernelLibrary(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own
    """Compiles the kernels for the processor at hand, or for ``EDGEWISE_TARGET``.

    For another machine every level of its architecture is compiled: it picks one.
    Options of the hook: ``all-levels``: do so for this architecture, too, as a release
    does.
    """

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What only the build needs; a linker where the machine has none."""
        linker = [] if shutil.which("cc") else ["ziglang"]
        return ["numba>=0.68,<0.69", *linker]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and mark the wheel as one for this platform."""
        del version
        sys.path.insert(0, str(SOURCES))
        from edgewise.kernels import levels  # noqa: PLC0415 - just made importable

        target = os.environ.get("EDGEWISE_TARGET", levels.host_target())
        wanted = list(levels.levels_of(target))
        here = target == levels.host_target()
        if here and not self.config.get("all-levels"):
            wanted = [levels.host_levels()[0]]
        built = {_build(level.name) for level in wanted}
        for other in set(LIBRARIES.glob("*.so")) - built:
            other.unlink()
        build_data["pure_python"] = False
        # No symbol of the library names a version of libc, so any will do.
        machine = target.partition("-")[0]
        build_data["tag"] = f"py3-none-manylinux_2_17_{machine}"


def _build(level: str) -> Path:
    """Compile in a process of its own: Numba is changed for good by it.

    The path is set inside that process: pip's build environment takes folders that an
    earlier editable install has named out of the path that a process begins with.
    """
    output = LIBRARIES / f"kernels-{level}.so"
    command = [sys.executable, "-c", BUILD, str(SOURCES), "--level", level]
    subprocess.run([*command, "-o", str(output)], check=True, stdout=sys.stderr)
    return output
