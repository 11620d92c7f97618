"""Strings, sequences, optionals and narrow numbers, through a session and out of it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from edgewise import ops
from edgewise.dims import symbol
from edgewise.errors import DTypeError, KernelError, ShapeError
from edgewise.format.read import read_bytes
from edgewise.format.write import write_bytes
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Value, constant, input_value
from edgewise.ir.module import Module
from edgewise.ir.parse import parse_module
from edgewise.ir.text import module_text
from edgewise.ir.verify import verify_module
from edgewise.model import Model
from edgewise.runtime.session import Session
from edgewise.types import (
    DType,
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
)

N, K = symbol("N"), symbol("k")
I64 = TensorType(DType.I64, ())
TEXTS = TensorType(DType.STRING, (N,))
LIST = SequenceType(TensorType(DType.F32, (N, 2)))
MAYBE = OptionalType(LIST)


def session(
    inputs: tuple[Value, ...], outputs: tuple[Value, ...], *binders: Value
) -> Session:
    names = tuple(f"y{index}" for index in range(len(outputs)))
    made = Module({"infer": Graph(inputs, outputs, names, {}, binders)}, {})
    verify_module(made)
    text, arrays = module_text(made)
    assert module_text(parse_module(text, arrays)).text == text
    back = read_bytes(write_bytes(made))
    assert module_text(back).text == text
    return Session(Model(back))


def floats(*rows: int) -> list[Any]:
    return [np.full((n, 2), n, np.float32) for n in rows]


def test_strings_pass_as_object_arrays() -> None:
    x = input_value("x", TEXTS)
    more = constant(np.asarray(["ä", "", "a\0b"], object))
    joined = ops.Concat(0)(x, more)
    picked = ops.Gather(0)(joined, constant(np.asarray([0, -1])))
    folded = ops.Reshape((1, 2))(picked)
    same = ops.Equal()(joined, joined)
    with session((x,), (joined, folded, same, more, x)) as running:
        for given in (
            ["b", "c"],
            np.asarray(["b", "c"]),
            np.asarray(["b", "c"], object),
        ):
            got = running.run({"x": given})
            assert got["y0"].dtype == object
            assert got["y0"].tolist() == ["b", "c", "ä", "", "a\0b"]
            assert got["y1"].tolist() == [["b", "a\0b"]]
            assert got["y2"].all()
            got["y3"][0] = got["y4"][0] = "mine"
        assert running.run({"x": []})["y0"].tolist() == ["ä", "", "a\0b"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (np.asarray([1, 2]), DTypeError, "want an array of strings"),
        (np.asarray(["a", 1], object), DTypeError, "got int"),
        (np.asarray([b"a"], object), DTypeError, "got bytes"),
        (np.asarray([b"a"]), DTypeError, "decode them first"),
        ([["a"]], ShapeError, "want string"),
        (None, DTypeError, "NoneType"),
    ],
)
def test_what_is_no_array_of_strings_is_refused(
    given: Any, error: type[Exception], message: str
) -> None:
    x = input_value("x", TEXTS)
    with session((x,), (x,)) as running, pytest.raises(error, match=message):
        running.run({"x": given})


def test_outputs_of_strings_can_be_written_to_the_callers_array() -> None:
    x = input_value("x", TEXTS)
    y = ops.Concat(0)(x, x)
    out = np.empty(4, object)
    with session((x,), (y,)) as running:
        assert running.run({"x": ["a", "b"]}, out={"y0": out})["y0"] is out
    assert out.tolist() == ["a", "b", "a", "b"]


def test_sequences_come_in_and_go_out_as_lists() -> None:
    s, i = input_value("s", LIST), input_value("i", I64)
    at = ops.SequenceAt((K, 2))(s, i)
    total = ops.Add()(at, constant(np.float32(1)))
    longer = ops.SequenceInsert()(s, total, i)
    shorter = ops.SequenceErase()(longer)
    count = ops.SequenceLength()(longer)
    outputs = (longer, shorter, count, total, s)
    with session((s, i), outputs, at) as running:
        for rows, place in (((1, 3), 0), ((2,), -1), ((0, 0, 4), 2)):
            given = floats(*rows)
            got = running.run({"s": tuple(given), "i": np.asarray(place)})
            want = [*given]
            want.insert(place % len(rows) if place >= 0 else place, given[place] + 1)
            assert [x.tolist() for x in got["y0"]] == [x.tolist() for x in want]
            assert len(got["y1"]) == len(rows)
            assert got["y2"] == len(rows) + 1
            assert not any(np.may_share_memory(a, b) for a in got["y4"] for b in given)
        with pytest.raises(KernelError, match="out of range"):
            running.run({"s": [], "i": np.asarray(0)})


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (np.zeros((2, 2), "f4"), DTypeError, "want a list"),
        ([np.zeros((1, 3), "f4")], ShapeError, r"s\[0\]"),
        ([np.zeros((1, 2), "f4"), np.zeros((1, 2))], DTypeError, r"s\[1\]"),
        ([np.zeros(2, "f4")], ShapeError, r"s\[0\]"),
        ({"a": 1}, DTypeError, "want a list"),
    ],
)
def test_what_is_no_such_sequence_is_refused(
    given: Any, error: type[Exception], message: str
) -> None:
    s = input_value("s", LIST)
    with session((s,), (s,)) as running, pytest.raises(error, match=message):
        running.run({"s": given})


def test_a_sequence_of_any_shapes_is_split_and_joined() -> None:
    x, n = input_value("x", TensorType(DType.F32, (N, 3))), input_value("n", I64)
    parts = ops.SplitToSequence(0)(x, n)
    rows = ops.SplitToSequence(0, keepdims=False)(x)
    both = ops.SequenceInsert()(parts, input_value("y", TensorType(DType.F32, (1,))))
    assert both.kind == SequenceType(Unranked(DType.F32))
    joined = ops.ConcatFromSequence(0, False, (symbol("a"), 3))(parts)
    stacked = ops.ConcatFromSequence(1, True, (symbol("b"), symbol("c")))(rows)
    y = both.node.inputs[1]
    assert y is not None
    outputs = (both, joined, stacked)
    with session((x, n, y), outputs, joined, stacked) as running:
        data = np.arange(15, dtype=np.float32).reshape(5, 3)
        feed = {"x": data, "n": np.asarray(2), "y": np.ones(1, "f4")}
        got = running.run(feed)
        assert [p.shape for p in got["y0"]] == [(2, 3), (2, 3), (1, 3), (1,)]
        assert np.array_equal(got["y1"], data)
        assert np.array_equal(got["y2"], data.T)
        with pytest.raises(KernelError):
            running.run(feed | {"n": np.asarray(0)})


def test_an_optional_is_none_or_what_it_holds() -> None:
    o = input_value("o", MAYBE)
    has = ops.OptionalHasElement()(o)
    with session((o,), (o, has)) as running:
        got = running.run({"o": None})
        assert got["y0"] is None
        assert not got["y1"]
        got = running.run({"o": floats(1)})
        assert got["y0"][0].tolist() == [[1, 1]]
        assert got["y1"]
        with pytest.raises(DTypeError, match="want a list"):
            running.run({"o": 3})
    assert Model(running._module).inputs[0].form == "optional sequence"


def test_taking_what_is_not_there_is_an_error() -> None:
    x = input_value("x", OptionalType(TensorType(DType.F32, (N,))))
    y = ops.OptionalGetElement.giving((TensorType(DType.F32, (K,)),))(x)
    twice = ops.Add()(y, y)
    none = ops.Optional.giving((OptionalType(TensorType(DType.F32, (2,))),))()
    with session((x,), (twice, none), y) as running:
        got = running.run({"x": np.ones(3, "f4")})
        assert got["y0"].tolist() == [2, 2, 2]
        assert got["y1"] is None
        with pytest.raises(ShapeError, match="empty optional"):
            running.run({"x": None})


def test_a_container_cannot_be_written_to_an_array() -> None:
    s = input_value("s", LIST)
    with session((s,), (s,)) as running, pytest.raises(DTypeError, match="no tensor"):
        running.run({"s": []}, out={"y0": np.zeros(1)})


def test_an_op_of_tensors_refuses_a_sequence() -> None:
    s = input_value("s", LIST)
    with pytest.raises(DTypeError, match="relu: got sequence"):
        ops.Relu()(s)
    with pytest.raises(DTypeError, match="want a tensor"):
        s.type  # noqa: B018


NARROW = {
    DType.BF16: ml_dtypes.bfloat16,
    DType.F16: np.float16,
    DType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    DType.F8E5M2: ml_dtypes.float8_e5m2,
    DType.I4: ml_dtypes.int4,
    DType.U4: ml_dtypes.uint4,
    DType.I2: ml_dtypes.int2,
}


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.value)
def test_narrow_numbers_are_computed_with_and_given_back(dtype: DType) -> None:
    kind = NARROW[dtype]
    x = input_value("x", TensorType(dtype, (N,)))
    y = ops.Concat(0)(x, constant(np.asarray([1, 0], kind)))
    z = ops.Cast("f32")(y)
    computed = ops.Add()(y, y)
    with session((x,), (y, z, computed)) as running:
        given = np.asarray([0, 1], kind)
        got = running.run({"x": given})
        assert got["y0"].dtype == kind
        assert got["y0"].nbytes == 4 * np.dtype(kind).itemsize
        assert got["y1"].tolist() == [0, 1, 1, 0]
        want = (got["y1"] * 2).astype(kind)
        assert got["y2"].tobytes() == want.tobytes()
        assert running.run({"x": [0, 1]})["y0"].tobytes() == got["y0"].tobytes()


def test_functions_that_numpy_lacks_for_bfloat16_go_through_float32() -> None:
    x = input_value("x", TensorType(DType.BF16, (4,)))
    outputs = (ops.Erf()(x), ops.Softmax(0)(x), ops.ReduceMean((0,), True)(x))
    data = np.asarray([-1, 0.5, 2, np.nan], ml_dtypes.bfloat16)
    names = ("a", "b", "c")
    made = Graph((x,), outputs, names)
    got, _ = evaluate(made, {"x": data}, {})
    wide = input_value("x", TensorType(DType.F32, (4,)))
    outputs = (ops.Erf()(wide), ops.Softmax(0)(wide), ops.ReduceMean((0,), True)(wide))
    want, _ = evaluate(Graph((wide,), outputs, names), {"x": data.astype("f4")}, {})
    for name in names:
        assert got[name].dtype == ml_dtypes.bfloat16
        narrow = want[name].astype(ml_dtypes.bfloat16)
        assert got[name].tobytes() == narrow.tobytes()
