"""Real architectures, from their ONNX file to the answer onnxruntime gives."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

import edgewise as ew
from edgewise.tools.inputs import random_inputs

MODELS = (
    "mobilenet_v2",
    "resnet18",
    "squeezenet1_1",
    "ds_cnn_kws",
    "vit_tiny_patch16_224",
    "gru_kws",
)
SMALL = {"squeezenet1_1", "ds_cnn_kws", "gru_kws"}
BUILD = Path(__file__).parents[2] / "benchmarks" / "models" / "build.py"
# Tens of layers of float32 sums of up to some thousand terms, in another order.
RELATIVE = 1e-4


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session", params=MODELS)
def pair(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, Path]:
    """An ONNX file and its ``.ew`` file."""
    name = request.param
    source, target = folder / f"{name}.onnx", folder / f"{name}.ew"
    subprocess.run(
        [sys.executable, BUILD, folder, name], check=True, stdout=subprocess.DEVNULL
    )
    ew.convert(source).save(target)
    return source, target


def sizes(model: ew.Model) -> dict[str, int]:
    symbols = {size for info in model.inputs for size in info.shape}
    return {"T": 33} if "T" in symbols else {}


def outputs_of_onnxruntime(
    source: Path, feed: dict[str, npt.NDArray[np.generic]]
) -> dict[str, npt.NDArray[np.generic]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        source, options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def test_the_answer_is_that_of_onnxruntime(pair: tuple[Path, Path]) -> None:
    source, target = pair
    model = ew.load(target)
    feed = random_inputs(model, seed=1, sizes=sizes(model))
    expected = outputs_of_onnxruntime(source, feed)
    with ew.Session(model, ew.SessionConfig(threads=2)) as session:
        got = session.run(feed)
    assert list(got) == list(expected)
    for name, want in expected.items():
        assert got[name].shape == want.shape
        assert got[name].dtype == want.dtype
        error = np.linalg.norm(got[name] - want) / np.linalg.norm(want)
        assert error <= RELATIVE, name


def test_back_in_onnx_it_gives_the_same(pair: tuple[Path, Path]) -> None:
    source, target = pair
    model, found = ew.load(target), target.with_suffix(".back.onnx")
    found.write_bytes(model.to_onnx().SerializeToString())
    feed = random_inputs(model, seed=1, sizes=sizes(model))
    expected = outputs_of_onnxruntime(source, feed)
    got = outputs_of_onnxruntime(found, feed)
    assert list(got) == list(expected)
    for name, want in expected.items():
        error = np.linalg.norm(got[name] - want) / np.linalg.norm(want)
        assert error <= RELATIVE, name
    again = ew.convert(found)
    assert len(again.module.functions["infer"].nodes()) == len(
        model.module.functions["infer"].nodes()
    )
    kept, parameters = again.parameters(), model.parameters()
    assert kept.keys() == parameters.keys()
    for name, array in parameters.items():
        np.testing.assert_array_equal(kept[name], array, err_msg=name)


def test_the_file_is_hardly_larger_than_the_source(pair: tuple[Path, Path]) -> None:
    source, target = pair
    assert target.stat().st_size <= 1.02 * source.stat().st_size + 8192


def test_the_arena_is_close_to_its_lower_bound(pair: tuple[Path, Path]) -> None:
    with ew.Session(pair[1], ew.SessionConfig(threads=2)) as session:
        model = ew.load(pair[1])
        session.run(random_inputs(model, sizes=sizes(model)))
        memory = session.memory
    assert 0 < memory.lower_bound_bytes <= memory.arena_bytes
    assert memory.arena_bytes <= 1.15 * memory.lower_bound_bytes


def test_every_step_has_a_native_kernel(pair: tuple[Path, Path]) -> None:
    model = ew.load(pair[1])
    feed = random_inputs(model, sizes=sizes(model))
    with ew.Session(model, ew.SessionConfig(threads=1)) as session:
        rows = session.profile(feed, runs=1).rows
    assert len(rows) > 1
    assert [row.op for row in rows if row.kernel is None] == []


def test_any_number_of_threads_gives_the_same_bits(pair: tuple[Path, Path]) -> None:
    model = ew.load(pair[1])
    feed = random_inputs(model, sizes=sizes(model))
    results: list[npt.NDArray[np.generic]] = []
    with ew.Session(model, ew.SessionConfig(threads=2)) as session:
        callers = [
            threading.Thread(
                target=lambda: results.append(next(iter(session.run(feed).values())))
            )
            for _ in range(4)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    with ew.Session(model, ew.SessionConfig(threads=1)) as session:
        results.append(next(iter(session.run(feed).values())))
    assert len(results) == 5
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize(
    "pair",
    [
        name if name in SMALL else pytest.param(name, marks=pytest.mark.slow)
        for name in MODELS
    ],
    indirect=True,
)
def test_every_op_agrees_with_its_reference(pair: tuple[Path, Path]) -> None:
    model = ew.load(pair[1])
    report = ew.compare(model, random_inputs(model, sizes=sizes(model)))
    assert len(report.rows) > 1
    assert report.first_bad is None
    assert report.first_not_finite is None
