"""The nodes of an ONNX graph, each after what it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import onnx

from edgewise.convert.source import Parsed


def sorted_nodes(parsed: Parsed, given: Collection[str]) -> list[onnx.NodeProto]:
    """Nodes in an order that can be computed; the file's own where it is one.

    Args:
        parsed: The model.
        given: Names that are there from the start: inputs and initializers.
    """
    nodes = list(parsed.model.graph.node)
    makers = _makers(parsed, nodes, given)
    order: list[onnx.NodeProto] = []
    state = [0] * len(nodes)  # 0 untouched, 1 waiting for its inputs, 2 done
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            index = stack[-1]
            if state[index] == 2:
                stack.pop()
                continue
            missing = [
                i for i in _reads(parsed, nodes[index], makers, given) if state[i] < 2
            ]
            if not missing:
                state[index] = 2
                order.append(nodes[stack.pop()])
            elif state[index] == 1:
                raise parsed.error(
                    f"node {_name(nodes[index])!r} waits for its own output"
                )
            else:
                state[index] = 1
                stack.extend(reversed(missing))
    return order


def _makers(
    parsed: Parsed, nodes: Iterable[onnx.NodeProto], given: Collection[str]
) -> dict[str, int]:
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and (name in makers or name in given):
                raise parsed.error(f"{name!r} is made twice, again by {_name(node)!r}")
            makers[name] = index
    makers.pop("", None)
    return makers


def _reads(
    parsed: Parsed,
    node: onnx.NodeProto,
    makers: dict[str, int],
    given: Collection[str],
) -> list[int]:
    found = []
    for name in node.input:
        if name in makers:
            found.append(makers[name])
        elif name and name not in given:
            raise parsed.error(
                f"node {_name(node)!r} reads {name!r}, which nothing makes"
            )
    return found


def _name(node: onnx.NodeProto) -> str:
    return str(node.name or next(iter(node.output), node.op_type))
