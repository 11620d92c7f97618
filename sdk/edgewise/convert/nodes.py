"""The nodes of a graph, imported one by one; functions and nested graphs too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx

from edgewise.convert.assume import Assumptions
from edgewise.convert.bodies import Body
from edgewise.convert.config import ConvertConfig
from edgewise.convert.context import OpContext
from edgewise.convert.functions import (
    MAX_CALLS,
    Called,
    Functions,
    has_body,
    resolved,
)
from edgewise.convert.onnx_ops import importer_of, supported
from edgewise.convert.onnx_ops.registry import Importer, Outputs
from edgewise.convert.order import node_name, sorted_nodes, subgraphs
from edgewise.convert.scope import Growing, Scope
from edgewise.convert.signature import fault, misfit
from edgewise.convert.source import Parsed, versions
from edgewise.convert.world import World
from edgewise.errors import (
    DTypeError,
    EdgewiseError,
    InternalError,
    ShapeError,
    UnsupportedOpError,
)
from edgewise.ir.graph import Value
from edgewise.types import ValueType

MAX_DEPTH = 32  # graphs within graphs and functions
ALIKE = 0.8  # how like another a name is that may be meant: Foo is not Floor
MAX_EXPANDED = 50_000  # nodes that functions and nested graphs may bring


class Nodes:
    """Imports nodes into scopes."""

    def __init__(
        self, parsed: Parsed, config: ConvertConfig, assumed: Assumptions
    ) -> None:
        self.world = World(parsed, self, config, assumed)
        self._functions = Functions(parsed)
        self._left = MAX_EXPANDED

    def add(self, scope: Scope, nodes: Sequence[onnx.NodeProto]) -> None:
        """Import nodes, each after what it reads, and let their outputs have names."""
        self._refuse_unknown(scope, nodes)
        for node in sorted_nodes(self.world.parsed, nodes, scope.values, scope):
            self._import(scope, node)

    def inline(
        self, scope: Scope, graph: onnx.GraphProto, inputs: Sequence[Value]
    ) -> tuple[Value, ...]:
        """The outputs of a nested graph, computed as part of the graph around it."""
        return self._nested(scope.nested(scope.growing), graph, inputs)

    def body(
        self, scope: Scope, graph: onnx.GraphProto, kinds: Sequence[ValueType]
    ) -> Body:
        """A nested graph as a function over inputs of ``kinds``."""
        growing = Growing(self.world.symbols)
        names = [item.name for item in graph.input]
        inputs = [
            growing.input(name, growing.inside(kind))
            for name, kind in zip(names, kinds, strict=False)
        ]
        return Body(growing, self._nested(scope.nested(growing), graph, inputs))

    def _nested(
        self, scope: Scope, graph: onnx.GraphProto, inputs: Sequence[Value]
    ) -> tuple[Value, ...]:
        parsed = self.world.parsed
        weights = self.world.weights.of(graph)
        names = [item.name for item in graph.input if item.name not in weights]
        if len(names) != len(inputs):
            raise parsed.error(
                f"nested graph {graph.name!r} has {len(names)} inputs; its node gives"
                f" {len(inputs)}"
            )
        self._spend(scope, len(graph.node))
        scope.update(weights, weights.values())
        scope.update(names, inputs)
        self.add(scope, graph.node)
        return tuple(self.output(scope, item.name) for item in graph.output)

    def output(self, scope: Scope, name: str) -> Value:
        """What an output of a graph stands for."""
        value = scope.find(name)
        if value is None:
            raise self.world.parsed.error(f"nothing makes the output {name!r}")
        return value

    def _import(self, scope: Scope, node: onnx.NodeProto) -> None:
        node = resolved(node, scope.attributes)
        inputs = tuple(scope.find(name) if name else None for name in node.input)
        context = OpContext(self.world, scope, node, inputs)
        if why := fault(node):
            raise context.malformed(why)
        self._bind(context, self._guarded(context))

    def _guarded(self, context: OpContext) -> Outputs:
        """What the node makes; all errors name it."""
        where = f"node {context.name!r} ({context.title})"
        try:
            return self._outputs(context)
        except (ShapeError, DTypeError) as error:
            if where in str(error):
                raise
            raise type(error)(f"{where}: {error}") from error
        except (EdgewiseError, MemoryError):
            raise
        except Exception as error:
            # Not the file's fault for certain: its schema held, and a check of ours
            # that is missing must be heard of.
            raise InternalError(
                f"{where}: {type(error).__name__}: {error}; please report this node"
            ) from error

    def _outputs(self, context: OpContext) -> Outputs:
        scope, node = context.scope, context.node
        called = self._functions.own(node)
        if called is not None:
            return self._call(context, called)
        if why := misfit(node, context.opset):
            raise context.malformed(why)
        importer = importer_of(node.op_type, context.opset, node.domain)
        if importer is not None:
            return _by_importer(importer, context)
        called = self._functions.standard(node, context.opset, context.inputs)
        if called is None:
            raise _unknown(scope, [node])
        return self._call(context, called)

    def _call(self, context: OpContext, called: Called) -> Outputs:
        function, scope = called.function, context.scope
        title = f"{function.domain}.{function.name}.{function.overload}"
        if title in scope.calls:
            raise context.malformed(f"the function {function.name!r} calls itself")
        if len(scope.calls) >= MAX_CALLS:
            raise context.malformed(f"calls more than {MAX_CALLS} functions deep")
        if len(context.inputs) > len(function.input):
            raise context.malformed(
                f"{function.name!r} takes {len(function.input)} inputs"
            )
        sets = versions(self.world.parsed, function.opset_import)
        # What ONNX defines may hold graphs of the caller, which see what lies around.
        sees = not called.own and any(True for _ in subgraphs(context.node))
        inner = scope.called(title, sets, called.attributes, sees=sees)
        self._spend(inner, len(function.node))
        absent = [None] * (len(function.input) - len(context.inputs))
        inner.update(function.input, [*context.inputs, *absent])
        self.add(inner, function.node)
        return tuple(
            self.output(inner, name) if wanted else None
            for name, wanted in zip(function.output, context.node.output, strict=False)
        )

    def _spend(self, scope: Scope, nodes: int) -> None:
        """Refuse what grows beyond measure before it does."""
        self._left -= nodes
        if scope.depth > MAX_DEPTH or self._left < 0:
            raise self.world.parsed.error(
                f"graphs within graphs go more than {MAX_DEPTH} deep, or bring more"
                f" than {MAX_EXPANDED} nodes"
            )

    def _bind(self, context: OpContext, outputs: Outputs) -> None:
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        settled: list[Value | None] = []
        for index, name in enumerate(context.node.output):
            if not name:
                settled.append(None)
                continue
            value = values[index] if index < len(values) else None
            if value is None:
                raise context.unsupported(
                    f"its output {index} ({name!r}) is not computed",
                    "drop that output before export",
                )
            settled.append(self.world.sizes.settle(value))
        context.scope.update(context.node.output, settled)

    def _refuse_unknown(self, scope: Scope, nodes: Iterable[onnx.NodeProto]) -> None:
        """Raise for all operators at once that edgewise does not have."""
        unknown = [node for node in nodes if not self._has(scope, node)]
        if unknown:
            raise _unknown(scope, unknown)

    def _has(self, scope: Scope, node: onnx.NodeProto) -> bool:
        version = scope.version(node.domain)
        return (
            self._functions.own(node) is not None
            or importer_of(node.op_type, version, node.domain) is not None
            or has_body(node, version)
        )


def _by_importer(importer: Importer, context: OpContext) -> Outputs:
    outputs = importer(context)
    if unread := context.unread():
        raise context.unsupported(
            f"has attributes that edgewise does not know: {', '.join(unread)}",
            "export with an older operator set",
        )
    return outputs


def _unknown(scope: Scope, nodes: Sequence[onnx.NodeProto]) -> UnsupportedOpError:
    first = nodes[0]
    version = scope.version(first.domain)
    title = f"{first.domain or 'ai.onnx'}.{first.op_type} (opset {version})"
    others = sorted({node.op_type for node in nodes} - {first.op_type})
    reason = "edgewise does not have this operator"
    if others:
        reason += f", nor {', '.join(others)}"
    return UnsupportedOpError(title, node_name(first), reason, _nearest(first))


def _nearest(node: onnx.NodeProto) -> str:
    import difflib  # noqa: PLC0415 - only for the message

    by_name = {name: domain for domain, name in supported()}
    close = difflib.get_close_matches(node.op_type, by_name, 1, ALIKE)
    if close:
        return f"the nearest that it has is {by_name[close[0]]}.{close[0]}"
    return "replace it with standard operators before export"
