"""Graph inputs with their sizes: the file's, the configuration's, or fresh symbols."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import onnx

from edgewise.convert.config import ConvertConfig
from edgewise.convert.source import Parsed
from edgewise.convert.tensors import element_type
from edgewise.dims import Dim, Shape, symbol
from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, input_value
from edgewise.types import TensorType


def graph_inputs(
    parsed: Parsed, config: ConvertConfig, weights: Collection[str]
) -> dict[str, Value]:
    """The graph's inputs by name; initializers that are listed among them left out."""
    given = config.input_shapes or {}
    items = [item for item in parsed.model.graph.input if item.name not in weights]
    names = [item.name for item in items]
    if len(set(names)) != len(names) or "" in names:
        raise parsed.error(f"input names are missing or double: {names}")
    if unknown := sorted(set(given) - set(names)):
        raise ConfigError(
            f"input_shapes names {', '.join(unknown)}; the model has {', '.join(names)}"
        )
    symbols = _Symbols(parsed, items)
    fixed: dict[str, Dim] = {}
    shapes: dict[str, Shape] = {}
    for item in items:
        declared = symbols.shape(parsed, item)
        shapes[item.name] = _chosen(parsed, item.name, declared, given, fixed)
    return {
        item.name: input_value(
            item.name,
            TensorType(
                element_type(
                    parsed, item.type.tensor_type.elem_type, f"input {item.name!r}"
                ),
                shapes[item.name],
            ).bind(fixed),
        )
        for item in items
    }


class _Symbols:
    """Symbols for the names that a file gives sizes, one for one."""

    def __init__(self, parsed: Parsed, items: list[onnx.ValueInfoProto]) -> None:
        del parsed
        self._names: dict[str, str] = {}
        for item in items:
            for dim in item.type.tensor_type.shape.dim:
                if re.fullmatch(r"[A-Za-z_]\w*", dim.dim_param, re.ASCII):
                    self._names[dim.dim_param] = dim.dim_param

    def shape(self, parsed: Parsed, item: onnx.ValueInfoProto) -> Shape | None:
        """The declared shape; ``None`` where even the number of axes is open."""
        if item.type.WhichOneof("value") != "tensor_type":
            raise parsed.error(
                f"input {item.name!r} is not a tensor; edgewise takes tensors only"
            )
        tensor = item.type.tensor_type
        if not tensor.HasField("shape"):
            return None
        sizes: list[Dim] = []
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                sizes.append(int(dim.dim_value))
            elif dim.dim_param:
                sizes.append(symbol(self._name(dim.dim_param, dim.dim_param)))
            else:
                text = f"{item.name}_{axis}"
                sizes.append(symbol(self._name(text, f"\\0{text}")))
        return tuple(sizes)

    def _name(self, text: str, key: str) -> str:
        if key not in self._names:
            clean = re.sub(r"\W", "_", text, flags=re.ASCII)
            base = clean if not clean[:1].isdigit() else f"_{clean}"
            name, count = base, 1
            while name in self._names.values():
                name, count = f"{base}_{count}", count + 1
            self._names[key] = name
        return self._names[key]


def _chosen(
    parsed: Parsed,
    name: str,
    declared: Shape | None,
    given: Mapping[str, tuple[int | str, ...]],
    fixed: dict[str, Dim],
) -> Shape:
    if name not in given:
        if declared is None:
            raise parsed.error(
                f"input {name!r} has no shape; give one with input_shapes"
            )
        return declared
    shape: Shape = tuple(
        symbol(size) if isinstance(size, str) else size for size in given[name]
    )
    if declared is None:
        return shape
    if len(declared) != len(shape):
        raise ConfigError(
            f"input_shapes[{name!r}] has {len(shape)} axes, not {len(declared)}"
        )
    # A symbol that one input fixes is fixed in all others.
    for before, after in zip(declared, shape, strict=True):
        if not isinstance(before, int):
            fixed[str(before)] = after
    return shape
