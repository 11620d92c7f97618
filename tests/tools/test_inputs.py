"""Random inputs, and arrays in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise.dims import symbol
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.module import Module
from edgewise.tools.inputs import load_inputs, random_inputs, save_arrays
from edgewise.types import DType, TensorType


def taking(*types: TensorType) -> ew.Model:
    """A model that gives its inputs back."""
    values = tuple(input_value(f"x{i}", type_) for i, type_ in enumerate(types))
    names = tuple(f"y{i}" for i in range(len(types)))
    return ew.Model(Module({"infer": Graph(values, values, names)}, {}))


def test_the_seed_decides(chain: ew.Model) -> None:
    first, again, other = (random_inputs(chain, seed=s)["x"] for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_open_sizes_are_one_or_given(chain: ew.Model) -> None:
    assert random_inputs(chain)["x"].shape == (1, 4)
    assert random_inputs(chain, sizes={"N": 6})["x"].shape == (6, 4)


def test_sizes_follow_their_arithmetic() -> None:
    t = symbol("T")
    model = taking(TensorType(DType.F32, (t, 2 * t + 1)))
    assert random_inputs(model, sizes={"T": 3})["x0"].shape == (3, 7)


def test_an_unknown_size_is_refused(chain: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match=r"\['M'\].*\['N'\]"):
        random_inputs(chain, sizes={"M": 2})


@pytest.mark.parametrize(
    ("dtype", "upper"),
    [
        (DType.F32, np.inf),
        (DType.F16, np.inf),
        (DType.I64, 100),
        (DType.I8, 100),
        (DType.U8, 100),
        (DType.U4, 8),
        (DType.I2, 2),
        (DType.BOOL, 2),
    ],
)
def test_every_type_is_filled_within_its_range(dtype: DType, upper: float) -> None:
    array = random_inputs(taking(TensorType(dtype, (50, 5))))["x0"]
    assert array.dtype == dtype.numpy
    wide = array.astype(np.float64)
    assert len(np.unique(wide)) > 1
    assert np.isfinite(wide).all()
    assert wide.max() < upper


def test_strings_are_objects() -> None:
    array = random_inputs(taking(TensorType(DType.STRING, (3,))))["x0"]
    assert array.dtype == object
    assert all(isinstance(word, str) for word in array)


def test_scalars_and_empty_inputs_are_arrays() -> None:
    model = taking(TensorType(DType.F32, ()), TensorType(DType.I64, (0, 3)))
    arrays = random_inputs(model)
    assert arrays["x0"].shape == ()
    assert arrays["x0"].dtype == np.float32
    assert arrays["x1"].shape == (0, 3)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "arrays"
    arrays = {
        "file": np.arange(6, dtype=np.int32).reshape(2, 3),
        "group/name": np.float32(2.5) * np.ones((), np.float32),
        "texts": np.array(["a", "bcd"], object),
    }
    save_arrays(path, arrays)
    loaded = load_inputs(path)
    assert loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut short"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(ew.ConfigError, match=r"x\.npz: not an \.npz file"):
        load_inputs(path)


def test_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.array([{}], object))
    with pytest.raises(ew.ConfigError, match="plain arrays"):
        load_inputs(path)


def test_one_array_without_a_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(3))
    with pytest.raises(ew.ConfigError, match="plain arrays"):
        load_inputs(path)
