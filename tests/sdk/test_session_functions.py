"""Sessions of several functions over the same variables."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.errors import ConfigError
from edgewise.ir.graph import Graph, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.model import Model
from edgewise.ops import Add, Mul
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.types import DType, TensorType

ROW = TensorType(DType.F32, (3,))


def module() -> Module:
    """``collect`` adds to a sum, ``spend`` gives the sum times its input."""
    total, x = variable_value("sum", ROW), input_value("x", ROW)
    factor = input_value("factor", TensorType(DType.F32, ()))
    functions = {
        "collect": Graph((x,), (), (), {"sum": Add()(total, x)}),
        "spend": Graph((factor,), (Mul()(total, factor),), ("y",)),
    }
    info = VariableInfo("sum", ROW, Role.STATE, np.ones(3, np.float32))
    return Module(functions, {"sum": info})


def test_one_function_reads_what_another_assigns() -> None:
    config = SessionConfig(threads=1)
    with Session(Model(module()), config, function="collect", also=("spend",)) as both:
        both.run({"x": np.arange(3, dtype=np.float32)})
        both.run({"x": np.arange(3, dtype=np.float32)})
        found = both.run({"factor": np.float32(2)}, function="spend")
        np.testing.assert_array_equal(found["y"], [2.0, 6.0, 10.0])
        plan = both.plan({"factor": ()}, function="spend")
        assert plan is not None
        assert [op.name for op in plan.ops] == ["mul"]


def test_functions_that_the_session_was_not_given_are_refused() -> None:
    one = Session(Model(module()), function="collect")
    with one, pytest.raises(ConfigError, match="spend"):
        one.run({"factor": np.float32(2)}, function="spend")
    with pytest.raises(ConfigError, match="save"):
        Session(Model(module()), function="collect", also=("save",))
