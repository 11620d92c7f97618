"""Variables in a coding: those that are right are read, damaged ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.hostile.tables import put, refuse

from edgewise.format._generated import schema
from edgewise.format.build import build
from edgewise.format.container import seal
from edgewise.format.flatten import flatten
from edgewise.format.read import read_bytes
from edgewise.ir.graph import Graph, variable_value
from edgewise.ir.module import Coding, Module, Role, VariableInfo
from edgewise.types import DType, TensorType

F32 = DType.F32


def coded(coding: Coding, data: bytes, /, **fields: object) -> bytes:
    """A file with a variable of [4, 8] in a coding, of those bytes."""
    weight = np.zeros((4, 8), np.float32)
    info = VariableInfo("w", TensorType(F32, (4, 8)), Role.PARAMETER, weight)
    graph = Graph((), (variable_value("w", info.type),), ("y",))
    code = schema.CODINGS.index(coding.name)
    fields = {"coding": code, "coded": True, "data": data, "segment": -1} | fields

    def change(model: schema.Model) -> None:
        put("tensors.0", **fields)(model)
        model.segments = ()

    flat = flatten(Module({"infer": graph}, {"w": info}))
    change(flat.model)
    return seal(build(flat.model, b"EDGW"))


def test_coded_variables_that_are_right_are_read() -> None:
    sparse = read_bytes(coded(Coding.SPARSE, b"\5\0\0\0" + bytes(8)))
    assert sparse.variables["w"].coding is Coding.SPARSE
    book = coded(Coding.CODEBOOK, b"\2\0" + bytes(8) + b"\xff" * 4)
    assert read_bytes(book).variables["w"].initial is not None
    read_bytes(coded(Coding.BINARY, bytes(16) + b"\xff" * 4))


@pytest.mark.parametrize(
    ("coding", "data", "reason"),
    [
        (Coding.SPARSE, b"", "cannot come of 0 bytes"),
        (Coding.SPARSE, b"\1\0\0", "not a bit for each of 32"),
        (Coding.SPARSE, b"\5\0\0\0" + bytes(7), "not the elements"),
        (Coding.SPARSE, b"\5\0\0\0" + bytes(12), "not the elements"),
        (Coding.CODEBOOK, b"\0\0" + bytes(4), "0 values"),
        (Coding.CODEBOOK, b"\1\1" + bytes(40), "257 values"),
        (Coding.CODEBOOK, b"\2\0" + bytes(8) + bytes(3), "no codebook of 2"),
        (Coding.CODEBOOK, b"\3\0" + bytes(12) + b"\xff" * 8, "has no value 3"),
        (Coding.BINARY, bytes(15), "not a bit|not the signs"),
        (Coding.BINARY, bytes(19), "not a bit"),
        (Coding.BINARY, bytes(21), "not the signs"),
        (Coding.PLAIN, bytes(128), "cannot be plain"),
    ],
)
def test_coded_variables_that_are_damaged_are_refused(
    coding: Coding, data: bytes, reason: str
) -> None:
    refuse(coded(coding, data), reason)


def test_a_coding_that_is_not_known_is_refused() -> None:
    refuse(coded(Coding.SPARSE, bytes(4), coding=9), "coding 9 is unknown")
