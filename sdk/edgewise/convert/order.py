"""The nodes of an ONNX graph, each after what it reads."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

import onnx

from edgewise.convert.source import Parsed


def sorted_nodes(
    parsed: Parsed,
    nodes: Sequence[onnx.NodeProto],
    own: Container[str],
    given: Container[str],
) -> list[onnx.NodeProto]:
    """Nodes in an order that can be computed; the file's own where it is one.

    Args:
        parsed: The model.
        nodes: Those of one graph, or of one function.
        own: Names that no node may make again: inputs and initializers.
        given: Names that are there from the start: those, and what lies around.
    """
    makers = _makers(parsed, nodes, own)
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
                    f"node {node_name(nodes[index])!r} waits for its own output"
                )
            else:
                state[index] = 1
                stack.extend(reversed(missing))
    return order


def node_name(node: onnx.NodeProto) -> str:
    """What messages call a node: its name, or its first output."""
    return str(node.name or next(filter(None, node.output), node.op_type))


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def free_names(graph: onnx.GraphProto) -> set[str]:
    """Names that a nested graph reads and does not make."""
    made = {item.name for item in (*graph.input, *graph.initializer)}
    made |= {tensor.values.name for tensor in graph.sparse_initializer}
    read = {item.name for item in graph.output}
    for node in graph.node:
        made.update(node.output)
        read.update(node.input)
        for inner in subgraphs(node):
            read |= free_names(inner)
    return read - made - {""}


def _makers(
    parsed: Parsed, nodes: Iterable[onnx.NodeProto], own: Container[str]
) -> dict[str, int]:
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and (name in makers or name in own):
                raise parsed.error(
                    f"{name!r} is made twice, again by {node_name(node)!r}"
                )
            makers[name] = index
    makers.pop("", None)
    return makers


def _reads(
    parsed: Parsed,
    node: onnx.NodeProto,
    makers: dict[str, int],
    given: Container[str],
) -> list[int]:
    found = []
    for name in node.input:
        if name in makers:
            found.append(makers[name])
        elif name and name not in given:
            raise parsed.error(
                f"node {node_name(node)!r} reads {name!r}, which nothing makes"
            )
    # What a nested graph reads in vain is told where that graph is imported.
    for graph in subgraphs(node):
        found += [makers[name] for name in sorted(free_names(graph)) if name in makers]
    return found
