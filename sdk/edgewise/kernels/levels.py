"""Processors we build kernels for: one library per level, the best that a host has."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import NamedTuple

from edgewise.errors import KernelLibraryError


class Level(NamedTuple):
    """A set of processor features that one kernel library is compiled for.

    Attributes:
        name: As in the file name ``kernels-<name>.so``.
        target: Architecture and system: ``x86_64-linux``.
        triple: What LLVM calls the target.
        cpu: What LLVM calls the processor.
        features: LLVM features beyond those of ``cpu``.
        needs: Words of ``/proc/cpuinfo`` without which the library would crash.
        fused: Whether multiply-add is one instruction.
        register: Bytes of the registers that x86 multiplies bytes in; 0 elsewhere.
    """

    name: str
    target: str
    triple: str
    cpu: str
    features: str
    needs: frozenset[str]
    fused: bool
    register: int = 0


_V2 = ("cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2")
_V3 = (*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
_X86 = ("x86_64-linux", "x86_64-unknown-linux-gnu")
_ARM = ("aarch64-linux", "aarch64-unknown-linux-gnu")

# The best level of a target first.
LEVELS: dict[str, Level] = {
    level.name: level
    for level in (
        Level(
            "x86-64-v3", *_X86, "x86-64-v3", "", frozenset(_V3), fused=True, register=32
        ),
        Level(
            "x86-64-v2",
            *_X86,
            "x86-64-v2",
            "",
            frozenset(_V2),
            fused=False,
            register=16,
        ),
        Level(
            "armv8.0",
            *_ARM,
            "generic",
            "+neon,+fp-armv8",
            frozenset({"fp", "asimd"}),
            fused=True,
        ),
    )
}
TARGETS = tuple(dict.fromkeys(level.target for level in LEVELS.values()))


def levels_of(target: str) -> tuple[Level, ...]:
    """Levels of ``target``, the best first."""
    found = tuple(level for level in LEVELS.values() if level.target == target)
    if not found:
        raise KernelLibraryError(
            f"no kernels for target {target!r}; want one of {', '.join(TARGETS)}"
        )
    return found


def level_named(name: str) -> Level:
    """The level called ``name``."""
    if name not in LEVELS:
        raise KernelLibraryError(
            f"no processor level {name!r}; want one of {', '.join(LEVELS)}"
        )
    return LEVELS[name]


def host_target() -> str:
    """The target of the machine we run on."""
    return f"{platform.machine()}-{platform.system()}".lower()


def host_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Feature words of the first processor; empty where the system does not say."""
    if not cpuinfo.exists():
        return frozenset()
    with cpuinfo.open() as file:
        # The first processor suffices, and the whole text is long on large machines.
        for line in file:
            key, _, words = line.partition(":")
            if key.strip() in {"flags", "Features"}:
                return frozenset(words.split())
    return frozenset()


def best_level(target: str, features: frozenset[str]) -> Level:
    """The best level of ``target`` that a processor with ``features`` can run."""
    levels = levels_of(target)
    for level in levels:
        if level.needs <= features:
            return level
    missing = " ".join(sorted(levels[-1].needs - features))
    raise KernelLibraryError(
        f"this {target} processor lacks {missing}, "
        f"which even the {levels[-1].name} kernels need"
    )


def host_level() -> Level:
    """The best level of the machine we run on."""
    return best_level(host_target(), host_features())
