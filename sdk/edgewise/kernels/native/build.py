"""Build the kernel library: ``python -m edgewise.kernels.native.build --help``.

Every module of this package that has ``EXPORTS`` becomes one object, compiled in
processes of their own and kept under a hash of its sources; a linker joins them.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import logging
import multiprocessing
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from edgewise import _env
from edgewise.errors import EdgewiseError, KernelLibraryError
from edgewise.kernels.levels import (
    TARGETS,
    Level,
    host_levels,
    host_target,
    level_named,
    levels_of,
)
from edgewise.kernels.native.elf import undefined_symbols
from edgewise.kernels.sources import NATIVE, library_hash, object_key

logger = logging.getLogger("edgewise.kernels.build")

# Of libc, and without a version that would bind the library to a new one.
ALLOWED = frozenset({"memcpy", "memmove", "memset"})
PROCESSES = 2
_CROSS_LINKERS = {"aarch64-linux": "aarch64-linux-gnu-gcc"}


def kernel_modules() -> list[str]:
    """Names of the modules of the package that define kernels, the longest first."""
    files = (NATIVE / f"{info.name}.py" for info in pkgutil.iter_modules([str(NATIVE)]))
    texts = {file.stem: file.read_text() for file in files}
    names = [name for name, text in texts.items() if "\nEXPORTS" in text]
    return sorted(names, key=lambda name: -len(texts[name]))


def build(level: Level, output: Path, modules: Sequence[str] = ()) -> None:
    """Write the library of ``level`` to ``output``.

    Raises:
        KernelLibraryError: The compiler dies, a kernel needs a foreign function, or
            nothing on this machine can link.
    """
    _want_tools(level)
    names = sorted({"executor", *modules}) if modules else kernel_modules()
    with tempfile.TemporaryDirectory() as folder:
        objects = compile_modules(names, level)
        identity = Path(folder) / "identity.o"
        identity.write_bytes(_compile_identity(level))
        made = Path(folder) / "kernels.so"
        _link([*objects, identity], level, made)
        output.parent.mkdir(parents=True, exist_ok=True)
        # A process may have the old file mapped: a new one takes its name.
        beside = output.with_name(f".{output.name}.{os.getpid()}")
        shutil.copy(made, beside)
        with beside.open("rb+") as file:  # a loader trusts a name: bytes come first
            os.fsync(file.fileno())
        beside.replace(output)
    logger.info("kernels: wrote %s", output)


def _want_tools(level: Level) -> None:
    """Raise for what is not installed before minutes are spent on the rest."""
    if importlib.util.find_spec("numba") is None:
        raise KernelLibraryError(
            "kernels must be compiled, and numba is not installed: "
            "pip install 'edgewise[build]'"
        )
    linker(level.target)


def compile_modules(names: Sequence[str], level: Level) -> list[Path]:
    """Objects of native modules, compiled where they are not at hand."""
    folder = _env.cache_dir() / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{object_key(name, level)}.o" for name in names}
    stale = [name for name in names if not files[name].exists()]
    for done, (name, data) in enumerate(_compile_all(stale, level), 1):
        foreign = undefined_symbols(data) - ALLOWED
        if foreign:
            raise KernelLibraryError(
                f"kernels of {name} call {', '.join(sorted(foreign))}, "
                "which would bind the library to other libraries"
            )
        partial = files[name].with_suffix(f".{os.getpid()}")
        partial.write_bytes(data)
        partial.replace(files[name])
        logger.info("kernels: %d/%d compiled (%s)", done, len(stale), name)
    return list(files.values())


def _compile_all(names: Sequence[str], level: Level):
    """Pairs (name, object) in the order in which they are done."""
    if not names:
        return
    workers = min(PROCESSES, len(names))
    spawn = multiprocessing.get_context("spawn")
    failed: dict[str, BaseException] = {}
    with ProcessPoolExecutor(workers, spawn, _prepare, (level,)) as pool:
        futures = {pool.submit(_compile_module, name): name for name in names}
        for future in as_completed(futures):
            error = future.exception()
            if error is None:
                yield futures[future], future.result()
            else:
                failed[futures[future]] = error
    for name, error in failed.items():
        what = f"native/{name}.py does not compile for {level.name}: {error!r}"
        raise KernelLibraryError(what) from error


def _prepare(level: Level) -> None:
    from edgewise.kernels.native import emit  # noqa: PLC0415 - needs numba

    emit.retarget(level)


def _compile_module(name: str) -> bytes:
    from edgewise.kernels.native import emit  # noqa: PLC0415 - needs numba

    module = importlib.import_module(f"edgewise.kernels.native.{name}")
    return emit.emit(module.EXPORTS)


def _compile_identity(level: Level) -> bytes:
    """An object with ``int64 ew_abi()``, the hash of all sources."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - of the builder only

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(level.triple).create_target_machine(reloc="pic")
    text = f"define i64 @ew_abi() {{\n  ret i64 {library_hash()}\n}}"
    return machine.emit_object(llvm.parse_assembly(text))


def linker(target: str) -> list[str]:
    """The command that links for ``target``."""
    compiler = "cc" if target == host_target() else _CROSS_LINKERS.get(target, "")
    if compiler and shutil.which(compiler):
        return [compiler]
    if importlib.util.find_spec("ziglang"):
        arch, system = target.split("-")
        return [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-target",
            f"{arch}-{system}-gnu",
        ]
    raise KernelLibraryError(
        f"nothing here can link for {target}: install a C compiler, "
        "or pip install ziglang"
    )


def _link(objects: Sequence[Path], level: Level, output: Path) -> None:
    command = [*linker(level.target), "-shared", "-nostdlib", "-s"]
    command += ["-Wl,-z,noexecstack", "-o", str(output), *map(str, objects)]
    done = subprocess.run(  # noqa: S603 - our own objects, no shell
        command, capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise KernelLibraryError(f"cannot link the kernels: {reason}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Compile the kernels to one library.")
    parser.add_argument("--target", choices=TARGETS, default=host_target())
    parser.add_argument("--level", help="processor level; default: the best (here)")
    parser.add_argument(
        "--only", nargs="*", default=(), help="only these modules, and the executor"
    )
    parser.add_argument("--debug", action="store_true", help="show where it failed")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if given.level:
            level = level_named(given.level)
        elif given.target == host_target():
            level = host_levels()[0]
        else:
            level = levels_of(given.target)[0]
        build(level, given.output, given.only)
    except EdgewiseError as error:
        if given.debug:
            raise
        sys.exit(str(error))
    except Exception as error:  # the compiler's own: who waits for it reads one line
        if given.debug:
            raise
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        sys.exit(f"{what} (--debug shows where)")


if __name__ == "__main__":
    main()
