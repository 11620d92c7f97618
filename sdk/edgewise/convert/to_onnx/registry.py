"""How each op is written as ONNX nodes: one function an op."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from edgewise.ir.op import Op

if TYPE_CHECKING:  # a writer looks rules up
    from edgewise.convert.to_onnx.writer import At


class Image(str):
    """The name of a tensor that has its channels second, where ours has them last."""

    __slots__ = ()


Written: TypeAlias = "str | tuple[str, ...]"
Rule: TypeAlias = "Callable[[At], Written]"
RULES: dict[type[Op], Rule] = {}


def writes(*ops: type[Op]) -> Callable[[Rule], Rule]:
    """Declare how ops are written: the rule gives the names of the node's outputs."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register
