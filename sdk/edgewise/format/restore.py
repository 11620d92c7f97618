"""Tables to a module: references resolved, types inferred, nothing taken on trust."""

from __future__ import annotations

from collections.abc import Mapping

import edgewise.ops  # noqa: F401 - registers every op there is
from edgewise.errors import EdgewiseError
from edgewise.format import attributes
from edgewise.format._generated import schema
from edgewise.format.container import Contents
from edgewise.format.functions import Functions
from edgewise.format.tables import DamageError
from edgewise.format.tensors import Tensors
from edgewise.format.values import want_unique
from edgewise.format.versions import EDGEWISE_VERSION, LINEAGE
from edgewise.ir.bodies import verify_bodies
from edgewise.ir.graph import Graph, Leaf
from edgewise.ir.module import Module, Role
from edgewise.ir.op import OPS, Op

PREPARE = "prepare"


def restore(model: schema.Model, contents: Contents) -> Module:
    """The module that the tables describe."""
    ops = tuple(_op(table, model.min_version) for table in model.ops)
    tensors = Tensors(model, contents.data, ops)
    want_unique("function", (table.name for table in model.functions))
    each = Functions(tensors, ops)
    functions = {table.name: each.restore(table) for table in model.functions}
    if any(op.bodies() for op in ops):
        _want_bodies(functions)
    _want_derived(functions, tensors)
    return Module(functions, tensors.variables, _metadata(model))


def _op(table: schema.Op, min_version: str) -> Op:
    op = OPS.get(table.name)
    if op is None:
        raise DamageError(
            f"op {table.name!r} is unknown to edgewise {EDGEWISE_VERSION}; "
            f"the file needs edgewise {min_version} or newer"
        )
    if issubclass(op, Leaf):
        raise DamageError(f"op {table.name!r} cannot be applied")
    return attributes.decode(table, op)


def _want_bodies(functions: Mapping[str, Graph]) -> None:
    try:
        verify_bodies(functions)
    except EdgewiseError as error:
        raise DamageError(str(error)) from None


def _want_derived(functions: Mapping[str, Graph], tensors: Tensors) -> None:
    prepare = functions.get(PREPARE)
    if prepare is not None and (prepare.inputs or prepare.outputs):
        raise DamageError(f"function {PREPARE!r} has inputs or outputs")
    computed = prepare.updates if prepare is not None else {}
    for key, variable in tensors.variables.items():
        if variable.role is Role.DERIVED and key not in computed:
            raise DamageError(f"function {PREPARE!r} does not compute {key!r}")


def _metadata(model: schema.Model) -> dict[str, str]:
    want_unique("metadata entry", (entry.key for entry in model.metadata))
    metadata = {entry.key: entry.value for entry in model.metadata}
    lineage = model.lineage or schema.Lineage()
    for key, field in LINEAGE.items():
        if getattr(lineage, field):
            metadata[key] = getattr(lineage, field)
    return metadata
