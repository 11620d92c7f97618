"""Which kernels a processor gets, and what it is told when there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgewise.errors import KernelLibraryError
from edgewise.kernels.levels import (
    LEVELS,
    best_level,
    host_features,
    host_level,
    level_named,
    levels_of,
)

X86, ARM = "x86_64-linux", "aarch64-linux"
V2 = "cx16 lahf_lm popcnt ssse3 sse4_1 sse4_2"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"


@pytest.mark.parametrize(
    ("target", "flags", "level"),
    [
        (X86, f"fpu {V3} avx512f", "x86-64-v3"),
        (X86, f"fpu {V2} avx", "x86-64-v2"),
        (X86, V3.replace(" fma", ""), "x86-64-v2"),
        (ARM, "fp asimd crc32", "armv8.0"),
    ],
)
def test_the_best_level_that_runs_is_taken(target: str, flags: str, level: str) -> None:
    assert best_level(target, frozenset(flags.split())).name == level


def test_a_processor_below_every_level_is_told_what_it_lacks() -> None:
    with pytest.raises(KernelLibraryError, match=r"lacks sse4_1 sse4_2"):
        best_level(X86, frozenset(["cx16", "lahf_lm", "popcnt", "ssse3"]))


def test_a_system_that_does_not_say_gets_an_error_not_a_crash() -> None:
    with pytest.raises(KernelLibraryError, match="lacks"):
        best_level(X86, frozenset())


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(KernelLibraryError, match=r"'riscv64-linux'; want one of x86"):
        levels_of("riscv64-linux")
    with pytest.raises(KernelLibraryError, match=r"'x86-64-v9'; want one of x86"):
        level_named("x86-64-v9")


def test_features_are_those_of_the_first_processor(tmp_path: Path) -> None:
    x86, arm = tmp_path / "x86", tmp_path / "arm"
    x86.write_text("processor\t: 0\nflags\t\t: fpu avx2\n\nflags\t\t: fpu\n")
    arm.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert host_features(x86) == {"fpu", "avx2"}
    assert host_features(arm) == {"fp", "asimd"}
    assert host_features(tmp_path / "nothing") == frozenset()


def test_this_machine_has_a_level() -> None:
    assert host_level() in LEVELS.values()
