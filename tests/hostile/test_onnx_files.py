"""ONNX files that are damaged, lie, or are made to do harm: one error, nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hostile_onnx import FLOAT, added, refuse, relu
from onnx import TensorProto, helper

from edgewise.convert import convert, screen, wire
from edgewise.errors import EdgewiseError
from edgewise.runtime.session import Session

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
