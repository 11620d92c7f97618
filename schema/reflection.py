"""flatc's own binary form of a schema, as records: what ``generate.py`` reads."""

from __future__ import annotations

from edgewise.format.records import Field, Record

# reflection.BaseType: number -> (struct code, Python type).
SCALARS = {
    2: ("?", "bool"),
    3: ("b", "int"),
    4: ("B", "int"),
    5: ("h", "int"),
    6: ("H", "int"),
    7: ("i", "int"),
    8: ("I", "int"),
    9: ("q", "int"),
    10: ("Q", "int"),
    11: ("f", "float"),
    12: ("d", "float"),
}
STRING, VECTOR, OBJECT = 13, 14, 15


class SchemaType(Record):
    """``reflection.Type``."""

    base_type: int = 0
    element: int = 0
    index: int = -1


class SchemaField(Record):
    """``reflection.Field``."""

    name: str
    type: SchemaType
    id: int = 0
    offset: int = 0
    default_integer: int = 0
    default_real: float = 0.0
    required: bool = False


class SchemaObject(Record):
    """``reflection.Object``: a table or a struct."""

    name: str
    fields_: tuple[SchemaField, ...] = ()
    is_struct: bool = False
    bytesize: int = 0
    documentation: tuple[str, ...] = ()


class SchemaEnumValue(Record):
    """``reflection.EnumVal``."""

    name: str
    value: int = 0


class SchemaEnum(Record):
    """``reflection.Enum``."""

    name: str
    values: tuple[SchemaEnumValue, ...] = ()
    documentation: tuple[str, ...] = ()


class Schema(Record):
    """``reflection.Schema``."""

    objects: tuple[SchemaObject, ...] = ()
    enums: tuple[SchemaEnum, ...] = ()
    file_ident: str = ""


SchemaType.fields = (
    Field("base_type", 0, "scalar", "b"),
    Field("element", 1, "scalar", "b"),
    Field("index", 2, "scalar", "i", default=-1),
)
SchemaField.fields = (
    Field("name", 0, "text", required=True),
    Field("type", 1, "table", required=True, of=SchemaType),
    Field("id", 2, "scalar", "H"),
    Field("offset", 3, "scalar", "H"),
    Field("default_integer", 4, "scalar", "q"),
    Field("default_real", 5, "scalar", "d"),
    Field("required", 7, "scalar", "?"),
)
SchemaObject.fields = (
    Field("name", 0, "text", required=True),
    Field("fields_", 1, "table", many=True, of=SchemaField),
    Field("is_struct", 2, "scalar", "?"),
    Field("bytesize", 4, "scalar", "i"),
    Field("documentation", 6, "text", many=True),
)
SchemaEnumValue.fields = (
    Field("name", 0, "text", required=True),
    Field("value", 1, "scalar", "q"),
)
SchemaEnum.fields = (
    Field("name", 0, "text", required=True),
    Field("values", 1, "table", many=True, of=SchemaEnumValue),
    Field("documentation", 5, "text", many=True),
)
Schema.fields = (
    Field("objects", 0, "table", many=True, of=SchemaObject),
    Field("enums", 1, "table", many=True, of=SchemaEnum),
    Field("file_ident", 2, "text"),
)
