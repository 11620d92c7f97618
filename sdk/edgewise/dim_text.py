"""Sizes from their texts, as a file holds them: what ``str`` printed, read again."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

from edgewise.dims import FUNCTIONS, NAME, Dim, symbol
from edgewise.errors import ShapeError

MAX_TEXT = 1024
MAX_DEPTH = 128  # a sum nests once for every term


def parse(text: str) -> Dim:
    """The dim that ``str`` printed; hostile text raises ``ShapeError``."""
    if len(text) > MAX_TEXT:
        raise ShapeError(f"a symbolic size is longer than {MAX_TEXT} characters")
    try:
        # Every name gets a mark in front, so that none is a word of Python.
        marked = re.sub(NAME, r"_\g<0>", text, flags=re.ASCII)
        tree = ast.parse(marked, mode="eval")
        return _from_ast(tree.body, 0)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ShapeError(f"{text!r} is not a size") from error


_OPERATORS: dict[type[ast.operator], Callable[[Dim, Dim], Dim]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def _from_ast(node: ast.expr, depth: int) -> Dim:
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return symbol(name[1:])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_from_ast(operand, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            a, b = _from_ast(left, depth + 1), _from_ast(right, depth + 1)
            return _OPERATORS[type(op)](a, b)
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]):
            if name[1:] in FUNCTIONS:
                a, b = _from_ast(left, depth + 1), _from_ast(right, depth + 1)
                return FUNCTIONS[name[1:]](a, b)
    raise ValueError(ast.dump(node))
