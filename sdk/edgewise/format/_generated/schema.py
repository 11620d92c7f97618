"""The tables of ``edgewise.fbs``; written by ``schema/generate.py``."""

from __future__ import annotations

from edgewise.format.records import Field, Record

IDENTIFIER = b'EDGW'

CODINGS = (
    "PLAIN",
    "SPARSE",
    "CODEBOOK",
    "BINARY",
)
DTYPES = (
    "F32",
    "F64",
    "F16",
    "BF16",
    "F8E4M3FN",
    "F8E4M3FNUZ",
    "F8E5M2",
    "F8E5M2FNUZ",
    "F8E8M0FNU",
    "F4E2M1FN",
    "I64",
    "I32",
    "I16",
    "I8",
    "I4",
    "I2",
    "U64",
    "U32",
    "U16",
    "U8",
    "U4",
    "U2",
    "BOOL",
    "STRING",
    "C64",
    "C128",
)
FORMS = (
    "TENSOR",
    "SEQUENCE",
    "OPTIONAL",
    "OPTIONAL_SEQUENCE",
)
KINDS = (
    "INT",
    "FLOAT",
    "BOOL",
    "TEXT",
    "DIM",
    "ENUM",
    "INTS",
    "TUPLE",
)
ROLES = (
    "CONSTANT",
    "PARAMETER",
    "STATISTIC",
    "STATE",
    "DERIVED",
)


class Artifact(Record):
    """Bytes for one target, such as a compiled plan; a reader may ignore them."""

    name: str
    segment: int = 0


class Attribute(Record):
    """One attribute of an op; those that have their default are left out."""

    name: str = ""
    kind: int = 0
    whole: int = 0
    real: float = 0.0
    text: str = ""
    wholes: tuple[int, ...] = ()
    items: tuple[Attribute, ...] = ()


class Entry(Record):
    """A text by name."""

    key: str
    value: str


class Function(Record):
    """A graph.  Value ids count inputs, then tensors, then the outputs of every node."""

    name: str
    inputs: tuple[Port, ...] = ()
    tensors: tuple[int, ...] = ()
    nodes: tuple[Node, ...] = ()
    outputs: tuple[Result, ...] = ()
    updates: tuple[Update, ...] = ()
    binders: tuple[int, ...] = ()


class Lineage(Record):
    """Where a model comes from."""

    parent: str = ""
    source: str = ""


