"""Building, finding and refusing kernel libraries."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import edgewise as ew
from edgewise.errors import InternalError, KernelLibraryError
from edgewise.kernels import levels, sources
from edgewise.kernels.native.elf import undefined_symbols
from edgewise.runtime import library

DIGITS = Path(ew.__file__).parent / "demo_data" / "digits.onnx"
BUILD = [sys.executable, "-m", "edgewise.kernels.native.build"]


def assemble(tmp_path: Path, text: str) -> bytes:
    llvm = pytest.importorskip("llvmlite.binding", reason="it makes the object")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    data: bytes = machine.emit_object(llvm.parse_assembly(text))
    return data


def test_the_library_in_use_is_of_the_sources_here() -> None:
    assert library.load().abi == sources.library_hash()


def test_one_process_has_one_library() -> None:
    assert library.load() is library.load()


def test_a_kernel_that_is_not_there_is_our_bug() -> None:
    with pytest.raises(InternalError, match="has no kernel nonsense_f32"):
        library.load().address("nonsense_f32")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"not a library at all"])
def test_a_damaged_library_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kernels.so"
    path.write_bytes(content)
    with pytest.raises(KernelLibraryError, match="not a kernel library"):
        library.Library(path, "x86-64-v3")


def test_a_foreign_library_is_refused() -> None:
    import _ctypes

    with pytest.raises(KernelLibraryError, match="not a kernel library"):
        library.Library(Path(_ctypes.__file__), "x86-64-v3")


def test_undefined_symbols_are_read_from_an_object(tmp_path: Path) -> None:
    text = """
        declare float @sinf(float)
        define float @mine(float %x) {
          %y = call float @sinf(float %x)
          ret float %y
        }"""
    assert undefined_symbols(assemble(tmp_path, text)) == {"sinf"}
    with pytest.raises(ValueError, match="ELF"):
        undefined_symbols(b"MZ and so on")


def test_a_library_is_built_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def run(level: str, path: Path, progress: library.Progress) -> None:
        progress("compiling")
        path.write_bytes(b"made")
        built.append(level)

    monkeypatch.setattr(library, "_compile", run)
    lines: list[str] = []
    path = tmp_path / "cache" / "kernels.so"
    for _ in range(2):
        assert library.build("x86-64-v3", path, lines.append) == path
    assert built == ["x86-64-v3"]
    assert lines == ["compiling"]


@pytest.mark.parametrize("state", ["missing", "damaged", "of other sources"])
def test_where_nothing_can_be_built_one_line_says_what_to_install(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    shipped = tmp_path / "kernels.so"
    if state == "damaged":
        shipped.write_bytes(library.load().path.read_bytes()[:20_000])
    if state == "of other sources":
        shipped.write_bytes(library.load().path.read_bytes())
    with pytest.raises(KernelLibraryError, match=state) as caught:
        library._want_compiler("x86-64-v3", shipped)
    text = str(caught.value)
    assert text.startswith("no kernels for this processor (x86-64-v3)")
    assert "a wheel of edgewise made for x86-64-v3" in text
    assert "pip install 'edgewise[build]'" in text


def test_the_best_library_that_was_brought_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "packaged", lambda level: tmp_path / level)
    monkeypatch.setattr(library, "CHECKOUT", False)
    data = library.load().path.read_bytes()
    for name, content in (("best", data[:9000]), ("good", data), ("plain", data)):
        (tmp_path / name).write_bytes(content)
    loaded = library._load(("best", "good", "plain"), print)
    assert (loaded.level, loaded.path) == ("good", tmp_path / "good")


def test_a_device_without_kernels_gets_one_line(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['numba'] = None\n"
    nowhere = "import edgewise.runtime.library as library, pathlib\n"
    nowhere += "library.packaged = lambda level: pathlib.Path('/nowhere.so')\n"
    for command in ("run", "doctor"):
        line = ["edgewise", command, *([str(DIGITS)] if command == "run" else [])]
        code = f"{hide}{nowhere}sys.argv = {line}\n"
        code += "import edgewise.cli; edgewise.cli.main()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | {"EDGEWISE_CACHE_DIR": str(tmp_path)},
        )
        assert done.returncode == {"run": 2, "doctor": 1}[command]
        said = done.stderr if command == "run" else done.stdout
        assert said.count("no kernels for this processor") == 1
        assert len(done.stderr.splitlines()) == (command == "run")


def test_only_news_of_a_build_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = "raise SystemExit('kernels: 1/2\\nTraceback\\n  here\\nno LLVM')"
    (tmp_path / "noisy_builder.py").write_text(noise)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(library, "BUILDER", "noisy_builder")
    lines: list[str] = []
    with pytest.raises(KernelLibraryError, match="cannot be built: no LLVM"):
        library.build("x86-64-v3", tmp_path / "kernels.so", lines.append)
    assert lines[1:] == ["kernels: 1/2"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(KernelLibraryError, match=r"cannot keep .*/file"):
        library.build("x86-64-v3", blocked / "kernels.so", lambda _: None)


def test_a_build_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "BUILDER", "edgewise.no_such_module")
    with pytest.raises(KernelLibraryError, match=r"cannot be built: .*no_such_module"):
        library.build("x86-64-v3", tmp_path / "kernels.so", lambda _: None)


def test_without_numba_the_way_out_is_named(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['numba'] = None; import runpy; "
    code = f"{hide}sys.argv[1:] = ['-o', {str(tmp_path / 'k.so')!r}]; "
    code += "runpy.run_module('edgewise.kernels.native.build', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"EDGEWISE_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert "pip install 'edgewise[build]'" in line


def test_the_builder_refuses_unknown_levels(tmp_path: Path) -> None:
    done = subprocess.run(
        [*BUILD, "--level", "x86-64-v9", "-o", tmp_path / "k.so"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "no processor level 'x86-64-v9'" in done.stderr


@pytest.mark.skipif(
    levels.host_target() != "x86_64-linux", reason="the other level is of x86-64"
)
def test_the_baseline_level_builds_and_loads(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="it compiles the kernels")
    path = tmp_path / "kernels.so"
    command = [*BUILD, "--level", "x86-64-v2", "--only", "pack", "-o", path]
    subprocess.run(command, check=True, capture_output=True)
    loaded = library.Library(path, "x86-64-v2")
    assert loaded.address("pack_taps_f32")
    assert loaded.run(0, 0, 0, 0, 1) == 0


def test_a_library_cut_short_is_never_loaded(tmp_path: Path) -> None:
    path = library.load().path
    data = path.read_bytes()
    short = tmp_path / "short.so"
    for length in (0, 10, 64, 20_000, len(data) - 1):
        short.write_bytes(data[:length])
        assert not library.is_whole(short)
    assert library.is_whole(path)
    assert not library.is_whole(tmp_path / "none.so")
