"""Functions that ops of other functions run: that they are there, fit, and end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgewise.errors import InternalError
from edgewise.ir.graph import Graph, Node
from edgewise.types import ValueType, may_agree

# Each level is some frames of Python's stack; models nest two or three deep.
MAX_NESTING = 32


def called(graph: Graph) -> list[tuple[Node, str]]:
    """The nodes that run functions, once for every function they name."""
    return [(node, name) for node in graph.nodes() for name in node.op.bodies()]


def reachable(functions: Mapping[str, Graph], roots: Iterable[str]) -> list[str]:
    """``roots`` and the functions that they run, directly or not."""
    found = dict.fromkeys(roots)
    queue = list(found)
    while queue:
        for _, name in called(functions[queue.pop()]):
            if name not in found and name in functions:
                found[name] = None
                queue.append(name)
    return list(found)


def verify_bodies(functions: Mapping[str, Graph]) -> None:
    """Raise unless bodies are there, never run themselves, and nest within bounds.

    Raises:
        InternalError: One of those; a body that assigns variables; or one that takes
            or gives another number of values than the op.
    """
    calls = {name: called(graph) for name, graph in functions.items()}
    for name, nodes in calls.items():
        for node, body in nodes:
            if body not in functions:
                raise InternalError(
                    f"{node} of {name!r} runs {body!r}, which is not there"
                )
            _want_fit(node, body, functions[body])
    names = {name: [body for _, body in nodes] for name, nodes in calls.items()}
    depth: dict[str, int] = {}
    for name in functions:
        _measure(name, names, depth)


def _measure(start: str, calls: Mapping[str, list[str]], depth: dict[str, int]) -> None:
    """How deep functions nest below ``start``; a cycle is without end."""
    stack = [(start, False)]
    open_: set[str] = set()
    while stack:
        name, done = stack.pop()
        if done:
            open_.remove(name)
            depth[name] = 1 + max((depth[body] for body in calls[name]), default=0)
            if depth[name] > MAX_NESTING:
                raise InternalError(
                    f"function {name!r} nests {depth[name]} deep; at most {MAX_NESTING}"
                )
        elif name in open_:
            raise InternalError(f"function {name!r} runs itself, directly or not")
        elif name not in depth:
            open_.add(name)
            stack.append((name, True))
            stack += [(body, False) for body in calls[name]]


def _want_fit(node: Node, name: str, body: Graph) -> None:
    if body.updates:
        raise InternalError(f"{name!r} assigns variables, but is the body of {node}")
    given, made = node.op.signature(
        tuple(None if value is None else value.kind for value in node.inputs)
    )
    takes = tuple(value.kind for value in body.inputs)
    gives = tuple(value.kind for value in body.outputs)
    for verb, has, want in (("takes", takes, given), ("gives", gives, made)):
        if len(has) != len(want) or not all(map(may_agree, has, want)):
            raise InternalError(
                f"{node}: {name!r} {verb} {_text(has)}; want {_text(want)}"
            )


def _text(types: Iterable[ValueType]) -> str:
    return f"({', '.join(map(str, types))})"
