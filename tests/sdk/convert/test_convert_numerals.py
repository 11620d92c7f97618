"""Casts to and from strings give what onnxruntime gives, or say what is no number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from edgewise.convert import convert
from edgewise.errors import DTypeError, UnsupportedOpError
from edgewise.runtime.session import Session

Check = Callable[..., Any]
STRING = TensorProto.STRING
FLOATS = [1.5, -2e-3, np.nan, np.inf, -np.inf, 1e10, 123456789, 0.1, 1 / 3, -0.0, 3]
TEXTS = {
    TensorProto.FLOAT: [
        "1.5",
        "-2e-3",
        "NaN",
        "INF",
        "-inf",
        "+inf",
        " 3",
        ".5",
        "1E8",
    ],
    TensorProto.DOUBLE: ["1.5", "5.", "nan", "infinity", "1e300"],
    TensorProto.FLOAT16: ["1.5", "-2e-3", "6E4"],
    TensorProto.INT64: ["7", " -7", "+5", "007", "1.5", str(-(2**63))],
    TensorProto.INT32: ["7", "-1.9", "-2147483648"],
    TensorProto.UINT8: ["0", "255"],
    TensorProto.BOOL: ["1", "0", "2", "-1"],
}


def cast(build: Check, x: Any, to: int) -> Any:
    node = helper.make_node("Cast", ["x"], ["y"], to=to)
    return build([node], {"x": x}, ["y"], shapes={"x": ["N"]})


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i1", "u8", "u1", "?"])
def test_numbers_as_texts(dtype: str, build: Check, agree: Check) -> None:
    with np.errstate(all="ignore"):
        numbers = FLOATS if dtype.startswith("f") else [0, 1, 100, 3]
        x = np.array(numbers).astype(dtype)
    agree(cast(build, x, STRING), {"x": x})


@pytest.mark.parametrize(("to", "given"), TEXTS.items())
def test_texts_as_numbers(
    to: int, given: list[str], build: Check, agree: Check
) -> None:
    x = np.array(given, object)
    agree(cast(build, x, to), {"x": x})


@pytest.mark.parametrize(
    ("to", "text"),
    [
        *(
            (TensorProto.FLOAT, text)
            for text in ("", "a", "1_0", "0x1", "1 2", "\u0661")
        ),
        *((TensorProto.INT64, text) for text in ("", "1e3", "nan", "9" * 5000)),
        (TensorProto.INT64, str(2**63)),
        (TensorProto.INT8, "128"),
        (TensorProto.UINT8, "-1"),
        (TensorProto.BOOL, "True"),
        (TensorProto.BOOL, "0.5"),
    ],
)
def test_what_is_no_number_ends_the_run(to: int, text: str, build: Check) -> None:
    x = np.array(["1", text], object)
    session = Session(convert(cast(build, x, to)))
    with pytest.raises(DTypeError, match="want a number of"):
        session.run({"x": x})


def test_narrow_floats_go_by_wide_ones(build: Check) -> None:
    x = np.array([1.5, -3], ml_dtypes.bfloat16)
    texts = Session(convert(cast(build, x, STRING))).run({"x": x})["y"]
    assert texts.tolist() == ["1.5", "-3"]
    back = Session(convert(cast(build, texts, TensorProto.BFLOAT16))).run({"x": texts})
    np.testing.assert_array_equal(back["y"], x)


def test_what_no_text_stands_for_is_refused_by_name(build: Check) -> None:
    x = np.array(["1"], object)
    with pytest.raises(UnsupportedOpError, match="casts string to i4; cast to i64"):
        convert(cast(build, x, TensorProto.INT4))


def test_texts_that_are_known_are_no_sizes(build: Check, agree: Check) -> None:
    words = {"a": np.array(["x", "y"], object), "b": np.array(["x", "z"], object)}
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["all"], axis=0),
        helper.make_node("Equal", ["all", "all"], ["same"]),
        helper.make_node("Equal", ["a", "b"], ["equal"]),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["a", "s"], ["picked"]),
    ]
    feeds = {"x": np.zeros((1, 0), "f4")}
    outputs = ["same", "equal", "picked"]
    shapes = {"x": "NM"}
    agree(build(nodes, feeds, outputs, weights=words, shapes=shapes, opset=19), feeds)
