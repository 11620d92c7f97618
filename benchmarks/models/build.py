"""Real architectures without their megabytes: skeletons, filled with seeded weights.

A skeleton is an exported ONNX model whose large float tensors were emptied.  Filling
one gives the same bytes everywhere: each tensor is drawn from a generator seeded by its
name, and scaled so that activations keep their size.  Speed, memory and agreement
can be measured on such a model; accuracy cannot.

    python benchmarks/models/build.py FOLDER [NAME ...]      writes FOLDER/NAME.onnx
    python benchmarks/models/build.py --strip FULL.onnx SKELETON.onnx
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

SKELETONS = Path(__file__).parent / "skeletons"
KEPT_BELOW = 1024  # elements: options and scalars stay what the exporter wrote
FILLED_TYPES = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)


def fill(skeleton: Path) -> onnx.ModelProto:
    """The model of a skeleton, complete with weights."""
    model = onnx.load(str(skeleton))
    norms = _norm_parameters(model.graph)
    for tensor in _large(model.graph):
        if not tensor.raw_data and not tensor.float_data:
            values = _draw(tensor, norms.get(tensor.name, ""))
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            filled = numpy_helper.from_array(values.astype(dtype), tensor.name)
            tensor.CopyFrom(filled)
    onnx.checker.check_model(model)
    return model


def strip(full: Path) -> onnx.ModelProto:
    """The skeleton of a model: its large float tensors emptied.

    Exporters merge parameters that are equal when they export, such as biases of zero;
    each gets a tensor of its own again, for drawn weights differ.
    """
    model = onnx.load(str(full))
    _separate(model.graph)
    for tensor in _large(model.graph):
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
    return model


def _large(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    for tensor in graph.initializer:
        if tensor.data_type in FILLED_TYPES and math.prod(tensor.dims) >= KEPT_BELOW:
            yield tensor


def _separate(graph: onnx.GraphProto) -> None:
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    aliases = [
        node
        for node in graph.node
        if node.op_type == "Identity" and node.input[0] in tensors
    ]
    for node in aliases:
        own = graph.initializer.add()
        own.CopyFrom(tensors[node.input[0]])
        own.name = node.output[0]
        graph.node.remove(node)


def _norm_parameters(graph: onnx.GraphProto) -> dict[str, str]:
    """What each parameter of a batch norm is: a factor or an offset."""
    kinds = ("factor", "offset", "offset", "factor")  # gamma, beta, mean, variance
    return {
        name: kind
        for node in graph.node
        if node.op_type == "BatchNormalization"
        for name, kind in zip(node.input[1:], kinds, strict=False)
    }


def _draw(tensor: onnx.TensorProto, kind: str) -> npt.NDArray[Any]:
    rng = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    shape = tuple(tensor.dims)
    if kind == "factor":
        return rng.uniform(0.5, 1.5, shape)
    if kind == "offset" or len(shape) == 1:
        return rng.normal(0.0, 0.05, shape)
    # He et al., 2015: the variance that keeps that of activations behind a ReLU.
    fan_in = math.prod(shape[1:]) if len(shape) > 2 else shape[0]
    return rng.normal(0.0, np.sqrt(2.0 / max(fan_in, 1)), shape)


def _write(model: onnx.ModelProto, target: Path) -> None:
    """Write whole or not at all: two test runs may build the same file."""
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(model.SerializeToString())
    Path(file.name).chmod(0o644)
    os.replace(file.name, target)  # noqa: PTH105 - atomic, and says so


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Build benchmark models.")
    parser.add_argument("--strip", nargs=2, type=Path, metavar=("FULL", "SKELETON"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    if options.strip:
        full, skeleton = options.strip
        _write(strip(full), skeleton)
        return 0
    if options.folder is None:
        parser.error("want a folder to write to")
    known = {path.stem: path for path in sorted(SKELETONS.glob("*.onnx"))}
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"no skeleton {', '.join(unknown)}; there are {', '.join(known)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or known:
        target = options.folder / f"{name}.onnx"
        if not target.exists():
            _write(fill(known[name]), target)
        print(f"{target.name}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
