"""A small model, made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import edgewise as ew
from edgewise.dims import symbol
from edgewise.ir.graph import Graph, constant, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ops import Exp, Log, Mul, Relu, Reshape
from edgewise.types import DType, TensorType


@pytest.fixture
def chain() -> ew.Model:
    """``relu(log(x) * doubled)`` over two axes made one, ``doubled`` derived."""
    n = symbol("N")
    rows = TensorType(DType.F32, (n, 4))
    four = TensorType(DType.F32, (4,))
    x = input_value("x", rows)
    logarithm = Log()(x, label="logarithm")
    scaled = Mul()(logarithm, variable_value("doubled", four), label="scaled")
    flat = Reshape(shape=(n * 4,))(scaled, label="flat")
    y = Relu()(flat, label="rectified")
    scale = variable_value("scale", four)
    doubled = Mul()(scale, constant(np.full(4, 2, np.float32)))
    values = np.array([1, -2, 3, -4], np.float32)
    return ew.Model(
        Module(
            {
                "infer": Graph((x,), (y,), ("y",)),
                "prepare": Graph((), (), (), {"doubled": doubled}),
            },
            {
                "scale": VariableInfo("scale", four, Role.PARAMETER, values),
                "doubled": VariableInfo("doubled", four, Role.DERIVED),
            },
            {"note": "made by hand"},
        )
    )


@pytest.fixture
def exponential() -> ew.Model:
    x = input_value("x", TensorType(DType.F32, (3,)))
    graph = Graph((x,), (Exp()(x, label="growth"),), ("y",))
    return ew.Model(Module({"infer": graph}, {}))
