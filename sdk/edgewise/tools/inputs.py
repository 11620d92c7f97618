"""Arrays for a model: seeded random inputs, files of inputs and outputs."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.border import TensorInfo
from edgewise.dim_text import parse
from edgewise.dims import bind, symbols
from edgewise.errors import ConfigError
from edgewise.ir.graph import Constant, Graph
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.memory import share_of_machine
from edgewise.types import DType

LARGEST_INDEX = 100
# What zipfile and numpy raise on files that are damaged, locked or of another kind.
_UNREADABLE = (
    ValueError,
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
SEQUENCE = 2  # tensors in a sequence


def random_inputs(
    model: Model, *, seed: int = 0, sizes: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """One array for every input: the same seed, the same arrays.

    A sequence gets two, and an optional one.  Floats are standard normal.  Integers are
    most often indices, so they stay below the smallest table that the model looks
    anything up in.

    Args:
        model: The model to run.
        seed: Of the random generator.
        sizes: Values of symbolic sizes; 1 where one is missing.

    Raises:
        ConfigError: A size that no input has.
    """
    rng = np.random.default_rng(seed)
    given = dict(sizes or {})
    known = open_sizes(model)
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ConfigError(
            f"sizes {unknown}: no input has them; the model's are {sorted(known)}"
        )
    values = dict.fromkeys(known, 1) | given
    _want_room(model, values)
    limit = _index_limit(model.module.functions["infer"])
    return {info.name: _value(info, rng, values, limit) for info in model.inputs}


def _want_room(model: Model, values: Mapping[str, int]) -> None:
    most = share_of_machine()
    for info in model.inputs:
        shape = _shape(info, values)
        # As they are drawn, in double precision; numpy multiplies what is beside a 0.
        if 8 * math.prod(size or 1 for size in shape) > most:
            raise ConfigError(
                f"input {info.name!r} of {shape}: takes more than {most} bytes, half of"
                " this machine's memory; want smaller sizes"
            )


def open_sizes(model: Model) -> set[str]:
    """Symbols of the sizes that whoever makes inputs may choose."""
    return {name for info in model.inputs for name in _symbols(info)}


def load_inputs(path: Path) -> dict[str, Array]:
    """The arrays of an ``.npz`` file by name."""
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: is no regular file")
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name.removesuffix(".npy"): _read(archive, name)
                for name in archive.namelist()
            }
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except _UNREADABLE as error:
        raise ConfigError(f"{path}: not an .npz file of plain arrays") from error


def spread(values: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays alone: those of a sequence as ``name[0]``, …; without what is absent."""
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        if isinstance(value, list):
            arrays |= {f"{name}[{i}]": array for i, array in enumerate(value)}
        elif value is not None:
            arrays[name] = value
    return arrays


def save_arrays(path: Path, values: Mapping[str, Any]) -> None:
    """Write an ``.npz`` file, whole or not at all; it takes every name.

    Raises:
        ConfigError: The file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(draft, "w") as archive:
            for name, array in spread(values).items():
                plain = array.astype(str) if array.dtype == object else array
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, plain, allow_pickle=False)
        draft.replace(path)
    except OSError as error:
        reason = f"{path}: cannot be written: {error.strerror or error}"
        raise ConfigError(reason) from error
    finally:
        draft.unlink(missing_ok=True)


def _read(archive: zipfile.ZipFile, name: str) -> Array:
    """One array; texts as objects, as models take them."""
    with archive.open(name) as member:
        array: Array = np.lib.format.read_array(member, allow_pickle=False)
    return array.astype(object) if array.dtype.kind == "U" else array


def _symbols(info: TensorInfo) -> set[str]:
    texts = (size for size in info.shape if isinstance(size, str))
    return {name for text in texts for name in symbols(parse(text))}


def _shape(info: TensorInfo, values: Mapping[str, int]) -> list[int]:
    sizes = (
        bind(parse(size), values) if isinstance(size, str) else size
        for size in info.shape
    )
    return [size for size in sizes if isinstance(size, int)]


def _value(
    info: TensorInfo, rng: np.random.Generator, values: Mapping[str, int], limit: int
) -> Any:
    if info.form.endswith("sequence"):
        return [_random(info, rng, values, limit) for _ in range(SEQUENCE)]
    return _random(info, rng, values, limit)


def _random(
    info: TensorInfo, rng: np.random.Generator, values: Mapping[str, int], limit: int
) -> Array:
    shape = _shape(info, values)
    if info.dtype is DType.STRING:
        words = rng.integers(0, limit, shape).astype(str)
        return words.astype(object)
    if info.dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if info.dtype.is_integer:
        # A type of two bits holds no more than 2.
        largest = 1 << (int(info.dtype.value[1:]) - 1)
        return rng.integers(0, min(limit, largest), shape).astype(info.dtype.numpy)
    return rng.standard_normal(shape).astype(info.dtype.numpy)


def _index_limit(graph: Graph) -> int:
    """No larger than any axis that ``gather`` reads at computed places."""
    limit = LARGEST_INDEX
    for node in graph.nodes():
        if node.op.name != "gather":
            continue
        table, indices = node.inputs
        if table is None or indices is None or isinstance(indices.op, Constant):
            continue
        size = table.type.shape[node.op.values[0]]  # type: ignore[index]  # the axis
        if isinstance(size, int):
            limit = min(limit, size)
    return max(limit, 1)
