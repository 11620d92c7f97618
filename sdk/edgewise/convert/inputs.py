"""Graph inputs with their sizes: the file's, the configuration's, or fresh symbols."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx

from edgewise.convert.config import ConvertConfig
from edgewise.convert.source import Parsed
from edgewise.convert.symbols import Symbols
from edgewise.convert.tensors import element_type
from edgewise.dims import Dim, Shape, symbol
from edgewise.errors import ConfigError
from edgewise.format.tables import DamageError
from edgewise.format.values import Sizes
from edgewise.ir.graph import Value, input_value
from edgewise.types import (
    ANY,
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)


def graph_inputs(
    parsed: Parsed,
    config: ConvertConfig,
    weights: Collection[str],
    symbols: Symbols,
) -> list[Value]:
    """The graph's inputs; initializers that are listed among them left out."""
    given = config.input_shapes or {}
    items = [item for item in parsed.model.graph.input if item.name not in weights]
    names = [item.name for item in items]
    if len(set(names)) != len(names) or "" in names:
        raise parsed.error(f"input names are missing or double: {names}")
    if unknown := sorted(set(given) - set(names)):
        raise ConfigError(
            f"input_shapes names {', '.join(unknown)}; the model has {', '.join(names)}"
        )
    for item in items:
        for dim in item.type.tensor_type.shape.dim:
            symbols.keep(dim.dim_param)
    fixed: dict[str, Dim] = {}
    kinds: list[ValueType] = []
    for item in items:
        where = f"input {item.name!r}"
        if item.type.WhichOneof("value") != "tensor_type":
            kinds.append(value_type(parsed, item.type, where))
            continue
        declared = _declared(symbols, item)
        shape = _chosen(parsed, item.name, declared, given, fixed)
        code = item.type.tensor_type.elem_type
        kinds.append(TensorType(element_type(parsed, code, where), shape))
    pairs = zip(names, kinds, strict=True)
    return [_input(parsed, name, kind.bind(fixed)) for name, kind in pairs]


def _input(parsed: Parsed, name: str, kind: ValueType) -> Value:
    try:
        Sizes().want_sane(kind)
    except DamageError as error:
        raise parsed.error(f"input {name!r} is too large: {error}") from error
    return input_value(name, kind)


def value_type(parsed: Parsed, type_: onnx.TypeProto, where: str) -> ValueType:
    """A sequence or an optional as the file declares it; sizes within are open."""
    match type_.WhichOneof("value"):
        case "sequence_type":
            return SequenceType(_element(parsed, type_.sequence_type.elem_type, where))
        case "optional_type":
            inner = type_.optional_type.elem_type
            return OptionalType(held_type(parsed, inner, where))
        case kind:
            raise parsed.error(
                f"{where} is a {kind or 'value of no type'}; want a tensor, or a"
                " sequence or an optional of tensors"
            )


def held_type(
    parsed: Parsed, type_: onnx.TypeProto, where: str
) -> TensorType | Unranked | SequenceType:
    """What an optional of the file may hold."""
    if type_.WhichOneof("value") == "sequence_type":
        return SequenceType(_element(parsed, type_.sequence_type.elem_type, where))
    return _element(parsed, type_, where)


def _element(
    parsed: Parsed, type_: onnx.TypeProto, where: str
) -> TensorType | Unranked:
    if type_.WhichOneof("value") != "tensor_type":
        raise parsed.error(f"{where} holds more than tensors; want tensors")
    dtype = element_type(parsed, type_.tensor_type.elem_type, where)
    if not type_.tensor_type.HasField("shape"):
        return Unranked(dtype)
    dims = type_.tensor_type.shape.dim
    sizes = (
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else ANY
        for d in dims
    )
    return TensorType(dtype, tuple(sizes))


def _declared(symbols: Symbols, item: onnx.ValueInfoProto) -> Shape | None:
    """The declared shape; ``None`` where even the number of axes is open."""
    tensor = item.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    sizes: list[Dim] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            sizes.append(int(dim.dim_value))
        elif any(map(str.isalnum, dim.dim_param)):  # "?" twice is not one size
            sizes.append(symbols.named(dim.dim_param))
        else:
            sizes.append(symbols.of_axis(item.name, axis))
    return tuple(sizes)


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
