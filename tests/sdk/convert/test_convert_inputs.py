"""Graph inputs: sizes that are open get symbols, and a configuration may fix them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgewise.convert import ConvertConfig
from edgewise.convert.onnx import import_module
from edgewise.errors import ConfigError, ModelFormatError

Check = Callable[..., Any]


def model_over(*shapes: Any) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    nodes = [helper.make_node("Abs", [name], [f"y{name}"]) for name in names]
    outputs = [onnx.ValueInfoProto(name=f"y{name}") for name in names]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def texts(model: onnx.ModelProto, **shapes: Any) -> list[str]:
    config = ConvertConfig(input_shapes=shapes or None)
    graph = import_module(model, config).functions["infer"]
    return [", ".join(map(str, value.type.shape)) for value in graph.inputs]


def test_names_become_symbols() -> None:
    assert texts(model_over(["N", 3], ["N", "T"])) == ["N, 3", "N, T"]


def test_names_that_cannot_be_symbols_are_cleaned_apart() -> None:
    shapes = ["batch size", "batch-size", "batch_size", "2x"]
    (text,) = texts(model_over(shapes))
    assert text == "batch_size_1, batch_size_2, batch_size, _2x"


def test_an_expression_is_only_a_name() -> None:
    assert texts(model_over(["2*N", "N"])) == ["_2_N, N"]


def test_open_sizes_get_fresh_symbols() -> None:
    model = model_over([None, 3], [None, "x0_0"])
    assert texts(model) == ["x0_0_1, 3", "x1_0, x0_0"]


def test_a_question_mark_names_nothing() -> None:
    assert texts(model_over([1, "?", "?"])) == ["1, x0_1, x0_2"]


def test_minus_one_is_an_open_size() -> None:
    model = model_over([1, 3])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert texts(model) == ["x0_0, 3"]


def test_a_size_of_zero_is_a_size() -> None:
    assert texts(model_over([0, 3])) == ["0, 3"]


def test_a_configuration_fixes_a_symbol_everywhere() -> None:
    model = model_over(["N", "T"], ["N", 4])
    assert texts(model, x0=(2, "T")) == ["2, T", "2, 4"]


def test_a_configuration_renames_and_opens_sizes() -> None:
    assert texts(model_over([10, 3, 32, 32]), x0=("N", 3, "H", "W")) == ["N, 3, H, W"]


def test_an_input_without_a_shape_needs_one() -> None:
    model = model_over(None)
    with pytest.raises(ModelFormatError, match="'x0' has no shape"):
        import_module(model)
    assert texts(model, x0=(2, "T")) == ["2, T"]


def test_an_unknown_input_is_named() -> None:
    with pytest.raises(ConfigError, match=r"z.*x0"):
        texts(model_over([1]), z=(1,))


def test_the_number_of_axes_must_fit() -> None:
    with pytest.raises(ConfigError, match="2 axes, not 1"):
        texts(model_over([1]), x0=(1, 2))


@pytest.mark.parametrize("bad", [-1, 1.5, True, None])
def test_a_size_is_a_number_or_a_name(bad: Any) -> None:
    with pytest.raises(ConfigError, match="input_shapes"):
        ConvertConfig(input_shapes={"x": (bad,)})


def test_a_fold_limit_is_not_negative() -> None:
    with pytest.raises(ConfigError, match="fold_limit"):
        ConvertConfig(fold_limit=-1)


def test_an_input_that_is_no_tensor_is_refused() -> None:
    model = model_over([1])
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    pairs = helper.make_map_type_proto(TensorProto.INT64, kind)
    model.graph.input[0].type.CopyFrom(pairs)
    with pytest.raises(ModelFormatError, match=r"'x0'.*map_type.*want a tensor"):
        import_module(model)


def test_two_inputs_of_one_name_are_refused() -> None:
    model = model_over([1])
    model.graph.input.append(model.graph.input[0])
    with pytest.raises(ModelFormatError, match="double"):
        import_module(model)


def test_an_unread_input_stays(build: Check, module_outputs: Check) -> None:
    x = np.ones(2, "f4")
    node = helper.make_node("Abs", ["x"], ["y"])
    module = import_module(build([node], {"x": x, "unread": x}, ["y"]))
    assert len(module.functions["infer"].inputs) == 2
    np.testing.assert_array_equal(module_outputs(module, {"x": x, "unread": x})["y"], x)
