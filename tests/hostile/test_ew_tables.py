"""Model files whose tables are sound and whose meaning is not, each refused.

Every case takes a good module's tables, changes one thing, and builds a file of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from tests.hostile.tables import Change, put, refuse

from edgewise.dims import Dim, symbol
from edgewise.format._generated import schema
from edgewise.format.build import build
from edgewise.format.container import aligned, seal
from edgewise.format.flatten import flatten
from edgewise.format.read import read_bytes
from edgewise.format.records import Field, Record
from edgewise.ir.graph import Graph, Value, constant, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ops import Add, Concat, Exp, PackPanels, Relu, Reshape, Tile
from edgewise.types import DType, QuantParams, TensorType

F32 = DType.F32
# Numbers in the tables of ``example``.
INFER, PREPARE = 0, 1
PACKED, SCALES, QUANTISED, HALF, COUNT = range(5)


def example() -> Module:
    weight = np.zeros((3, 40), np.float32)
    packing = PackPanels(axes=(0, 1))
    packed = packing.reference(weight)
    quant = QuantParams((0.5, 1.0), (0, 0), axis=0)
    infos = (
        VariableInfo(
            "packed",
            TensorType(F32, packed.shape),
            Role.PARAMETER,
            packed,
            TensorType(F32, weight.shape),
            packing,
        ),
        VariableInfo(
            "quantised",
            TensorType(DType.I8, (2, 100), quant),
            Role.PARAMETER,
            np.ones((2, 100), np.int8),
        ),
        VariableInfo("half", TensorType(F32, (2,)), Role.DERIVED),
        VariableInfo("count", TensorType(DType.I64, ()), Role.STATE),
    )
    by_key = {info.key: info for info in infos}
    x = input_value("x", TensorType(F32, (symbol("N"), 2)))
    half = variable_value("half", by_key["half"].type)
    count = variable_value("count", by_key["count"].type)
    y = Add()(Relu()(x, label="/relu"), half)
    more = Add()(count, constant(np.array(1)))
    infer = Graph((x,), (y, Exp()(y)), ("y", "z"), {"count": more})
    prepare = Graph((), (), (), {"half": Exp()(constant(np.ones(2, np.float32)))})
    return Module({"infer": infer, "prepare": prepare}, by_key, {"key": "value"})


def file(change: Change, module: Module | None = None) -> bytes:
    flat = flatten(module or example())
    change(flat.model)
    data = b"".join(
        bytes(payload).ljust(aligned(len(payload)), b"\0") for payload in flat.payloads
    )
    return seal(build(flat.model, b"EDGW")) + data


def test_the_example_is_good_and_laid_out_as_the_cases_think() -> None:
    read_bytes(file(lambda m: None))
    model = flatten(example()).model
    keys = [tensor.key for tensor in model.tensors]
    assert keys == ["packed", "", "quantised", "half", "count", "", ""]


def append(vector: str, *items: Record) -> Change:
    """Append to a vector of a function, ``0.nodes``, or of the root."""

    def change(model: schema.Model) -> None:
        owner: object = model
        number, _, name = vector.rpartition(".")
        if number:
            owner = model.functions[int(number)]
        setattr(owner, name, (*getattr(owner, name), *items))

    return change


def segment(number: int, *, offset: int, length: int) -> Change:
    def change(model: schema.Model) -> None:
        rows = list(model.segments)
        rows[number] = (offset, length, 0)
        model.segments = tuple(rows)

    return change


def retyped(number: int, **fields: object) -> Change:
    """Give a tensor a new type of its own."""

    def change(model: schema.Model) -> None:
        model.types = (*model.types, schema.Type(**fields))
        model.tensors[number].type = len(model.types) - 1

    return change


def quant_of(model: schema.Model) -> schema.Quant:
    found = model.types[model.tensors[QUANTISED].type].quant
    assert found is not None
    return found


def requant(**fields: object) -> Change:
    return lambda model: quant_of(model).__dict__.update(fields)


NODE = f"functions.{INFER}.nodes"
CASES: dict[str, tuple[Change, str]] = {
    # versions
    "a newer format": (put("", format_version=2), "format 2.*update to edgewise 0.1.0"),
    "no format": (put("", format_version=0), "no format version"),
    "a feature": (put("", features=("sparse",)), "needs format 1 sparse"),
    "an unknown op": (
        put("ops.0", name="warp"),
        "op 'warp' is unknown to edgewise .* needs edgewise 0.1.0 or newer",
    ),
    "a leaf as an op": (put("ops.0", name="input"), "op 'input' cannot be applied"),
    # graphs
    "a value of its own": (put(f"{NODE}.0", inputs=(4,)), "value 4 is not known yet"),
    "a later value": (put(f"{NODE}.1", inputs=(0, 6)), "value 6 is not known yet"),
    "no such value": (put(f"{NODE}.0", inputs=(2**31 - 1,)), "is not known yet"),
    "a negative value": (put(f"{NODE}.0", inputs=(-2,)), "value -2 is not known"),
    "an absent input": (put(f"{NODE}.0", inputs=(-1,)), "relu does not fit"),
    "too many inputs": (put(f"{NODE}.0", inputs=(0,) * 9), "relu does not fit"),
    "no inputs": (put(f"{NODE}.0", inputs=()), "relu does not fit"),
    "no such op": (put(f"{NODE}.0", op=99), "there is no op 99"),
    "too few outputs": (put(f"{NODE}.0", outputs=0), "relu has 1 outputs, not 0"),
    "too many outputs": (put(f"{NODE}.0", outputs=2**32 - 1), "has 1 outputs, not"),
    "no such output": (put("functions.0.outputs.0", value=77), "value 77 is not known"),
    "an output twice": (put("functions.0.outputs.1", name="y"), "output name 'y' is"),
    "an output unnamed": (put("functions.0.outputs.1", name=""), "output name '' is"),
    "an input twice": (
        append("0.inputs", schema.Port(name="x", type=0)),
        "input name 'x' is given twice",
    ),
    "a function twice": (put("functions.1", name="infer"), "function name 'infer'"),
    "a metadata key twice": (
        append("metadata", schema.Entry(key="key", value="")),
        "metadata entry name 'key'",
    ),
    "no such tensor": (put("functions.0", tensors=(99, 4, 5)), "no tensor 99"),
    "a type that no node takes": (
        put("functions.0.inputs.0", type=1),
        "add does not fit its inputs",
    ),
    # updates
    "an update of a constant": (put("functions.0.updates.0", tensor=6), "a constant"),
    "an update of nothing": (put("functions.0.updates.0", tensor=50), "no tensor 50"),
    "an update with nothing": (put("functions.0.updates.0", value=50), "value 50"),
    "an update twice": (
        append("0.updates", schema.Update(tensor=COUNT, value=2)),
        "'count' is assigned twice",
    ),
    "an update of another type": (
        put("functions.0.updates.0", value=1),
        r"'count' is i64\[\], assigned f32\[2\]",
    ),
    "no prepare": (put("functions.1", name="other"), "does not compute 'half'"),
    "prepare with outputs": (
        append("1.outputs", schema.Result(name="y", value=0)),
        "'prepare' has inputs or outputs",
    ),
    # segments
    "a segment that wraps": (segment(0, offset=2**64 - 64, length=128), "segment 1"),
    "a segment too long": (segment(1, offset=768, length=2**64 - 1), "cut short"),
    "a segment beyond": (segment(1, offset=2**40, length=200), "is cut short"),
    "a segment off its line": (segment(1, offset=769, length=199), "starts at 769"),
    "segments that overlap": (segment(1, offset=64, length=200), "starts at 64; want"),
    "segments in disorder": (segment(0, offset=1024, length=576), "segment 1 starts"),
    "no such segment": (put("tensors.0", segment=7), "there is no segment 7"),
    "a negative segment": (put("tensors.0", segment=-5), "there is no segment -5"),
    "a segment twice": (put("tensors.2", segment=0), "segment 0 is used twice"),
    "data twice": (put("tensors.0", data=b"1234"), "data are given twice"),
    "an artifact nowhere": (
        append("artifacts", schema.Artifact(name="plan", segment=9)),
        "artifact lies in a segment that is not there",
    ),
    "an artifact in a weight": (
        append("artifacts", schema.Artifact(name="plan", segment=0)),
        "segment 0 is used twice",
    ),
    # tensors
    "a variable twice": (put("tensors.3", key="count"), "variable name 'count' is"),
    "a variable unnamed": (put("tensors.3", key=""), "variable name '' is empty"),
    "an unknown role": (put("tensors.3", role=99), "a role 99 is unknown"),
    "a parameter without data": (put("tensors.3", role=1), "a parameter has no data"),
    "derived with data": (put("tensors.2", role=4), "derived variable has data"),
    "a constant without data": (put("tensors.3", role=0), "a constant lacks its data"),
    "a packed constant": (put("tensors.0", role=0), "or is packed"),
    "no such type": (put("tensors.0", type=99), "there is no type 99"),
    "no logical type": (put("tensors.0", logical=99), "there is no type 99"),
    "another logical type": (put("tensors.0", logical=-1), "is not|fails"),
    "no packing": (put("tensors.0", packing=-1), "without a packing"),
    "no such packing": (put("tensors.0", packing=99), "there is no op 99 to pack it"),
    "a negative packing": (put("tensors.0", packing=-9), "there is no op -9"),
    "a packing that packs nothing": (put("tensors.0", packing=1), "is not|fails"),
    "an unknown element type": (retyped(HALF, dtype=200), "element type 200 is"),
    "too many bytes": (retyped(PACKED, shape=(2, 3, 15)), "576 bytes|is not"),
    "too few bytes": (retyped(QUANTISED, shape=(99, 99)), "has 200 bytes; want"),
    "no bytes for all": (retyped(COUNT, shape=(2**20,)), "assigned|add does not"),
    "no such symbol": (retyped(HALF, shape=(-1,)), "name no symbol"),
    "the last symbol": (retyped(HALF, shape=(-(2**63),), symbols=("N",)), "no symbol"),
    "a symbol in storage": (retyped(HALF, shape=(-1,), symbols=("N",)), "stored"),
    "a negative size": (retyped(HALF, shape=(-1,), symbols=("-3",)), "negative size"),
    "a size that is none": (retyped(HALF, shape=(-1,), symbols=("N N",)), "not a size"),
    "too many axes": (retyped(HALF, shape=(1,) * 33), "33 axes"),
    "very many axes": (retyped(HALF, shape=(1,) * 100_000), "100000 axes"),
    "a size beyond memory": (retyped(HALF, shape=(2**63 - 1,)), "more than"),
    "a product beyond memory": (retyped(HALF, shape=(2**32, 2**32)), "more than"),
    "a product of zero": (retyped(HALF, shape=(2**62, 0, 2**62)), "more than"),
    # scales
    "scales nowhere": (requant(scales=99), "tensor 99, with scales, comes too late"),
    "scales later": (requant(scales=6), "tensor 6, with scales, comes too late"),
    "scales that are weights": (requant(scales=PACKED), "is no constant"),
    "zero points that are scales": (requant(zero_points=SCALES), "holds no scales"),
    "zero points nowhere": (requant(zero_points=-7), "tensor -7"),
    "scales along no axis": (requant(axis=2), "scales run along axis 2"),
    "scales along a negative axis": (requant(axis=-2), "scales run along axis -2"),
    "scales along another axis": (requant(axis=1), "2 scales do not fit axis 1"),
    "two scales for all": (requant(axis=-1), "2 scales do not fit axis -1"),
    "blocks along no axis": (requant(axis=-1, block=4), "scales run along axis -1"),
}


@pytest.mark.parametrize(("change", "reason"), CASES.values(), ids=CASES)
def test_one_wrong_thing_is_refused(change: Change, reason: str) -> None:
    refuse(file(change), reason)


def test_a_file_may_say_more_than_this_version_knows() -> None:
    """An older reader skips fields that were appended later."""

    class Newer(schema.Model):
        fields = (
            *schema.Model.fields,
            Field("extra", len(schema.Model.fields), "scalar", "Q"),
        )

    def change(model: schema.Model) -> None:
        model.__class__ = Newer
        put("", extra=7)(model)

    assert len(file(change)) > len(file(lambda m: None))
    assert read_bytes(file(change)).metadata == {"key": "value"}


def grow(
    step: Callable[[Value, Value], tuple[Value, Value]],
    times: int,
    size: Dim | None = None,
) -> bytes:
    """A file that does a few steps; ``size`` is that of the first input."""
    a = input_value("a", TensorType(F32, (symbol("N") if size is None else size,)))
    b = input_value("b", TensorType(F32, (symbol("M"),)))
    left, right = a, b
    for _ in range(times):
        left, right = step(left, right)
    return file(lambda m: None, Module({"infer": Graph((a, b), (left,), ("y",))}, {}))


def test_sizes_whose_texts_would_double_with_every_node_end_early() -> None:
    few = grow(
        lambda a, b: (Add()(a, Concat(axis=0)(b, b)), Concat(axis=0)(a, b)), times=5
    )
    read_bytes(few)
    start = time.perf_counter()
    refuse(repeated(few, 60), "a size is longer than")
    assert time.perf_counter() - start < 5


def test_sizes_that_double_with_every_node_end_early() -> None:
    few = grow(lambda a, b: (Tile(repeats=(2**5,))(a), b), times=5, size=4)
    read_bytes(few)
    refuse(repeated(few, 60), "a tensor has more than")


def repeated(data: bytes, times: int) -> bytes:
    """The file with its last step done many times more, without building the graph."""
    model = flatten(read_bytes(data)).model
    (function,) = model.functions
    nodes = list(function.nodes)
    first = 2 + len(function.tensors)
    period = len(nodes) // 5
    for _ in range(times):
        for node in nodes[-period:]:
            inputs = tuple(value + period for value in node.inputs)
            nodes.append(schema.Node(op=node.op, inputs=inputs))
    function.nodes = tuple(nodes)
    function.outputs[0].value = first + len(nodes) - 1
    return seal(build(model, b"EDGW"))


def test_a_constant_that_is_no_truth_value_is_refused() -> None:
    module = Module(
        {"infer": Graph((), (constant(np.array([True, False])),), ("y",))}, {}
    )
    refuse(file(put("tensors.0", data=b"\2\0"), module), "neither 0 nor 1")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "do not hold 2 strings"),
        (b"\1\0\0\0a", "do not hold 2 strings"),
        (b"\1\0\0\0a\1\0\0", "cut short|do not"),
        (b"\1\0\0\0a\1\0\0\0", "another length"),
        (b"\1\0\0\0a\xff\xff\xff\xffb", "another length"),
        (b"\1\0\0\0a\1\0\0\0b!", "another length"),
        (b"\1\0\0\0\xff\1\0\0\0b", "not UTF-8"),
    ],
)
def test_strings_that_do_not_fill_their_bytes_are_refused(
    data: bytes, reason: str
) -> None:
    words = constant(np.array(["a", "b"], object))
    module = Module({"infer": Graph((), (words,), ("y",))}, {})
    refuse(file(put("tensors.0", data=data), module), reason)


def test_many_types_cannot_copy_the_same_scales_without_end() -> None:
    def change(model: schema.Model) -> None:
        model.types = (*model.types, schema.Type(shape=(2**18,)))
        model.tensors = (schema.Tensor(type=len(model.types) - 1, data=bytes(2**20)),)
        types = tuple(
            schema.Type(
                dtype=schema.DTYPES.index("I8"),
                shape=(1, index),
                quant=schema.Quant(scales=0, axis=0, block=1),
            )
            for index in range(100)
        )
        start = len(model.types)
        model.types += types
        model.functions[0].inputs = tuple(
            schema.Port(name=f"x{index}", type=start + index) for index in range(100)
        )

    x = input_value("x", TensorType(F32, (1,)))
    refuse(
        file(change, Module({"infer": Graph((x,), (x,), ("y",))}, {})),
        "scales are used by too many types",
    )


def test_an_attribute_that_is_absurd_is_refused() -> None:
    x = input_value("x", TensorType(F32, (4, 4)))
    dims: tuple[Dim, ...] = (2, 8)
    module = Module({"infer": Graph((x,), (Reshape(dims)(x),), ("y",))}, {})
    for wholes in ((2**62, 2**62), (-1, 16), (3, 3), (0, -16), (1,) * 50_000):
        change = put("ops.0.attributes.0", wholes=wholes)
        refuse(file(change, module), "reshape does not fit|elements|negative|axes")
