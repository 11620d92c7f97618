"""Every kernel compiled for another processor; some of them run there, under qemu."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import Array, Op
from edgewise.kernels import catalog
from edgewise.kernels.catalog.base import (
    Call,
    In,
    Launch,
    Out,
    Scratch,
    Temp,
    Word,
    find,
)
from edgewise.ops import (
    ByteConv,
    ByteDepthwiseConv,
    ByteLinear,
    Conv,
    Linear,
    MatMul,
    NarrowConv,
    NarrowLinear,
    PackPanels,
    Tanh,
)
from edgewise.runtime.pool import SYSTEM_CALLS
from edgewise.types import DType, TensorType

pytest.importorskip("numba", reason="kernels are compiled from Numba code")

catalog.base.load_all()
Case = tuple[Op, tuple[Array | None, ...]]
TARGET = "aarch64-linux"
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
SYSROOT = Path("/usr/aarch64-linux-gnu")
MAIN = Path(__file__).with_name("cross_main.c")
# The levels, and processors of qemu that can run each and none that is better.
PROCESSORS = {
    "armv8.0": "cortex-a72",
    "armv8.2-dotprod": "cortex-a76",
    "armv8.6-i8mm": "max",
}
WORKERS = 2

cross_tools = pytest.mark.skipif(
    not shutil.which(COMPILER), reason=f"{COMPILER} is not installed"
)
emulated = pytest.mark.skipif(
    not shutil.which(EMULATOR), reason=f"{EMULATOR} is not installed"
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of all kernels for the other processor."""
    return built(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the cases below need of it."""
    modules = ("matmul", "conv", "winograd", "stem", "pack", "activation")
    return built(tmp_path_factory.mktemp("some"), "--only", *modules)


def built(folder: Path, *options: str) -> Path:
    path = folder / "libkernels.so"
    command = [sys.executable, "-m", "edgewise.kernels.native.build", "-o", str(path)]
    done = subprocess.run(
        [*command, "--target", TARGET, *options],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return path


# The whole library is compiled once more, which takes as long as all other tests.
@pytest.mark.slow
@cross_tools
def test_every_kernel_is_in_the_library_and_nothing_foreign(kernels: Path) -> None:
    listed = subprocess.run(
        ["aarch64-linux-gnu-nm", "-D", kernels],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    defined = set(re.findall(r" T (\w+)", listed))
    foreign = set(re.findall(r" U (\w+)", listed))
    wanted = {
        symbol
        for entries in catalog.base.KERNELS.values()
        for entry in entries
        for symbol in entry.symbols
    }
    assert wanted <= defined
    assert {"ew_run", "ew_work", "ew_stop", "ew_abi"} <= defined
    assert foreign <= {"memcpy", "memmove", "memset"}


@cross_tools
@emulated
def test_products_a_convolution_and_an_activation_run_there(
    some: Path, tmp_path: Path
) -> None:
    helped = run(some, tmp_path, cases(), "max")
    assert helped > 0


@pytest.mark.slow
@cross_tools
@emulated
@pytest.mark.parametrize("level", PROCESSORS)
def test_bytes_and_halves_run_on_every_level(level: str, tmp_path: Path) -> None:
    modules = ("byte_products", "byte_convs", "byte_stem", "byte_pack")
    more = ("byte_depthwise", "narrow", "widen", "winograd_narrow", "winograd")
    library = built(tmp_path, "--level", level, "--only", *modules, *more)
    run(library, tmp_path, narrow_cases(), PROCESSORS[level])


def run(library: Path, folder: Path, cases: Iterable[Case], processor: str) -> int:
    """Tasks that a helper did while all cases came out right."""
    (folder / "cases.h").write_text(Header(cases).text())
    program = folder / "main"
    build = [COMPILER, "-O1", f"-I{folder}", MAIN, library, "-o", program]
    subprocess.run(
        [*build, "-lpthread", "-lm", f"-Wl,-rpath,{library.parent}"], check=True
    )
    done = subprocess.run(
        [EMULATOR, "-cpu", processor, "-L", SYSROOT, program],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    helped = re.fullmatch(r"tasks of the helper: (\d+)\n", done.stdout)
    assert helped
    return int(helped[1])


def cases() -> Iterator[Case]:
    """Ops whose kernels run there: whole tiles, tails, borders, an activation."""

    def noise(*shape: int) -> Array:
        found: Array = np.random.default_rng(0).uniform(-1, 1, shape)
        return found.astype(np.float32)

    weight = PackPanels((0, 1)).reference(noise(300, 330))
    residual = noise(200, 330)
    yield Linear(330, "gelu"), (noise(200, 300), weight, None, noise(330), residual)
    yield MatMul(), (noise(2, 50, 40), noise(2, 40, 37))
    taps = PackPanels((2, 3, 1, 0)).reference(noise(40, 10, 3, 3))
    conv = Conv(40, (3, 3), (2, 1), (1, 1, 1, 1), activation="relu")
    yield conv, (noise(1, 40, 30, 10), taps, noise(40), None, None)
    yield Tanh(), (noise(9000),)


def narrow_cases() -> Iterator[Case]:
    """What conformance tests of products over bytes and few bits run here."""
    for op in (ByteLinear, ByteConv, ByteDepthwiseConv, NarrowLinear, NarrowConv):
        for sample in op.samples():
            if all(x is None or x.size for x in sample.inputs):
                yield sample.op, sample.inputs


class Header:
    """The C text of all cases: arrays, argument words, launches, results wanted."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self.globals: list[str] = []
        self.fills: list[str] = []
        self.launches: list[str] = []
        self.checks: list[str] = []
        self.symbols: set[str] = set()
        for number, (op, inputs) in enumerate(cases):
            self.add(number, op, inputs)

    def add(self, number: int, op: Op, inputs: tuple[Array | None, ...]) -> None:
        """One op: its memory, its launches, its result."""
        types = tuple(
            None if x is None else TensorType(DType.of(x.dtype), x.shape)
            for x in inputs
        )
        call = Call(op, types, op.infer_all(types))
        binding = find(call)
        if binding is None:  # the reference's
            assert op.name.startswith(("byte_", "narrow_")), op
            return
        for slot, x in enumerate(inputs):
            if x is not None:
                self.array(f"in_{number}_{slot}", x)
        want: Any = op.reference(*inputs)
        self.array(f"want_{number}", want)
        self.space(f"out_{number}_0", want.nbytes)
        for slot, size in enumerate(binding.temps):
            self.space(f"temp_{number}_{slot}", size)
        self.space(f"scratch_{number}", max(binding.scratch, 1) * WORKERS)
        for launch in binding.launches:
            self.launch(number, inputs, launch)
        reals = int(want.dtype == np.float32)
        self.checks.append(f"{{out_{number}_0, want_{number}, {want.size}, {reals}}}")

    def array(self, name: str, values: Array) -> None:
        """A global of these bits."""
        bits = ",".join(map(str, values.ravel().view(np.uint8).tolist()))
        self.globals.append(f"static _Alignas(64) uint8_t {name}[] = {{{bits}}};")

    def space(self, name: str, size: int) -> None:
        """A global of ``size`` bytes."""
        self.globals.append(f"static _Alignas(64) uint8_t {name}[{size}];")

    def launch(
        self, number: int, inputs: tuple[Array | None, ...], launch: Launch
    ) -> None:
        """Words of one launch."""

        def text(word: Word) -> str:
            match word:
                case In(slot, offset):
                    if slot >= len(inputs) or inputs[slot] is None:
                        return "0"
                    return f"(int64_t)in_{number}_{slot} + {offset}"
                case Out(slot, offset):
                    return f"(int64_t)out_{number}_{slot} + {offset}"
                case Temp(slot, offset):
                    return f"(int64_t)temp_{number}_{slot} + {offset}"
                case Scratch():
                    return f"(int64_t)scratch_{number}"
            return str(int(word))

        name = f"words_{len(self.launches)}"
        self.globals.append(f"static int64_t {name}[{len(launch.words)}];")
        values = ", ".join(map(text, launch.words))
        self.fills.append(
            f"{{ int64_t w[] = {{{values}}}; memcpy({name}, w, sizeof w); }}"
        )
        self.launches.append(f"{{{launch.symbol}, {name}, {launch.tasks}}}")
        self.symbols.add(launch.symbol)

    def text(self) -> str:
        """The whole."""
        futex, yield_ = SYSTEM_CALLS["aarch64"]
        return "\n".join(
            [
                f"enum {{ FUTEX = {futex}, YIELD = {yield_} }};",
                *(f"Kernel {symbol};" for symbol in sorted(self.symbols)),
                *self.globals,
                "static Launch launches[] = {",
                ",\n".join(self.launches),
                "};",
                "static Check checks[] = {",
                ",\n".join(self.checks),
                "};",
                "static void setup(void) {",
                *self.fills,
                "}",
            ]
        )
