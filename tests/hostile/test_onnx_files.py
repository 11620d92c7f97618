"""ONNX files that are damaged, lie, or are made to do harm: one error, nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewise.convert import convert, screen, wire
from edgewise.errors import EdgewiseError, ModelFormatError
from edgewise.model import Model
from edgewise.runtime.session import Session

SLOWEST = 20.0  # seconds, on a busy machine
FLOAT, INT64, BOOL, STRING = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.STRING,
)
Nodes = list[onnx.NodeProto]


def model_of(
    nodes: Nodes, *weights: TensorProto, x: Any = (FLOAT, [2]), y: Any = None
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "hostile",
        [helper.make_tensor_value_info("x", *x)],
        [y or onnx.ValueInfoProto(name="y")],
        list(weights),
    )
    imports = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def relu() -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"], name="only")])


def added(weight: TensorProto) -> onnx.ModelProto:
    weight.name = "w"
    return model_of([helper.make_node("Add", ["x", "w"], ["y"])], weight)


def given_back(weight: TensorProto) -> Any:
    """What an initializer holds, by way of a run."""
    weight.name = "w"
    node = helper.make_node("Identity", ["w"], ["y"])
    with Session(convert(model_of([node], weight))) as session:
        return session.run({"x": np.zeros(2, "f4")})["y"]


def refuse(source: Any, reason: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ModelFormatError, match=reason) as caught:
        convert(source)
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - start < SLOWEST


# The bytes of a file


def message(tag: int, inside: bytes) -> bytes:
    """A field that holds ``inside``."""
    size, varint = len(inside), b""
    while size > 0x7F:
        size, varint = size >> 7, varint + bytes([0x80 | size & 0x7F])
    return bytes([tag << 3 | 2]) + varint + bytes([size]) + inside


@pytest.mark.parametrize("tag", [1, 5, 11, 13], ids=["node", "weight", "input", "info"])
def test_more_messages_than_any_model_has_are_counted_not_made(
    tag: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_FIELDS", 1000)
    graph = bytes([tag << 3 | 2, 0]) * 1000
    refuse(message(7, graph), "more than 1000 fields")


def test_messages_nested_without_end_are_refused() -> None:
    inside = b""
    for _ in range(200):  # a graph in an attribute of a node of a graph, and so on
        inside = message(1, message(5, message(6, inside)))
    refuse(message(7, inside), "nested")


def test_every_truncation_is_refused_or_read() -> None:
    whole = relu().SerializeToString()
    for size in range(len(whole)):
        try:
            convert(whole[:size])
        except EdgewiseError as error:
            assert str(error), size  # noqa: PT017 - both may happen


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", b"EDGW", b"\x7fELF" + bytes(99), b"\xff" * 99, b"\x3a\xff\xff\xff"],
    ids=repr,
)
def test_what_is_no_model_is_refused(data: bytes) -> None:
    refuse(data, ".")


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, "/dev/zero"):
        refuse(path, "no regular file")
    refuse(tmp_path / "absent.onnx", "cannot be read")
    refuse("zero\0byte.onnx", "cannot be read")


def test_files_larger_than_protobuf_takes_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 32)
    refuse(path, "external data")


def test_names_that_are_no_text_are_refused() -> None:
    data = relu().SerializeToString().replace(b"only", b"\xff\xfe\xff\xfe")
    refuse(data, "a name that is no text")


def test_names_without_end_are_refused() -> None:
    model = relu()
    model.graph.node[0].name = "n" * (screen.MAX_NAME + 1)
    refuse(model, f"name of {screen.MAX_NAME + 1} characters")


def test_errors_are_one_line_whatever_files_call_things() -> None:
    model = relu()
    model.graph.node[0].name, model.graph.node[0].op_type = "a\nb\x1b[31m", "Odd\r"
    with pytest.raises(EdgewiseError) as caught:
        convert(model)
    assert str(caught.value).isprintable()


def test_more_nodes_than_any_model_has_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(screen, "MAX_NODES", 100)
    model = relu()
    model.graph.node.extend([onnx.NodeProto(op_type="Relu")] * 100)
    refuse(model, "more than 100 nodes")


@pytest.mark.parametrize("version", [-1, 1 << 31, (1 << 63) - 1])
def test_versions_that_cannot_be_are_refused(version: int) -> None:
    model = relu()
    model.opset_import.append(helper.make_opsetid("com.example", version))
    refuse(model, "no version that can be")


# Tensors


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ([0, 1 << 62], "no memory holds"),
        ([1 << 31, 1 << 31, 1 << 31], "no memory holds"),
        ([1] * 65, "want at most 32"),
        ([-(1 << 63)], "none negative"),
        ([1 << 40], "holds 8 bytes"),
    ],
)
def test_sizes_are_held_against_the_data_first(dims: Any, reason: str) -> None:
    refuse(added(TensorProto(data_type=FLOAT, dims=dims, raw_data=bytes(8))), reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"data_type": FLOAT, "float_data": [1]}, "holds 4 bytes"),
        ({"data_type": FLOAT, "float_data": [1] * 9}, "holds 36 bytes"),
        ({"data_type": FLOAT, "int32_data": [1, 2]}, "holds 0 bytes"),
        ({"data_type": FLOAT, "float_data": [1, 2], "raw_data": b"12345678"}, "both"),
        ({"data_type": TensorProto.INT8, "int32_data": [1, 128]}, "-128 to 127"),
        ({"data_type": TensorProto.UINT8, "int32_data": [-1, 1]}, "0 to 255"),
        ({"data_type": TensorProto.FLOAT16, "int32_data": [1, 1 << 20]}, "0 to 65535"),
        ({"data_type": TensorProto.UINT32, "uint64_data": [1, 1 << 40]}, "u32"),
        ({"data_type": BOOL, "int32_data": [0, 2]}, "0 to 1"),
        ({"data_type": STRING, "string_data": [b"a"]}, "holds 1 texts"),
        ({"data_type": STRING, "string_data": [b"a", b"\xff"]}, "not UTF-8"),
        ({"data_type": TensorProto.COMPLEX64, "float_data": [1, 2]}, "holds 8 bytes"),
        ({"data_type": TensorProto.INT4, "int32_data": [1, 2]}, "holds 2 bytes"),
        ({"data_type": 9999, "raw_data": b"12345678"}, "element type 9999"),
        ({"data_type": FLOAT, "segment": TensorProto.Segment(begin=1)}, "segment"),
    ],
    ids=str,
)
def test_a_tensor_whose_parts_contradict_each_other_is_refused(
    fields: dict[str, Any], reason: str
) -> None:
    refuse(added(TensorProto(dims=[2], **fields)), reason)


@pytest.mark.parametrize(
    "array",
    [
        np.array([-8, 7, 0], "i1"),
        np.array([0, 65535], "u2"),
        np.array([1.5, -0.0, np.nan], "f2"),
        np.array([2**63, 1], "u8"),
        np.array([[True], [False]]),
        np.array([1 + 2j, -3j], "c8"),
        np.array(7, "i8"),
        np.zeros((0, 3), "f8"),
    ],
    ids=lambda a: str(a.dtype),
)
def test_listed_numbers_are_read_as_they_were_written(array: Any) -> None:
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    listed = helper.make_tensor("w", code, array.shape, array.reshape(-1))
    assert not listed.raw_data
    got = given_back(listed)
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
@pytest.mark.parametrize("raw", [True, False])
def test_packed_numbers_are_unpacked_as_onnx_does(name: str, raw: bool) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    values = np.array([0, 1, 1, 0, 1, 0, 1]).astype(dtype)
    code = helper.np_dtype_to_tensor_dtype(dtype)
    tensor = helper.make_tensor("w", code, [7], values, raw=raw)
    want = numpy_helper.to_array(tensor)
    np.testing.assert_array_equal(given_back(tensor), want)


def test_any_byte_but_zero_is_true() -> None:
    got = given_back(TensorProto(data_type=BOOL, dims=[3], raw_data=b"\x00\x01\x80"))
    assert got.view(np.uint8).tolist() == [0, 1, 1]


# Data in other files


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(np.array([1, 2], "f4").tobytes())
    (tmp_path / "secret.bin").write_bytes(b"secret!!")
    return folder


def external(folder: Path, **entries: object) -> Path:
    tensor = TensorProto(data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "m.onnx"
    path.write_bytes(added(tensor).SerializeToString())
    return path


def test_data_beside_the_model_is_read(beside: Path) -> None:
    with Session(convert(external(beside, location="w.bin"))) as session:
        got = session.run({"x": np.zeros(2, "f4")})["y"]
    assert got.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("../secret.bin", "outside the model's folder"),
        ("sub/../../secret.bin", "outside the model's folder"),
        ("/dev/zero", "outside the model's folder"),
        ("/etc/passwd", "outside the model's folder"),
        ("", "outside the model's folder"),
        (".", "not there"),
        ("absent.bin", "not there"),
        ("w.bin/x", "not there|names no file"),
        ("zero\0byte", "names no file"),
        ("n" * 5000, "names no file"),
    ],
    ids=lambda text: repr(text)[:24],
)
def test_places_that_are_not_a_file_in_the_folder_are_refused(
    location: str, reason: str, beside: Path
) -> None:
    refuse(external(beside, location=location), reason)


def test_links_out_of_the_folder_are_refused(beside: Path) -> None:
    (beside / "link.bin").symlink_to("../secret.bin")
    (beside / "folder").symlink_to("..")
    (beside / "round.bin").symlink_to("round.bin")
    os.mkfifo(beside / "pipe.bin")
    refuse(external(beside, location="link.bin"), "outside the model's folder")
    refuse(external(beside, location="folder/secret.bin"), "outside")
    refuse(external(beside, location="round.bin"), "names no file|not there")
    refuse(external(beside, location="pipe.bin"), "not there")


@pytest.mark.parametrize(
    ("offset", "length", "reason"),
    [
        (-8, 8, "of a file of 8"),
        (0, -1, "of a file of 8"),
        (4, 8, "of a file of 8"),
        (2**64 - 8, 16, "of a file of 8"),
        (2**63, 8, "of a file of 8"),
        (0, 4, "holds 4 bytes"),
        ("one", 8, "no numbers"),
        ("9" * 5000, 8, "no numbers"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_ranges_beyond_the_file_are_refused(
    offset: object, length: object, reason: str, beside: Path
) -> None:
    path = external(beside, location="w.bin", offset=offset, length=length)
    refuse(path, reason)


def test_models_in_memory_have_no_folder(beside: Path) -> None:
    refuse(external(beside, location="w.bin").read_bytes(), "convert from a path")


# Attributes


def spoilt(op: str, **fields: Any) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], name="n")
    node.attribute.append(onnx.AttributeProto(**fields))
    return model_of([node])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "alpha", "type": 2, "i": 1}, "want 'f'"),
        ({"name": "alpha", "type": 1, "floats": [1.0]}, "not of the type"),
        ({"name": "alpha", "type": 1, "f": 1.0, "i": 1}, "not of the type"),
        ({"name": "alpha", "type": 1}, "not of the type"),
        ({"name": "alpha", "type": 3, "s": b"x"}, "want 'f'"),
    ],
    ids=str,
)
def test_attributes_of_another_type_are_refused(fields: Any, reason: str) -> None:
    refuse(spoilt("LeakyRelu", **fields), reason)


def test_an_attribute_given_twice_is_refused() -> None:
    model = spoilt("LeakyRelu", name="alpha", type=1, f=0.1)
    attributes = model.graph.node[0].attribute
    attributes.append(attributes[0])
    refuse(model, "given twice")


def test_more_inputs_or_outputs_than_an_operator_has_are_refused() -> None:
    refuse(model_of([helper.make_node("Relu", ["x", "x"], ["y"])]), "at most 1")
    refuse(model_of([helper.make_node("Relu", ["x"], ["y", "z"])]), "at most 1")


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("name", ["kernel_shape", "strides", "pads", "dilations"])
@pytest.mark.parametrize("number", [0, -1, 1 << 31, (1 << 63) - 1, -(1 << 63)])
def test_windows_at_their_extremes_are_refused_or_made(
    op: str, name: str, number: int
) -> None:
    count = 4 if name == "pads" else 2
    attributes = {"kernel_shape": [2, 2], name: [number] * count}
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    try:
        made = convert(model_of([node], x=(FLOAT, [1, 2, 5, 5])))
    except EdgewiseError:
        return
    run(made, np.ones((1, 2, 5, 5), "f4"))


# Sizes that nobody has memory for


def run(model: Model, x: Any) -> None:
    with Session(model) as session:
        session.run({"x": x})


def constant(name: str, value: Any) -> onnx.NodeProto:
    array = numpy_helper.from_array(np.asarray(value))
    return helper.make_node("Constant", [], [name], value=array)


BIG = 1 << 40
BOMBS = {
    "ConstantOfShape": [[BIG]],
    "Range": [np.int64(0), np.int64(BIG), np.int64(1)],
    "Tile": ["x", [BIG]],
    "Expand": ["x", [BIG, 2]],
    "Pad": ["x", [BIG, 0]],
    "OneHot": [[1], np.int64(BIG), np.array([0, 1], "f4")],
    "Resize": ["x", "", np.array([1e12], "f4")],
}


@pytest.mark.parametrize("op", BOMBS)
@pytest.mark.parametrize("factor", [1, 1 << 20])
def test_bombs_are_refused_before_anything_is_allocated(op: str, factor: int) -> None:
    nodes, names = [], []
    for index, value in enumerate(BOMBS[op]):
        if isinstance(value, str):
            names.append(value)
            continue
        array = np.asarray(value)
        scaled = np.where(array >= BIG, array * float(factor), array)
        nodes.append(constant(f"c{index}", scaled.astype(array.dtype)))
        names.append(f"c{index}")
    nodes.append(helper.make_node(op, names, ["y"]))
    start = time.perf_counter()
    with pytest.raises(EdgewiseError, match=r"memory|too large|bytes at once"):
        run(convert(model_of(nodes)), np.ones(2, "f4"))
    assert time.perf_counter() - start < SLOWEST


@pytest.mark.parametrize("op", ["Mul", "Add", "Div"])
def test_arithmetic_on_sizes_does_not_grow_without_end(op: str) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s0"]), constant("three", [3, 3])]
    for i in range(60):
        nodes.append(helper.make_node(op, [f"s{i}", f"s{i}"], [f"t{i}"]))
        nodes.append(helper.make_node("Add", [f"t{i}", "three"], [f"s{i + 1}"]))
    nodes.append(helper.make_node("Expand", ["x", "s60"], ["y"]))
    start = time.perf_counter()
    try:
        run(convert(model_of(nodes, x=(FLOAT, ["N", "M"]))), np.ones((1, 1), "f4"))
    except EdgewiseError as error:
        assert str(error)  # noqa: PT017 - quotients stay small and are fine
    assert time.perf_counter() - start < SLOWEST


def test_a_vector_that_doubles_is_refused() -> None:
    nodes = [helper.make_node("Identity", ["x"], ["s0"])]
    nodes += [
        helper.make_node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0)
        for i in range(60)
    ]
    nodes.append(helper.make_node("Relu", ["s60"], ["y"]))
    refuse(model_of(nodes), "too large")
