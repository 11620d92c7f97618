"""What the checks against onnxruntime share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import helper

from edgewise.ir.op import Array


@pytest.fixture
def onnx_run() -> Callable[..., Any]:
    """Runs one ONNX operator: name, inputs, attributes; gives its output or outputs."""
    return run


def run(op: str, *inputs: Array | None, outputs: int = 1, **attributes: Any) -> Any:
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    given = {n: a for n, a in zip(names, inputs, strict=True) if a is not None}
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
    ]
    outs = [onnx.ValueInfoProto(name=name) for name in results]
    graph = helper.make_graph([node], "one", infos, outs)
    opset = helper.make_opsetid("", 20)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.run(None, given)
    return found[0] if outputs == 1 else found
