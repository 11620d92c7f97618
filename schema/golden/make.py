"""Write the golden file of this format version, once, when the version is released.

    python schema/golden/make.py v1

writes ``v1.ew`` and, as text, what it must read as: ``v1.txt``.  Files that are there
are never written again: they must load for ever.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from edgewise.dims import symbol
from edgewise.format.read import read
from edgewise.format.write import write
from edgewise.ir.graph import Constant, Graph, constant, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.ops import (
    Add,
    BatchNormFold,
    Cast,
    Clip,
    Dequantize,
    Gather,
    Linear,
    PackPanels,
    Reshape,
    Sub,
)
from edgewise.types import DType, QuantParams, TensorType

HERE = Path(__file__).resolve().parent
F32 = DType.F32


def example() -> Module:
    """A module that uses everything the format can hold without optional packages."""
    rng = np.random.default_rng(1)
    weight = rng.integers(-9, 9, (5, 18)).astype(np.float32)
    packing = PackPanels(axes=(0, 1))
    packed = packing.reference(weight)
    variables = [
        VariableInfo(
            "fc.weight",
            TensorType(F32, packed.shape),
            Role.PARAMETER,
            packed,
            TensorType(F32, weight.shape),
            packing,
        ),
        *(
            VariableInfo(f"bn.{name}", TensorType(F32, (18,)), role, array)
            for name, role, array in (
                ("weight", Role.PARAMETER, np.arange(18, dtype=np.float32)),
                ("bias", Role.PARAMETER, np.full(18, -0.5, np.float32)),
                ("mean", Role.STATISTIC, np.zeros(18, np.float32)),
                ("var", Role.STATISTIC, np.ones(18, np.float32)),
                ("scale", Role.DERIVED, None),
                ("shift", Role.DERIVED, None),
            )
        ),
        VariableInfo(
            "codes",
            TensorType(DType.I8, (2, 70), QuantParams((0.5, 0.1), (0, -3), axis=0)),
            Role.PARAMETER,
            rng.integers(-128, 128, (2, 70), dtype=np.int8),
        ),
        VariableInfo("steps", TensorType(DType.I64, ()), Role.STATE, None),
    ]
    by_name = {info.key: info for info in variables}
    functions = {
        "infer": _infer(by_name),
        "prepare": _prepare(by_name),
        "train_step": _step(by_name),
    }
    metadata = {"edgewise.source": "example.onnx", "edgewise.parent": "0" * 64}
    return Module(functions, by_name, {"licence": "Apache-2.0", **metadata})


def _infer(infos: dict[str, VariableInfo]) -> Graph:
    n = symbol("N")
    x = input_value("x", TensorType(F32, (n, 2, 5)))
    index = input_value("index", TensorType(DType.I64, (2 * n + 1,)))
    flat = Reshape((2 * n, 5))(x, label="/flatten")
    weight, scale, shift = (
        variable_value(key, infos[key].type)
        for key in ("fc.weight", "bn.scale", "bn.shift")
    )
    y = Linear(columns=18, activation="relu", alpha=0.0, beta=0.0)(
        flat, weight, scale, shift, None, label="/fc"
    )
    table = constant(np.arange(-9, 9, dtype=np.int8).reshape(1, 18), "table")
    steps = constant(np.linspace(0.5, 1.0, 18, dtype=np.float32), "steps")
    offset = Dequantize(axis=1)(table, steps, constant(np.zeros(18, np.int8)))
    z = Clip(low=-0.0, high=float("inf"))(Add()(y, offset))
    words = constant(np.array(["eins", "zwei", "drei"], object), "words")
    return Graph(
        (x, index),
        (z, Gather(axis=0)(words, index, label="/say")),
        ("y", "said"),
    )


def _prepare(infos: dict[str, VariableInfo]) -> Graph:
    names = ("bn.weight", "bn.bias", "bn.mean", "bn.var")
    inputs = [variable_value(name, infos[name].type) for name in names]
    scale, shift = BatchNormFold(eps=1e-5).node(*inputs, None)
    return Graph((), (), (), {"bn.scale": scale, "bn.shift": shift})


def _step(infos: dict[str, VariableInfo]) -> Graph:
    rate = input_value("rate", TensorType(F32, (18,)))
    bias = variable_value("bn.bias", infos["bn.bias"].type)
    steps = variable_value("steps", infos["steps"].type)
    done = Add()(steps, constant(np.array(1)))
    count = Cast(to="f32")(done)
    return Graph(
        (rate,), (count,), ("done",), {"bn.bias": Sub()(bias, rate), "steps": done}
    )


def describe(module: Module) -> str:
    """The module as text that does not depend on how edgewise prints things."""
    return "\n".join(_lines(module)) + "\n"


def _lines(module: Module) -> Iterator[str]:
    for key in sorted(module.metadata):
        yield f"metadata {key} = {module.metadata[key]}"
    for key, info in module.variables.items():
        packing = "" if info.packing is None else f" packed by {_op(info.packing)}"
        types = f"{_type(info.type)} for {_type(info.logical)}"
        yield f"{info.role.value} {key}: {types}{packing}"
        yield f"    {_digest(info.initial)}"
    for name, graph in module.functions.items():
        yield f"function {name}"
        ids: dict[int, str] = {}
        for node in graph.nodes():
            ids[id(node)] = f"%{len(ids)}"
            reads = ", ".join(
                "-" if v is None else f"{ids[id(v.node)]}.{v.index}"
                for v in node.inputs
            )
            what = _op(node.op)
            if isinstance(node.op, Constant):
                what = f"constant {_digest(node.op.array)}"
            types = ", ".join(map(_type, node.types))
            yield f"    {ids[id(node)]} {what}({reads}) -> {types} {node.label!r}"
        for name_, value in zip(graph.output_names, graph.outputs, strict=True):
            yield f"    output {name_} = {ids[id(value.node)]}.{value.index}"
        for key, value in graph.updates.items():
            yield f"    update {key} = {ids[id(value.node)]}.{value.index}"


def _op(op: Op) -> str:
    """Attributes at their default stay out: an op may get new ones later."""
    given = [
        f"{field.name}={value!r}"
        for field, value in zip(op.fields, op.values, strict=True)
        if repr(value) != repr(field.default)
    ]
    return f"{op.name}({', '.join(given)})"


def _type(type_: TensorType) -> str:
    text = f"{type_.dtype.value}[{', '.join(map(str, type_.shape))}]"
    quant = type_.quant
    if quant is not None:
        numbers = f"{quant.scales} {quant.zero_points}"
        text += f" quantised {numbers} axis {quant.axis} block {quant.block}"
    return text


def _digest(array: Array | None) -> str:
    if array is None:
        return "no data"
    data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return f"{array.dtype}{list(array.shape)} {hashlib.sha256(data).hexdigest()[:16]}"


def main() -> None:
    """Write the golden file of a new version."""
    target = HERE / f"{sys.argv[1]}.ew"
    if target.exists():
        raise SystemExit(f"{target} is there: golden files never change")
    module = example()
    write(module, target)
    target.with_suffix(".txt").write_text(describe(read(target)))


if __name__ == "__main__":
    main()
