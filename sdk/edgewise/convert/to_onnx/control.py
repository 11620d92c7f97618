"""Branches and loops: their bodies are graphs again, which see what is around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx
from onnx import helper

from edgewise.convert.to_onnx.kinds import value_info
from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.writer import At
from edgewise.ir.graph import Value
from edgewise.ops.control import If, Loop, Scan


@writes(If)
def if_(at: At) -> Written:
    """Both branches read what they capture where it is."""
    captured = at.names()[1:]
    branches = {
        "then_branch": _body(at, at.op.then_branch, 0, captured),
        "else_branch": _body(at, at.op.else_branch, 0, captured),
    }
    return _all(at, "If", at.name(0), **branches)


@writes(Loop)
def loop(at: At) -> Written:
    """The body takes the turn, the condition, what is carried."""
    names, carried = at.names(), at.op.carried
    given, captured = names[: 2 + carried], names[2 + carried :]
    body = _body(at, at.op.body, 2 + carried, captured)
    return _all(at, "Loop", *given, body=body)


@writes(Scan)
def scan(at: At) -> Written:
    """The body takes what is carried, and a slice of each."""
    op, names = at.op, at.names()
    count = op.carried + len(op.in_axes)
    return _all(
        at,
        "Scan",
        *names[:count],
        body=_body(at, op.body, count, names[count:]),
        num_scan_inputs=len(op.in_axes),
        scan_input_axes=list(op.in_axes),
        scan_input_directions=list(map(int, op.in_reverse)),
        scan_output_axes=list(op.out_axes),
        scan_output_directions=list(map(int, op.out_reverse)),
    )


def _all(at: At, kind: str, *names: str, **attributes: object) -> Written:
    found: tuple[str, ...] = at.emit_all(kind, len(at.node.types), *names, **attributes)
    return found


def _body(
    at: At, function: str, count: int, captured: Sequence[str]
) -> onnx.GraphProto:
    """A function as a graph with ``count`` inputs; the rest it reads around it."""
    graph, inner = at.writer.module.functions[function], at.writer.nested()
    own = [inner.tensors.fresh(f"{function}/in{j}") for j in range(count)]
    names = dict(zip(graph.inputs, (*own, *captured), strict=True))
    found = inner.write(graph, names)
    outputs = [_own(inner.nodes, name, inner.tensors.fresh) for name in found]
    return helper.make_graph(
        inner.nodes,
        function,
        [value_info(n, v.kind) for n, v in zip(own, graph.inputs, strict=False)],
        list(map(_info, outputs, graph.outputs)),
    )


def _own(nodes: list[onnx.NodeProto], name: str, fresh: Callable[[str], str]) -> str:
    """A name for what a graph gives: nothing that is around it, nothing twice."""
    mine = fresh(name)
    nodes.append(helper.make_node("Identity", [name], [mine]))
    return mine


def _info(name: str, value: Value) -> onnx.ValueInfoProto:
    return value_info(name, value.kind)
