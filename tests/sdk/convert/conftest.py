"""What the tests of the importer share: small ONNX models, run here and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from edgewise.convert import ConvertConfig, convert_module
from edgewise.ir.evaluate import evaluate
from edgewise.ir.module import Module
from edgewise.ir.op import Array

Feeds = Mapping[str, Array]


def info(name: str, array: Array, shape: Sequence[Any] | None = None) -> Any:
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(
        name, code, array.shape if shape is None else shape
    )


def build(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    *,
    weights: Mapping[str, Array] | None = None,
    opset: int = 17,
    shapes: Mapping[str, Sequence[Any]] | None = None,
) -> onnx.ModelProto:
    """A model over ``inputs``, whose declared shapes ``shapes`` may replace."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [info(k, a, (shapes or {}).get(k)) for k, a in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(a, k) for k, a in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def module_outputs(module: Module, feeds: Feeds) -> dict[str, Array]:
    variables = {
        key: entry.initial
        for key, entry in module.variables.items()
        if entry.initial is not None
    }
    if "prepare" in module.functions:
        _, derived = evaluate(module.functions["prepare"], {}, variables)
        variables |= derived
    inputs = {value.node.label for value in module.functions["infer"].inputs}
    given = {key: array for key, array in feeds.items() if key in inputs}
    infer, functions = module.functions["infer"], module.functions
    return evaluate(infer, given, variables, functions=functions)[0]


def onnxruntime_outputs(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def compare(got: Mapping[str, Array], want: Mapping[str, Array]) -> None:
    assert list(got) == list(want)
    for name, expected in want.items():
        assert got[name].dtype == expected.dtype, name
        assert got[name].shape == expected.shape, name
        if expected.dtype.kind == "f":
            # Two float32 formulas of the same function, of a few dozen terms.
            loose = 1e-3 if expected.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(got[name], expected, loose, loose, err_msg=name)
        else:
            np.testing.assert_array_equal(got[name], expected, err_msg=name)


def agree(
    model: onnx.ModelProto, feeds: Feeds, config: ConvertConfig | None = None
) -> Module:
    """Check that the converted model gives what onnxruntime gives."""
    module = convert_module(model, config).module
    compare(module_outputs(module, feeds), onnxruntime_outputs(model, feeds))
    return module


def agree_on_node(
    op: str,
    *inputs: Array | None,
    opset: int = 17,
    fixed: Sequence[int] = (),
    outputs: int = 1,
    **attributes: Any,
) -> Module:
    """``agree`` on a model of one node; inputs numbered in ``fixed`` are weights."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="node", **attributes)
    given = {n: a for n, a in zip(names, inputs, strict=True) if a is not None}
    weights = {f"x{i}": given.pop(f"x{i}") for i in fixed}
    return agree(build([node], given, results, weights=weights, opset=opset), given)


@pytest.fixture(name="build")
def build_fixture() -> Callable[..., onnx.ModelProto]:
    return build


@pytest.fixture(name="agree")
def agree_fixture() -> Callable[..., Module]:
    return agree


@pytest.fixture(name="agree_on_node")
def agree_on_node_fixture() -> Callable[..., Module]:
    return agree_on_node


@pytest.fixture(name="module_outputs")
def module_outputs_fixture() -> Callable[..., dict[str, Array]]:
    return module_outputs


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(name="run")
def run_fixture() -> Callable[..., list[Array]]:
    """The outputs of one node over inputs of which some are weights."""

    def run(
        op: str,
        *inputs: Array | None,
        opset: int = 18,
        outputs: int = 1,
        fixed: tuple[int, ...] = (),
        shapes: dict[str, list[Any]] | None = None,
        **attributes: Any,
    ) -> list[Array]:
        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        results = [f"y{i}" for i in range(outputs)]
        node = helper.make_node(op, names, results, name="node", **attributes)
        feeds = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
        weights = {f"x{i}": feeds.pop(f"x{i}") for i in fixed}
        model = build(
            [node], feeds, results, weights=weights, opset=opset, shapes=shapes
        )
        return list(module_outputs(convert_module(model).module, feeds).values())

    return run
