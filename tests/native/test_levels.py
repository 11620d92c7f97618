"""Which kernels a processor gets, and what it is told when there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgewise.errors import KernelLibraryError
from edgewise.kernels.levels import (
    LEVELS,
    cpuinfo_words,
    host_levels,
    hwcap_words,
    level_named,
    levels_for,
    levels_of,
)

X86, ARM = "x86_64-linux", "aarch64-linux"
V2 = "cx16 lahf_lm popcnt ssse3 sse4_1 sse4_2"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"


@pytest.mark.parametrize(
    ("target", "flags", "names"),
    [
        (X86, f"fpu {V3} avx512f", ["x86-64-v3", "x86-64-v2"]),
        (X86, f"fpu {V2} avx", ["x86-64-v2"]),
        (X86, V3.replace(" fma", ""), ["x86-64-v2"]),
        (ARM, "fp asimd crc32", ["armv8.0"]),
        (ARM, "fp asimd asimddp", ["armv8.2-dotprod", "armv8.0"]),
        (ARM, "fp asimd i8mm", ["armv8.0"]),
        (
            ARM,
            "fp asimd asimddp i8mm",
            ["armv8.6-i8mm", "armv8.2-dotprod", "armv8.0"],
        ),
    ],
)
def test_levels_that_run_come_best_first(
    target: str, flags: str, names: list[str]
) -> None:
    levels = levels_for(target, frozenset(flags.split()))
    assert [level.name for level in levels] == names


def test_a_processor_below_every_level_is_told_what_it_lacks() -> None:
    with pytest.raises(KernelLibraryError, match=r"lacks sse4_1 sse4_2"):
        levels_for(X86, frozenset(["cx16", "lahf_lm", "popcnt", "ssse3"]))


def test_a_system_that_does_not_say_gets_an_error_not_a_crash() -> None:
    with pytest.raises(KernelLibraryError, match="lacks"):
        levels_for(X86, frozenset())


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(KernelLibraryError, match=r"'riscv64-linux'; want one of x86"):
        levels_of("riscv64-linux")
    with pytest.raises(KernelLibraryError, match=r"'x86-64-v9'; want one of x86"):
        level_named("x86-64-v9")


def test_features_are_those_of_the_first_processor(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu avx2\n\nflags\t\t: fpu\n")
    assert cpuinfo_words(cpuinfo) == {"fpu", "avx2"}
    assert cpuinfo_words(tmp_path / "nothing") == frozenset()


# What Linux says on a Cortex-A72, a Cortex-A76 and a processor that has everything.
@pytest.mark.parametrize(
    ("hwcap", "hwcap2", "words"),
    [
        (0x8FB, 0, "fp asimd"),
        (0x119FFB, 0, "fp asimd asimddp"),
        (0xECFFFFFB, 0x7F877FFF, "fp asimd asimddp i8mm"),
        (0, 0, ""),
    ],
)
def test_features_of_arm_are_bits(hwcap: int, hwcap2: int, words: str) -> None:
    assert hwcap_words({16: hwcap, 26: hwcap2}.__getitem__) == set(words.split())


def test_this_machine_has_a_level() -> None:
    assert set(host_levels()) <= set(LEVELS.values())
