"""What this machine offers, and what of edgewise does not work on it."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from typing import NamedTuple

from edgewise import _env
from edgewise.errors import EdgewiseError
from edgewise.format.versions import EDGEWISE_VERSION
from edgewise.kernels import levels
from edgewise.runtime import library, topology

DELEGATES = "edgewise.delegates"  # entry-point group of packages that bring one
REQUIRED = ("numpy", "flatbuffers")
# What an optional package is for.
OPTIONAL = {
    "onnx": "convert",
    "numba": "build kernels",
    "onnxruntime": "compare with ONNX files",
}


class Kernels(NamedTuple):
    """The kernel library; ``problem`` says why there is none."""

    level: str = ""
    path: str = ""
    problem: str = ""


class Report(NamedTuple):
    """What was found."""

    versions: dict[str, str]
    missing: dict[str, str]
    target: str
    features: tuple[str, ...]
    topology: topology.Topology
    kernels: Kernels
    delegates: tuple[str, ...]
    cache: str
    problems: tuple[str, ...]

    def figures(self) -> dict[str, object]:
        """For JSON."""
        cores = self.topology.cores
        return {
            "versions": self.versions,
            "missing": self.missing,
            "target": self.target,
            "features": list(self.features),
            "cores": len(cores),
            "core_list": [core._asdict() for core in cores],
            "quota": self.topology.quota,
            "kernels": self.kernels._asdict(),
            "delegates": list(self.delegates),
            "cache": self.cache,
            "problems": list(self.problems),
        }

    def rows(self) -> list[tuple[str, str]]:
        """For a table."""
        cores, quota = self.topology.cores, self.topology.quota
        rows = [(name, version) for name, version in self.versions.items()]
        rows += [(name, f"missing, to {use}") for name, use in self.missing.items()]
        return [
            *rows,
            ("processor", f"{self.target}, {' '.join(self.features) or 'baseline'}"),
            ("cores", f"{len(cores)}{f', quota {quota:g}' if quota else ''}"),
            *((f"cluster {name}", text) for name, text in _clusters(cores)),
            ("kernels", self.kernels.level or "none"),
            ("kernel library", self.kernels.path or "none"),
            ("kernel cache", self.cache),
            ("delegates", ", ".join(self.delegates) or "none"),
        ]


def examine() -> Report:
    """Look at the machine, the installation and the kernel library."""
    kernels = _kernels()
    versions, missing = _packages()
    known = {word for level in levels.LEVELS.values() for word in level.needs}
    return Report(
        versions=versions,
        missing=missing,
        target=levels.host_target(),
        features=tuple(sorted(levels.host_features() & known)),
        topology=topology.read(),
        kernels=kernels,
        delegates=tuple(sorted(e.name for e in metadata.entry_points(group=DELEGATES))),
        cache=str(_env.cache_dir()),
        problems=(kernels.problem,) if kernels.problem else (),
    )


def version() -> str:
    """Version of the package."""
    return EDGEWISE_VERSION


def _kernels() -> Kernels:
    """The library that a session would use, loaded to see that it can be."""
    try:
        loaded = library.load()
        return Kernels(loaded.level, str(loaded.path))
    except EdgewiseError as error:
        return Kernels(problem=str(error))


def _packages() -> tuple[dict[str, str], dict[str, str]]:
    """Versions of what is installed, and the uses of what is not."""
    versions = {
        "edgewise": version(),
        "python": platform.python_version(),
    }
    missing = {name: use for name, use in OPTIONAL.items() if find_spec(name) is None}
    for name in (*REQUIRED, *(name for name in OPTIONAL if name not in missing)):
        versions[name] = metadata.version(name)
    return versions, missing


def _clusters(cores: Iterable[topology.Core]) -> list[tuple[str, str]]:
    """CPUs of every cluster and kind, where the system tells of more than one."""
    groups: dict[tuple[int, int], list[int]] = {}
    for core in cores:
        groups.setdefault((core.cluster, core.speed), []).append(core.cpu)
    if len(groups) < 2:
        return []
    return [
        (str(index), f"CPUs {', '.join(map(str, cpus))}, relative speed {speed}")
        for index, ((_, speed), cpus) in enumerate(sorted(groups.items()))
    ]