class Model(Record):
    """The root.  Its first four fields keep their meaning in every version of the format."""

    format_version: int = 0
    features: tuple[str, ...] = ()
    min_version: str
    producer: str = ""
    metadata: tuple[Entry, ...] = ()
    lineage: Lineage | None = None
    segments: tuple[tuple[int, int, int], ...] = ()
    types: tuple[Type, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    ops: tuple[Op, ...] = ()
    functions: tuple[Function, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


class Node(Record):
    """One application of an op.  Types are not stored: the reader infers them."""

    op: int = 0
    inputs: tuple[int, ...] = ()
    outputs: int = 1
    label: str = ""


class Op(Record):
    """An op with its attributes; nodes that do the same share it."""

    name: str
    attributes: tuple[Attribute, ...] = ()


class Port(Record):
    """An input of a function."""

    name: str
    type: int = 0


class Quant(Record):
    """`real = scale * (stored - zero_point)`."""

    scales: int = 0
    zero_points: int = -1
    axis: int = -1
    block: int = 0


class Result(Record):
    """An output of a function."""

    name: str
    value: int = 0


class Tensor(Record):
    """A constant or a variable; its bytes lie in a segment, inline, or nowhere."""

    key: str = ""
    role: int = 0
    type: int = 0
    logical: int = -1
    packing: int = -1
    segment: int = -1
    data: bytes | None = None
    coding: int = 0
    coded: bool = 0


class Type(Record):
    """Element type and shape; tensors and inputs that agree in both share it.  Those of a container are its tensors', where any symbol is any size."""

    dtype: int = 0
    shape: tuple[int, ...] = ()
    symbols: tuple[str, ...] = ()
    quant: Quant | None = None
    form: int = 0
    any_shape: bool = 0


class Update(Record):
    """A variable and the value it takes when a run ends well."""

    tensor: int = 0
    value: int = 0

Artifact.fields = (
    Field("name", 0, "text", required=True),
    Field("segment", 1, "scalar", "I"),
)
Attribute.fields = (
    Field("name", 0, "text"),
    Field("kind", 1, "scalar", "B"),
    Field("whole", 2, "scalar", "q"),
    Field("real", 3, "scalar", "d"),
    Field("text", 4, "text"),
    Field("wholes", 5, "scalar", "q", many=True),
    Field("items", 6, "table", of=Attribute, many=True),
)
Entry.fields = (
    Field("key", 0, "text", required=True),
    Field("value", 1, "text", required=True),
)
Function.fields = (
    Field("name", 0, "text", required=True),
    Field("inputs", 1, "table", of=Port, many=True),
    Field("tensors", 2, "scalar", "I", many=True),
    Field("nodes", 3, "table", of=Node, many=True),
    Field("outputs", 4, "table", of=Result, many=True),
    Field("updates", 5, "table", of=Update, many=True),
    Field("binders", 6, "scalar", "I", many=True),
)
Lineage.fields = (
    Field("parent", 0, "text"),
    Field("source", 1, "text"),
)
Model.fields = (
    Field("format_version", 0, "scalar", "H"),
    Field("features", 1, "text", many=True),
    Field("min_version", 2, "text", required=True),
    Field("producer", 3, "text"),
    Field("metadata", 4, "table", of=Entry, many=True),
    Field("lineage", 5, "table", of=Lineage),
    Field("segments", 6, "struct", "QQI4x", many=True),
    Field("types", 7, "table", of=Type, many=True),
    Field("tensors", 8, "table", of=Tensor, many=True),
    Field("ops", 9, "table", of=Op, many=True),
    Field("functions", 10, "table", of=Function, many=True),
    Field("artifacts", 11, "table", of=Artifact, many=True),
)
Node.fields = (
    Field("op", 0, "scalar", "I"),
    Field("inputs", 1, "scalar", "i", many=True),
    Field("outputs", 2, "scalar", "I", default=1),
    Field("label", 3, "text"),
)
Op.fields = (
    Field("name", 0, "text", required=True),
    Field("attributes", 1, "table", of=Attribute, many=True),
)
Port.fields = (
    Field("name", 0, "text", required=True),
    Field("type", 1, "scalar", "I"),
)
Quant.fields = (
    Field("scales", 0, "scalar", "I"),
    Field("zero_points", 1, "scalar", "i", default=-1),
    Field("axis", 2, "scalar", "i", default=-1),
    Field("block", 3, "scalar", "I"),
)
Result.fields = (
    Field("name", 0, "text", required=True),
    Field("value", 1, "scalar", "I"),
)
Tensor.fields = (
    Field("key", 0, "text"),
    Field("role", 1, "scalar", "B"),
    Field("type", 2, "scalar", "I"),
    Field("logical", 3, "scalar", "i", default=-1),
    Field("packing", 4, "scalar", "i", default=-1),
    Field("segment", 5, "scalar", "i", default=-1),
    Field("data", 6, "scalar", "B", many=True),
    Field("coding", 7, "scalar", "B"),
    Field("coded", 8, "scalar", "?"),
)
Type.fields = (
    Field("dtype", 0, "scalar", "B"),
    Field("shape", 1, "scalar", "q", many=True),
    Field("symbols", 2, "text", many=True),
    Field("quant", 3, "table", of=Quant),
    Field("form", 4, "scalar", "B"),
    Field("any_shape", 5, "scalar", "?"),
)
Update.fields = (
    Field("tensor", 0, "scalar", "I"),
    Field("value", 1, "scalar", "I"),
)
