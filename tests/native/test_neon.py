"""Products of bytes on ARM: every level, on the processors it is for, under qemu."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgewise.ir.op import Array
from edgewise.kernels.levels import LEVELS

pytest.importorskip("numba", reason="kernels are compiled from Numba code")

HERE = Path(__file__).parent
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
SYSROOT = "/usr/aarch64-linux-gnu"
LEVELS_OF_ARM = [name for name in LEVELS if name.startswith("arm")]
ILLEGAL = 128 + 4  # how qemu's parent sees SIGILL: 132, or -4

pytestmark = pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
    reason=f"{COMPILER} and {EMULATOR} are not both installed",
)

# Of each kind: least and largest byte of a row, of a weight, rows of its tiles.
KINDS = {
    "i8": ((-128, 127), (-128, 127), (6, 5)),
    "u8": ((0, 255), (-128, 127), (6, 5)),
    "narrow": ((0, 255), (-64, 63), (6, 5)),
    "paired": ((0, 255), (-32, 31), (5, 4)),
}
CASES = 21  # of a kernel
KERNELS = [
    (name, rows) for name, (_, _, tiles) in KINDS.items() for rows in (*tiles, 1)
]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of cases, as ``neon_main.c`` reads them."""
    path = tmp_path_factory.mktemp("cases") / "cases"
    with path.open("wb") as file:
        for number, (name, rows) in enumerate(KERNELS):
            panels = 4 if rows == 1 else 1
            for x, w in operands(name, rows, panels):
                head = np.array([number, rows, x.shape[1] // 4, panels], np.int64)
                file.write(head.tobytes() + x.tobytes() + w.tobytes())
                file.write(sums(x, w))
    return path


def operands(name: str, rows: int, panels: int) -> Iterator[tuple[Array, Array]]:
    """Rows and panels of quads: whole unrolled turns, tails, random and extreme."""
    (low, high), (least, most), _ = KINDS[name]
    kind = np.int8 if low else np.uint8
    noise = np.random.default_rng(0)
    for k in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 64, 131):
        yield (
            noise.integers(low, high + 1, (rows, 4 * k)).astype(kind),
            noise.integers(least, most + 1, (panels, k, 16, 4)).astype(np.int8),
        )
    for of_row in (low, high):
        for of_weight in (least, most):
            x = np.full((rows, 4 * 21), of_row, kind)
            yield x, np.full((panels, 21, 16, 4), of_weight, np.int8)
    # Of four products that share 16 bits two are the largest and two the smallest.
    sides = np.array([64, -64] if name == "paired" else [most, least], np.int8)
    for of_row in ((low, high), (high, low)):
        x = np.tile(np.array(of_row, kind), (rows, 2 * 22))
        yield x, np.tile(sides, (panels, 22, 16, 2))


def sums(x: Array, w: Array) -> bytes:
    """What sums begin with, sums of columns where rows are unsigned, and the result."""
    start = np.random.default_rng(1).integers(-(2**31), 2**31, (6, 16))
    panels, k = w.shape[:2]
    flat = w.astype(np.int64).transpose(0, 1, 3, 2).reshape(panels, 4 * k, 16)
    column, want = np.zeros_like(start), start.copy()
    if panels > 1:
        want[:panels] += x[0].astype(np.int64) @ flat
        column[:panels] = flat.sum(1)
    else:
        want[: len(x)] += x.astype(np.int64) @ flat[0]
        column[: len(x)] = flat[0].sum(0)
    if x.dtype == np.int8:
        column[:] = 0
    return b"".join(part.astype(np.int32).tobytes() for part in (start, column, want))


@pytest.fixture(scope="module", params=LEVELS_OF_ARM)
def level(request: pytest.FixtureRequest) -> str:
    """Each level of ARM."""
    return str(request.param)


@pytest.fixture(scope="module")
def tiles(level: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its tiles, as an object."""
    path = tmp_path_factory.mktemp("tiles") / "tiles.o"
    command = [sys.executable, HERE / "neon_tiles.py", level, path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def run(tiles: Path, cases: Path, processor: str) -> subprocess.CompletedProcess[str]:
    """The program of the tiles, over all cases, on a processor."""
    names = [f"{name}_{rows if rows > 1 else 'one'}" for name, rows in KERNELS]
    table = f"Kernel {', '.join(names)};\n"
    table += f"static Kernel *kernels[] = {{{', '.join(names)}}};\n"
    (tiles.parent / "kernels.h").write_text(table)
    program = tiles.with_name("main")
    command = [COMPILER, "-O1", "-w", f"-I{tiles.parent}", HERE / "neon_main.c", tiles]
    subprocess.run([*command, "-o", program], check=True)
    return subprocess.run(
        [EMULATOR, "-cpu", processor, "-L", SYSROOT, program, cases],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


# The processors that qemu has, by the best level that they can run.
PROCESSORS = {
    "cortex-a72": "armv8.0",
    "cortex-a76": "armv8.2-dotprod",
    "max": "armv8.6-i8mm",
}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_sums_are_exact_or_the_processor_refuses(
    level: str, tiles: Path, cases: Path, processor: str
) -> None:
    done = run(tiles, cases, processor)
    best_first = LEVELS_OF_ARM
    if best_first.index(level) >= best_first.index(PROCESSORS[processor]):
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout == f"{len(KERNELS) * CASES} cases\n"
    else:
        assert done.returncode in {ILLEGAL, -4}


def test_the_instructions_are_those_of_the_level(level: str, tiles: Path) -> None:
    command = ["aarch64-linux-gnu-objdump", "-d", tiles]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = set(re.findall(r"\b(smull|sdot|sudot|usmmla|smmla)\s", text))
    wanted = {
        "armv8.0": {"smull"},
        "armv8.2-dotprod": {"sdot"},
        "armv8.6-i8mm": {"sdot", "sudot", "smmla", "usmmla"},
    }
    assert found == wanted[level]
