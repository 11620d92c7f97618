"""Models whose elements no kernel takes say so when they are converted."""

from __future__ import annotations

import logging

import onnx
import pytest
from onnx import TensorProto, helper

from edgewise.convert import convert

SLOW = "edgewise.convert.slow"


def two_ops(dtype: int, size: int | str) -> onnx.ModelProto:
    """A product and what limits it, then a transpose."""
    shape = [size, size]
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "x"], ["m"]),
            helper.make_node("Tanh", ["m"], ["t"]),
            helper.make_node("Transpose", ["t"], ["y"], perm=[1, 0]),
        ],
        "half",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", dtype, None)],
    )
    imports = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


@pytest.mark.parametrize("size", [3, "N"])
@pytest.mark.parametrize(
    ("dtype", "name"), [(TensorProto.FLOAT16, "f16"), (TensorProto.DOUBLE, "f64")]
)
def test_ops_that_run_by_reference_for_their_type_are_counted_once(
    dtype: int, name: str, size: int | str, caplog: pytest.LogCaptureFixture
) -> None:
    convert(two_ops(dtype, size))
    (record,) = (r for r in caplog.records if r.name == SLOW)
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("2 ops run by reference")
    assert f"({name} 2)" in record.getMessage()


def test_float32_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    convert(two_ops(TensorProto.FLOAT, "N"))
    assert not [r for r in caplog.records if r.name == SLOW]
