"""Tensors of ONNX files, inside and beside them: nothing they say is believed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewise.convert import convert
from edgewise.errors import ModelFormatError

Check = Callable[..., Any]
X = np.array([1.0, -2.0], "f4")


def node(op: str, *names: str, **attributes: Any) -> onnx.NodeProto:
    *inputs, output = names
    return helper.make_node(op, inputs, [output], name=output, **attributes)


@pytest.fixture
def simple(build: Check) -> onnx.ModelProto:
    model: onnx.ModelProto = build(
        [node("Add", "x", "w", "y")], {"x": X}, ["y"], weights={"w": X}
    )
    return model


def spoil(model: onnx.ModelProto, **fields: Any) -> onnx.ModelProto:
    tensor = model.graph.initializer[0]
    for name, value in fields.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    return model


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"dims": [-1]}, "negative"),
        ({"dims": [4]}, "8 bytes"),
        ({"dims": [1 << 20, 1 << 40]}, "no memory holds"),
        ({"data_type": 77}, "type 77"),
        ({"data_type": 0}, "type 0"),
        ({"raw_data": b"123"}, "3 bytes"),
        ({"name": ""}, "empty"),
    ],
)
def test_a_tensor_that_contradicts_itself_is_refused(
    fields: Any, text: str, simple: onnx.ModelProto
) -> None:
    with pytest.raises(ModelFormatError, match=text):
        convert(spoil(simple, **fields))


def test_sizes_without_data_are_refused(simple: onnx.ModelProto) -> None:
    simple.graph.initializer[0].ClearField("raw_data")
    with pytest.raises(ModelFormatError, match="holds 0 bytes"):
        convert(spoil(simple, dims=[1 << 20, 1 << 16]))


def test_two_initializers_of_one_name_are_refused(simple: onnx.ModelProto) -> None:
    simple.graph.initializer.append(simple.graph.initializer[0])
    with pytest.raises(ModelFormatError, match="double"):
        convert(simple)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "bool"])
def test_element_types_are_kept(
    dtype: str, build: Check, module_outputs: Check
) -> None:
    array = np.array([0, 1, 1]).astype(dtype)
    model = build([node("Identity", "w", "y")], {}, ["y"], weights={"w": array})
    y = module_outputs(convert(model).module, {})["y"]
    assert y.dtype == array.dtype
    np.testing.assert_array_equal(y, array)


def test_typed_fields_hold_tensors_too(build: Check, module_outputs: Check) -> None:
    model = build([node("Add", "x", "w", "y")], {"x": X}, ["y"])
    model.graph.initializer.append(
        helper.make_tensor("w", TensorProto.FLOAT, [2], [0.5, 1.5])
    )
    y = module_outputs(convert(model).module, {"x": X})["y"]
    np.testing.assert_array_equal(y, X + np.array([0.5, 1.5], "f4"))


# External data


def external(
    folder: Path, build: Check, location: str, offset: int = 0, length: int = 8
) -> Path:
    model = build([node("Add", "x", "w", "y")], {"x": X}, ["y"], weights={"w": X})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["data.bin", "./data.bin", "sub/../data.bin"])
def test_external_data_is_read(
    location: str, tmp_path: Path, build: Check, module_outputs: Check
) -> None:
    np.array([9, 5, 6], "f4").tofile(tmp_path / "data.bin")
    (tmp_path / "sub").mkdir()
    module = convert(external(tmp_path, build, location, offset=4)).module
    y = module_outputs(module, {"x": X})["y"]
    np.testing.assert_array_equal(y, X + np.array([5, 6], "f4"))


@pytest.mark.parametrize(
    "location", ["../secret.bin", "sub/../../secret.bin", "", "link"]
)
def test_external_data_outside_the_folder_is_refused(
    location: str, tmp_path: Path, build: Check
) -> None:
    X.tofile(tmp_path / "secret.bin")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to("../secret.bin")
    with pytest.raises(ModelFormatError, match="outside the model's folder"):
        convert(external(folder, build, location))


def test_an_absolute_location_is_refused(tmp_path: Path, build: Check) -> None:
    X.tofile(tmp_path / "secret.bin")
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(ModelFormatError, match="outside"):
        convert(external(folder, build, str(tmp_path / "secret.bin")))


@pytest.mark.parametrize(
    ("offset", "length"), [(4, 8), (2**64 - 8, 16), (-8, 8), (0, -1), (0, 4)]
)
def test_an_external_range_that_does_not_fit_is_refused(
    offset: int, length: int, tmp_path: Path, build: Check
) -> None:
    X.tofile(tmp_path / "data.bin")
    with pytest.raises(ModelFormatError, match="bytes"):
        convert(external(tmp_path, build, "data.bin", offset, length))


def test_external_data_needs_a_path(tmp_path: Path, build: Check) -> None:
    X.tofile(tmp_path / "data.bin")
    path = external(tmp_path, build, "data.bin")
    with pytest.raises(ModelFormatError, match="path"):
        convert(path.read_bytes())


def test_a_missing_external_file_is_named(tmp_path: Path, build: Check) -> None:
    with pytest.raises(ModelFormatError, match=r"data\.bin"):
        convert(external(tmp_path, build, "data.bin"))


def test_nothing_external_is_needed_for_nothing(
    tmp_path: Path, build: Check, module_outputs: Check
) -> None:
    (tmp_path / "data.bin").write_bytes(b"")
    model = build([node("Concat", "x", "w", "y", axis=0)], {"x": X}, ["y"])
    empty = numpy_helper.from_array(np.zeros(0, "f4"), "w")
    empty.ClearField("raw_data")
    empty.data_location = TensorProto.EXTERNAL
    empty.external_data.add(key="location", value="data.bin")
    model.graph.initializer.append(empty)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    np.testing.assert_array_equal(
        module_outputs(convert(path).module, {"x": X})["y"], X
    )
