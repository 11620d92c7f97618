"""Reading ONNX files: what is broken, hostile or unknown gets an error of its own."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgewise.convert import convert, convert_module
from edgewise.convert.onnx import import_module
from edgewise.errors import ConfigError, ModelFormatError, UnsupportedOpError
from edgewise.ir.module import Role

Check = Callable[..., Any]
X = np.array([1.0, -2.0], "f4")


def node(op: str, *names: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(
        op, list(names[:-1]), [names[-1]], name=names[-1], **attributes
    )


@pytest.fixture
def simple(build: Check) -> onnx.ModelProto:
    model: onnx.ModelProto = build(
        [node("Add", "x", "w", "y")], {"x": X}, ["y"], weights={"w": X}
    )
    return model


def test_a_model_may_be_a_path_bytes_or_a_proto(
    simple: onnx.ModelProto, tmp_path: Path, module_outputs: Check
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(simple.SerializeToString())
    for source in (path, str(path), path.read_bytes(), simple):
        module = convert(source).module
        np.testing.assert_array_equal(module_outputs(module, {"x": X})["y"], X + X)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_bytes_may_lie_in_any_memory(
    simple: onnx.ModelProto, kind: Callable[[bytes], Any]
) -> None:
    assert convert(kind(simple.SerializeToString())).inputs[0].name == "x"


@pytest.mark.parametrize("source", [None, 5, [], io.BytesIO(b"")])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(ConfigError, match=rf"{type(source).__name__}; want the path"):
        convert(source)


def test_a_configuration_is_no_dictionary(simple: onnx.ModelProto) -> None:
    for config in ({"fold": False}, {}):
        with pytest.raises(ConfigError, match="got dict; want a ConvertConfig"):
            convert(simple, config)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (b"\n<!DOCTYPE html>\n<html>", "web page: fetch the file"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (b"PK\x03\x04and so on", "an archive: unpack it"),
        (b"\x1f\x8band so on", "an archive: unpack it"),
        (b"\x40\0\0\0\0\0\0\0EDGWand", "load it with edgewise.load"),
    ],
)
def test_a_file_of_another_kind_says_what_to_do(data: bytes, advice: str) -> None:
    with pytest.raises(ModelFormatError, match=advice):
        convert(data)


@pytest.mark.parametrize(
    ("domain", "name", "nearest"),
    [
        ("", "Reluu", "ai.onnx.Relu"),
        ("com.microsoft", "Gelu", "ai.onnx.Gelu"),
        ("ai.onnx.ml", "LabelEncode", "ai.onnx.ml.LabelEncoder"),
    ],
)
def test_an_operator_like_one_we_have_names_it_with_its_domain(
    build: Check, domain: str, name: str, nearest: str
) -> None:
    model = build([helper.make_node(name, ["x"], ["y"], domain=domain)], {"x": X}, "y")
    model.opset_import.append(helper.make_opsetid(domain or "more", 1))
    with pytest.raises(UnsupportedOpError, match=rf"nearest that it has is {nearest}$"):
        convert(model)


def test_a_name_that_is_like_none_hints_at_none(build: Check) -> None:
    model = build([helper.make_node("Foo", ["x"], ["y"])], {"x": X}, "y")
    with pytest.raises(UnsupportedOpError, match=r"before export$"):
        convert(model)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.onnx"
    with pytest.raises(ModelFormatError, match=r"cannot be read") as caught:
        convert(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("data", [b"not a model", b"", b"\x08"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ModelFormatError, match="not an ONNX model"):
        convert(data)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.97])
def test_a_truncated_file_is_refused(simple: onnx.ModelProto, share: float) -> None:
    data = simple.SerializeToString()
    with pytest.raises(ModelFormatError):
        convert(data[: int(len(data) * share)])


@pytest.mark.parametrize("version", [0, -1, 9999])
def test_an_unknown_operator_set_is_refused(
    simple: onnx.ModelProto, version: int
) -> None:
    simple.opset_import[0].version = version
    with pytest.raises(ModelFormatError, match=rf"operator set.*{version}"):
        convert(simple)


def test_an_unknown_operator_is_named_with_all_others(build: Check) -> None:
    nodes = [
        node("Frobnicate", "x", "a"),
        node("Relou", "a", "b"),
        node("Abs", "b", "y"),
    ]
    with pytest.raises(UnsupportedOpError) as caught:
        convert(build(nodes, {"x": X}, ["y"]))
    assert caught.value.op == "ai.onnx.Frobnicate (opset 17)"
    assert caught.value.node == "a"
    assert "Relou" in str(caught.value)


def test_a_misspelt_operator_gets_the_nearest(build: Check) -> None:
    with pytest.raises(UnsupportedOpError) as caught:
        convert(build([node("Rellu", "x", "y")], {"x": X}, ["y"]))
    assert "Relu" in caught.value.fix


def test_a_foreign_domain_is_named(build: Check) -> None:
    model = build([node("Add", "x", "x", "y", domain="com.example")], {"x": X}, ["y"])
    with pytest.raises(UnsupportedOpError, match=r"com\.example\.Add"):
        convert(model)


def test_an_unknown_attribute_is_refused(build: Check) -> None:
    with pytest.raises(UnsupportedOpError, match="novelty"):
        convert(build([node("Relu", "x", "y", novelty=1)], {"x": X}, ["y"]))


def test_nodes_may_stand_in_any_order(build: Check, module_outputs: Check) -> None:
    nodes = [node("Add", "t", "x", "y"), node("Neg", "x", "t")]
    module = convert(build(nodes, {"x": X}, ["y"])).module
    np.testing.assert_array_equal(module_outputs(module, {"x": X})["y"], 0 * X)


def test_a_long_chain_is_no_problem(build: Check) -> None:
    count = 3000
    nodes = [node("Neg", f"t{i}" if i else "x", f"t{i + 1}") for i in range(count)]
    module = import_module(build(nodes[::-1], {"x": X}, [f"t{count}"]))
    assert len(module.functions["infer"].nodes()) == count + 1


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (
            [node("Add", "x", "b", "a"), node("Relu", "a", "b"), node("Abs", "b", "y")],
            "own",
        ),
        ([node("Add", "y", "x", "y")], "own output"),
        ([node("MatMul", "x", "lost", "y")], "lost"),
        ([node("Abs", "x", "y"), node("Neg", "x", "y")], "made twice"),
        ([node("Abs", "x", "x"), node("Neg", "x", "y")], "made twice"),
        ([node("Abs", "x", "z")], "nothing makes the output 'y'"),
    ],
    ids=["cycle", "self", "undefined", "double", "shadow", "no output"],
)
def test_a_graph_that_cannot_be_is_refused(nodes: Any, text: str, build: Check) -> None:
    with pytest.raises(ModelFormatError, match=text):
        convert(build(nodes, {"x": X}, ["y"]))


def test_an_input_may_be_an_output(build: Check, module_outputs: Check) -> None:
    model = build([node("Abs", "x", "y")], {"x": X}, ["y", "x"])
    outputs = module_outputs(convert(model).module, {"x": X})
    np.testing.assert_array_equal(outputs["x"], X)


def test_an_initializer_may_be_listed_as_input(
    simple: onnx.ModelProto, module_outputs: Check
) -> None:
    simple.graph.input.append(
        helper.make_tensor_value_info("w", TensorProto.FLOAT, [2])
    )
    module = convert(simple).module
    assert [v.node.label for v in module.functions["infer"].inputs] == ["x"]


def test_parameters_keep_their_names_and_integers_are_constants(build: Check) -> None:
    nodes = [node("Add", "x", "w", "t"), node("Gather", "t", "i", "y")]
    weights = {"w": X, "i": np.array([1]), "unread": X}
    module = import_module(build(nodes, {"x": X}, ["y"], weights=weights))
    assert {k: v.role for k, v in module.variables.items()} == {"w": Role.PARAMETER}


def test_running_statistics_are_told_from_parameters(build: Check) -> None:
    names = ("gamma", "beta", "mean", "var")
    nodes = [
        helper.make_node("Identity", ["var"], ["alias"]),
        node("BatchNormalization", "x", "gamma", "beta", "mean", "alias", "y"),
    ]
    weights = dict.fromkeys(names, X)
    module = import_module(
        build(nodes, {"x": np.ones((1, 2), "f4")}, ["y"], weights=weights)
    )
    roles = {key: info.role for key, info in module.variables.items()}
    assert roles == dict(
        zip(names, [Role.PARAMETER] * 2 + [Role.STATISTIC] * 2, strict=True)
    )


def test_an_alias_of_a_parameter_is_the_parameter(build: Check) -> None:
    nodes = [
        helper.make_node("Identity", ["w"], ["tied"]),
        node("Add", "x", "w", "t"),
        node("Mul", "t", "tied", "y"),
    ]
    module = import_module(build(nodes, {"x": X}, ["y"], weights={"w": X}))
    assert list(module.variables) == ["w"]


def test_metadata_is_kept(simple: onnx.ModelProto) -> None:
    helper.set_model_props(simple, {"author": "someone"})
    metadata = convert_module(simple).module.metadata
    assert metadata["author"] == "someone"
    assert metadata["edgewise.onnx.opset"] == "17"


def test_functions_of_the_model_are_inlined(
    build: Check, module_outputs: Check
) -> None:
    model = build([node("Twice", "x", "y", domain="local")], {"x": X}, ["y"])
    opsets = [helper.make_opsetid("", 17)]
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    twice = helper.make_function("local", "Twice", ["a"], ["b"], body, opsets)
    model.functions.append(twice)
    model.opset_import.append(helper.make_opsetid("local", 1))
    module = convert(model).module
    np.testing.assert_array_equal(module_outputs(module, {"x": X})["y"], 2 * X)


def test_without_onnx_the_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['onnx'] = None\n"
        "import edgewise as ew\n"
        "try: ew.convert('m.onnx')\n"
        "except ew.EdgewiseError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert "pip install 'edgewise[convert]'" in done.stdout
