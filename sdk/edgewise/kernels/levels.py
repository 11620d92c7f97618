"""Processors we build kernels for: one library per level, the best that a host has."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
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
        needs: Words of ``/proc/cpuinfo`` without which the library would crash; on ARM
            their bits are asked for, which tell what all cores of a machine have.
        fused: Whether multiply-add is one instruction.
        register: Bytes of the registers that x86 multiplies bytes in; 0 elsewhere.
        dot: How ARM sums products of bytes: ``smull``, ``sdot`` or ``smmla``.
    """

    name: str
    target: str
    triple: str
    cpu: str
    features: str
    needs: frozenset[str]
    fused: bool
    register: int = 0
    dot: str = ""


_V2 = ("cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2")
_V3 = (*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
_X86 = ("x86_64-linux", "x86_64-unknown-linux-gnu")
# Bits of AT_HWCAP (16) and AT_HWCAP2 (26): Linux, arch/arm64/include/uapi/asm/hwcap.h.
_HWCAPS = {16: {"fp": 0, "asimd": 1, "asimddp": 20}, 26: {"i8mm": 13}}
_ARM_BASE = ("fp", "asimd")
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
            "armv8.6-i8mm",
            *_ARM,
            "generic",
            "+neon,+fp-armv8,+dotprod,+i8mm",
            frozenset({*_ARM_BASE, "asimddp", "i8mm"}),
            fused=True,
            dot="smmla",
        ),
        Level(
            "armv8.2-dotprod",
            *_ARM,
            "generic",
            "+neon,+fp-armv8,+dotprod",
            frozenset({*_ARM_BASE, "asimddp"}),
            fused=True,
            dot="sdot",
        ),
        Level(
            "armv8.0",
            *_ARM,
            "generic",
            "+neon,+fp-armv8",
            frozenset(_ARM_BASE),
            fused=True,
            dot="smull",
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


def host_features() -> frozenset[str]:
    """Feature words of the machine we run on; empty where the system does not say."""
    if platform.machine() == "aarch64":
        ask = ctypes.CDLL(None).getauxval
        ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
        return hwcap_words(ask)
    return cpuinfo_words(Path("/proc/cpuinfo"))


def hwcap_words(ask: Callable[[int], int]) -> frozenset[str]:
    """Words for what ``ask``, libc's ``getauxval``, says that all cores have."""
    return frozenset(
        word
        for kind, bits in _HWCAPS.items()
        for word, bit in bits.items()
        if ask(kind) >> bit & 1
    )


def cpuinfo_words(cpuinfo: Path) -> frozenset[str]:
    """Feature words of the first processor in ``/proc/cpuinfo``."""
    if not cpuinfo.exists():
        return frozenset()
    with cpuinfo.open() as file:
        # The first processor suffices, and the whole text is long on large machines.
        for line in file:
            key, _, words = line.partition(":")
            if key.strip() == "flags":
                return frozenset(words.split())
    return frozenset()


def levels_for(target: str, features: frozenset[str]) -> tuple[Level, ...]:
    """Levels of ``target`` that a processor with ``features`` can run, best first."""
    levels = levels_of(target)
    found = tuple(level for level in levels if level.needs <= features)
    if not found:
        missing = " ".join(sorted(levels[-1].needs - features))
        raise KernelLibraryError(
            f"this {target} processor lacks {missing}, "
            f"which even the {levels[-1].name} kernels need"
        )
    return found


def host_levels() -> tuple[Level, ...]:
    """Levels that the machine we run on can run, the best first."""
    return levels_for(host_target(), host_features())
