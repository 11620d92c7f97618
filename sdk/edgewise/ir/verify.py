"""Whether a graph or a module holds together: structure, types, names, variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from edgewise.dims import Expr
from edgewise.errors import DTypeError, EdgewiseError, InternalError, ShapeError
from edgewise.ir.binders import verify_binders
from edgewise.ir.bodies import verify_bodies
from edgewise.ir.graph import Constant, Graph, Input, Leaf, Node, Value, Variable
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import OPS, AttributeValue, Field
from edgewise.types import DType, TensorType, ValueType, may_agree

KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "str": (str,),
    "Dim": (int, Expr),
}


def verify(graph: Graph, variables: Mapping[str, VariableInfo] | None = None) -> None:
    """Raise unless the graph is sound; with ``variables``, unless it fits them.

    Raises:
        InternalError: Structure, attributes, names or variables are wrong.
        ShapeError: The types of a node are not those of its op; says which node.
    """
    _unique("input", (_key(value.op) for value in graph.inputs))
    _unique("output", graph.output_names)
    known = {value.node for value in graph.inputs}
    for node in graph.nodes():
        _node(node)
        if isinstance(node.op, Input) and node not in known:
            raise InternalError(f"{node} is read, but no input of the graph")
        if isinstance(node.op, Variable) and variables is not None:
            _variable(node.op.key, Value(node).type, variables)
    for value in graph.roots:
        if not 0 <= value.index < len(value.node.types):
            raise InternalError(f"{value.node} has no output {value.index}")
    for key, value in graph.updates.items():
        if variables is not None:
            _variable(key, value.type, variables)
    verify_binders(graph)


def verify_module(module: Module) -> None:
    """Raise unless all functions and variables of the module hold together."""
    for key, info in module.variables.items():
        _info(key, info)
    for name, graph in module.functions.items():
        try:
            verify(graph, module.variables)
        except EdgewiseError as error:
            raise _within(f"function {name!r}", error) from error
    verify_bodies(module.functions)
    prepare = module.functions.get("prepare")
    made = set(prepare.updates) if prepare else set()
    if prepare and (prepare.inputs or prepare.outputs):
        raise InternalError("function 'prepare' has inputs or outputs; want updates")
    for key, info in module.variables.items():
        if info.role is Role.DERIVED and key not in made:
            raise InternalError(f"variable {key!r} is derived, but not by 'prepare'")


def _within(where: str, error: EdgewiseError) -> EdgewiseError:
    """The same kind of error, saying where."""
    kind = type(error) if isinstance(error, ShapeError | DTypeError) else InternalError
    return kind(f"{where}: {error}")


def _key(op: object) -> str:
    if not isinstance(op, Input):
        raise InternalError(f"{op} is among the inputs; want input nodes")
    return op.key


def _unique(kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InternalError(f"{count} {kind}s are called {name!r}")


def _node(node: Node) -> None:
    op = node.op
    if OPS.get(op.name) is not type(op):
        raise InternalError(f"{node}: no registered op")
    for field, value in zip(op.fields, op.values, strict=True):
        if not _is_kind(field, str(field.kind), value):
            raise InternalError(
                f"{node}: attribute {field.name} is {value!r}; want {field.kind}"
            )
    for read in node.inputs:
        if read is not None and not 0 <= read.index < len(read.node.types):
            raise InternalError(f"{node} reads output {read.index} of {read.node}")
    if isinstance(op, Leaf):
        _leaf(node)
        return
    types = tuple(None if read is None else read.kind for read in node.inputs)
    try:
        wanted = op.infer_all(types)
    except EdgewiseError as error:
        raise _within(str(node), error) from error
    if len(wanted) != len(node.types) or not all(map(may_agree, node.types, wanted)):
        raise ShapeError(f"{node}: got the types {node.types}; want {wanted}")


def _is_kind(field: Field, kind: str, value: AttributeValue) -> bool:
    if kind.startswith("tuple["):
        inner = kind.removeprefix("tuple[").removesuffix("]").removesuffix(", ...")
        return isinstance(value, tuple) and all(
            _is_kind(field, inner, item) for item in value
        )
    wanted = KINDS.get(kind)
    if wanted is None:
        return type(value).__name__ == kind.rpartition(".")[2]
    return type(value) in wanted


def _leaf(node: Node) -> None:
    if node.inputs or len(node.types) != 1:
        raise InternalError(f"{node}: a leaf has no inputs and one output")
    if isinstance(node.op, Constant):
        array, type_ = node.op.array, Value(node).type
        if array.shape != type_.shape or DType.of(array.dtype) is not type_.dtype:
            given = f"{array.dtype}{list(array.shape)}"
            raise ShapeError(f"{node}: holds {given}; says {type_}")


def _variable(
    key: str, type_: TensorType, variables: Mapping[str, VariableInfo]
) -> None:
    info = variables.get(key)
    if info is None:
        raise InternalError(f"no variable is called {key!r}")
    if not may_agree(type_, info.type):
        raise ShapeError(f"variable {key!r}: used as {type_}; stored as {info.type}")


def _info(key: str, info: VariableInfo) -> None:
    if info.key != key:
        raise InternalError(f"variable {info.key!r} is filed under {key!r}")
    if info.packing is None:
        packed: tuple[ValueType, ...] = (info.logical,)
    else:
        packed = info.packing.infer_all((info.logical,))
    if packed != (info.type,):
        raise ShapeError(
            f"variable {key!r}: {info.logical} is stored as {info.type};"
            f" want {packed[0]}"
        )
    _initial(key, info)


def _initial(key: str, info: VariableInfo) -> None:
    if info.initial is None:
        if info.role in (Role.PARAMETER, Role.STATISTIC):
            raise InternalError(f"variable {key!r}: a {info.role.value} has no values")
        return
    if info.role is Role.DERIVED:
        raise InternalError(f"variable {key!r} is derived, but has values")
    array = info.initial
    if array.shape != info.type.shape or DType.of(array.dtype) is not info.type.dtype:
        given = f"{array.dtype}{list(array.shape)}"
        raise ShapeError(f"variable {key!r}: holds {given}; says {info.type}")
