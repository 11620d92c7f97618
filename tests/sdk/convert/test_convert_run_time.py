"""Shapes, ranges, axes and counts that come as inputs: as onnxruntime has them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from edgewise.convert import convert, convert_module
from edgewise.errors import EdgewiseError, ShapeError, UnsupportedOpError
from edgewise.ops.shape import Slice
from edgewise.runtime.session import Session

Check = Callable[..., Any]


def i64(*numbers: int) -> Any:
    return np.array(numbers, "i8")


def scalar(number: Any, dtype: str = "i8") -> Any:
    return np.array(number, dtype)


@pytest.fixture
def f32(rng: np.random.Generator) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("f4")

    return make


@pytest.mark.parametrize("target", [(6, 4), (0, -1), (-1,), (2, 0, 2, -1), (24, 1)])
def test_a_reshape(target: Any, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Reshape", f32(2, 3, 4), i64(*target))


def test_a_reshape_that_may_keep_zero(agree_on_node: Check) -> None:
    agree_on_node("Reshape", np.zeros((0, 3), "f4"), i64(3, 0), allowzero=1)


@pytest.mark.parametrize(
    "target", [(-1, -1), (5, -1), (-2, 12), (7,), (2, 3, 4, 0), (0, 0, 0, 0, -1)]
)
def test_a_reshape_to_nowhere_ends_the_run(
    target: Any, build: Check, f32: Check
) -> None:
    feeds = {"x": f32(2, 3, 4), "s": i64(*target)}
    model = build([helper.make_node("Reshape", ["x", "s"], ["y"])], feeds, ["y"])
    with Session(convert(model)) as session, pytest.raises(EdgewiseError):
        session.run(feeds)


def test_one_session_takes_many_targets(build: Check, f32: Check) -> None:
    x = f32(4, 6)
    feeds = {"x": x, "s": i64(0, 0)}
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    with Session(convert(build(nodes, feeds, ["y"]))) as session:
        for target in ((3, 8), (-1, 2), (4, 6), (24, 1), (3, 8)):
            got = session.run({"x": x, "s": i64(*target)})["y"]
            np.testing.assert_array_equal(got, np.maximum(x.reshape(target), 0))


def test_sizes_that_are_known_stay_known(build: Check, f32: Check) -> None:
    feeds = {"x": f32(2, 3, 4), "n": i64(6)}
    nodes = [
        helper.make_node("Concat", ["n", "rest"], ["s"], axis=0),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    made = build(nodes, feeds, ["y"], weights={"rest": i64(2, -1)})
    shape = convert(made).outputs[0].shape
    assert shape[1] == 2
    assert isinstance(shape[0], str)


def test_a_shape_of_unknown_length_is_refused(build: Check, f32: Check) -> None:
    feeds = {"x": f32(2, 3), "s": i64(3, 2)}
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="late")
    model = build([node], feeds, ["y"], shapes={"s": ["R"]})
    with pytest.raises(UnsupportedOpError, match=r"'late'.*how many"):
        convert(model)


@pytest.mark.parametrize(
    ("shape", "target"),
    [((3, 1), (2, 1, 4)), ((3, 1), (3, 1)), ((1,), (0,)), ((), (2, 3)), ((2, 3), (1,))],
)
def test_an_expansion(
    shape: Any, target: Any, agree_on_node: Check, f32: Check
) -> None:
    agree_on_node("Expand", f32(*shape), i64(*target))


@pytest.mark.parametrize("axes", [(1,), (-2, 0), (2, 0, 1)])
def test_squeezing_and_unsqueezing(axes: Any, agree_on_node: Check, f32: Check) -> None:
    shape = [1 if axis in axes or axis - 4 in axes else 3 for axis in range(4)]
    agree_on_node("Squeeze", f32(*shape), i64(*axes))
    agree_on_node("Unsqueeze", f32(3, 4), i64(*axes))


def test_a_scalar_gets_axes(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Unsqueeze", f32(), i64(1, 0))


def test_an_axis_that_is_not_of_size_1_ends_the_run(build: Check, f32: Check) -> None:
    feeds = {"x": f32(1, 3), "a": i64(1)}
    model = build([helper.make_node("Squeeze", ["x", "a"], ["y"])], feeds, ["y"])
    with Session(convert(model)) as session, pytest.raises(ShapeError):
        session.run(feeds)


FAR = 2**63 - 1
RANGES = [
    ((1, 0), (3, 4), (0, 1), (1, 1)),
    ((0,), (-1,), (1,), (1,)),
    ((20,), (0,), (0,), (-3,)),
    ((-1, 5), (-FAR - 1, 0), (0, 1), (-1, -2)),
    ((-100, 1), (100, FAR), (-2, -1), (2, 3)),
    ((3,), (1,), (0,), (1,)),
    ((0,), (5,), (0,), (-1,)),
]


FARTHEST = (-FAR - 1, -FAR, -5, -1, 1, 2, FAR - 1, FAR)


@pytest.mark.parametrize("step", FARTHEST)
def test_a_slice_of_farthest_numbers(step: int, build: Check) -> None:
    names = ["x", "start", "end", "axis", "step"]
    feeds = dict(zip(names, (np.arange(4.0), *map(i64, (0, 1, 0, step))), strict=True))
    model = build([helper.make_node("Slice", names, ["y"])], feeds, ["y"])
    with Session(convert(model)) as session:
        for start in FARTHEST:
            for end in FARTHEST:
                first, last = (n + 4 if n < 0 else n for n in (start, end))
                low, top = (0, 4) if step > 0 else (-1, 3)
                first, last = (min(max(first, 0), top), min(max(last, low), top))
                feeds |= {"start": i64(start), "end": i64(end)}
                got = session.run(feeds)["y"].tolist()
                assert got == list(range(first, last, step)), (start, end)


@pytest.mark.parametrize(
    "numbers",
    [
        (-FAR - 1, FAR, 2**62),
        (FAR, -FAR - 1, -FAR - 1),
        (-FAR - 1, FAR, FAR),
        (0, -10, -FAR - 1),
        (7, 8, FAR),
    ],
)
def test_a_range_of_farthest_numbers(numbers: Any, agree_on_node: Check) -> None:
    agree_on_node("Range", *map(scalar, numbers))


def test_a_range_whose_length_is_no_float(build: Check) -> None:
    step = 2.0**126  # four of which are no float
    numbers = zip("abc", (-3 * step, 3 * step, step), strict=True)
    feeds = {name: scalar(number, "f4") for name, number in numbers}
    model = build([helper.make_node("Range", [*feeds], ["y"])], feeds, ["y"])
    with Session(convert(model)) as session:
        got = session.run(feeds)["y"]
    np.testing.assert_array_equal(got, np.arange(-3, 3) * step)


@pytest.mark.parametrize("fixed", [(), (3,), (4,), (3, 4), (1, 3, 4), (2, 3, 4)])
@pytest.mark.parametrize("ranges", RANGES)
def test_a_slice(ranges: Any, fixed: Any, agree_on_node: Check, f32: Check) -> None:
    inputs = (i64(*part) for part in ranges)
    agree_on_node("Slice", f32(5, 7), *inputs, fixed=fixed)


def test_a_slice_with_known_axes_is_one_slice(build: Check, f32: Check) -> None:
    feeds = {"x": f32(5, 7), "s": i64(1), "e": i64(4)}
    node = helper.make_node("Slice", ["x", "s", "e", "a"], ["y"])
    model = build([node], feeds, ["y"], weights={"a": i64(1)})
    nodes = convert_module(model).module.functions["infer"].nodes()
    (op,) = (n.op for n in nodes if isinstance(n.op, Slice) and len(n.op.sizes) == 2)
    assert op.starts[0] == 0
    assert op.sizes[0] == 5


index = st.integers(-9, 9) | st.sampled_from([FAR, -FAR - 1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(index, index), min_size=2, max_size=2),
    st.sampled_from([(1, 2), (-1, 3), (-2, -1), (1, 1)]),
    st.booleans(),
)
def test_any_slice_has_the_elements_that_onnx_says(
    ends: Sequence[tuple[int, int]], steps: tuple[int, int], late: bool
) -> None:
    x = np.arange(30).reshape(5, 6)
    picked = (
        taken(size, *pair, step)
        for size, pair, step in zip(x.shape, ends, steps, strict=True)
    )
    feeds = {"x": x, "starts": i64(*(e[0] for e in ends))}
    feeds["ends"] = i64(*(e[1] for e in ends))
    if late:
        got = slicer(None).run(feeds | {"steps": i64(*steps)})["y"]
    else:
        got = slicer(steps).run(feeds)["y"]
    np.testing.assert_array_equal(got, x[np.ix_(*picked)])


def taken(size: int, start: int, end: int, step: int) -> Sequence[int]:
    """The indices of a slice, by the operator's text."""
    start, end = (i + size if i < 0 else i for i in (start, end))
    low, high = (0, size) if step > 0 else (-1, size - 1)
    start = min(max(start, 0), high)
    return np.arange(start, min(max(end, low), high), step)


@functools.cache
def slicer(steps: tuple[int, ...] | None) -> Session:
    """A session that slices; steps of its own, or as an input."""
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.INT64, ["N", 6]),
        helper.make_tensor_value_info("starts", onnx.TensorProto.INT64, [2]),
        helper.make_tensor_value_info("ends", onnx.TensorProto.INT64, [2]),
    ]
    weights = [onnx.numpy_helper.from_array(i64(0, 1), "axes")]
    if steps is None:
        inputs.append(
            helper.make_tensor_value_info("steps", onnx.TensorProto.INT64, [2])
        )
    else:
        weights.append(onnx.numpy_helper.from_array(i64(*steps), "steps"))
    node = helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])
    output = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph([node], "slicer", inputs, [output], weights)
    sets = [helper.make_opsetid("", 17)]
    return Session(convert(helper.make_model(graph, opset_imports=sets)))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("fixed", [(), (2,), (3,), (1,)])
def test_a_padding(mode: str, fixed: Any, agree_on_node: Check, f32: Check) -> None:
    value = scalar(1.5, "f4")
    pads, axes = i64(1, 2, 0, 1), i64(2, -3)
    agree_on_node(
        "Pad", f32(4, 3, 5), pads, value, axes, mode=mode, opset=18, fixed=fixed
    )


def test_a_padding_that_crops(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Pad", f32(4, 5), i64(-1, 2, 0, -3), scalar(-1, "f4"))


@pytest.mark.parametrize("sizes", [(2, 0, 3), (5, 0, 0)])
def test_a_split(sizes: Any, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("Split", f32(2, 5), i64(*sizes), axis=1, outputs=3)


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(0, 5, 1), (3, -4, -2), (2, 2, 1), (5, 0, 1), (-3, 9, 4)],
)
@pytest.mark.parametrize("dtype", ["i8", "i4", "f4", "f8"])
@pytest.mark.parametrize("fixed", [(), (0, 2), (0, 1)])
def test_a_range(
    start: int, end: int, step: int, dtype: str, fixed: Any, agree_on_node: Check
) -> None:
    ends = (scalar(number, dtype) for number in (start, end, step))
    agree_on_node("Range", *ends, fixed=fixed)


def test_a_range_of_fractions(agree_on_node: Check) -> None:
    agree_on_node("Range", *(scalar(x, "f4") for x in (0.5, 3.1, 0.25)))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_counts(count: int, agree_on_node: Check, f32: Check) -> None:
    agree_on_node("TopK", f32(3, 5), i64(count), outputs=2)
    agree_on_node("ConstantOfShape", i64(count, 2))
    agree_on_node("Tile", f32(3, 2), i64(count, 2))
    indices, values = i64(0, -1, 3), np.array([0, 1], "f4")
    if count:
        agree_on_node("OneHot", indices, scalar(count), values)


def test_a_negative_count_ends_the_run(build: Check, f32: Check) -> None:
    feeds = {"x": f32(3, 5), "k": i64(-1)}
    model = build([helper.make_node("TopK", ["x", "k"], ["y", "i"])], feeds, ["y"])
    with Session(convert(model)) as session, pytest.raises(ShapeError):
        session.run(feeds)


def test_what_follows_computes_with_the_sizes(build: Check, agree: Check) -> None:
    """Shape arithmetic goes on over sizes that a run read."""
    feeds = {"x": np.arange(24, dtype="f4"), "n": i64(4)}
    nodes = [
        helper.make_node("Concat", ["n", "open"], ["s"], axis=0),
        helper.make_node("Reshape", ["x", "s"], ["a"]),
        helper.make_node("Shape", ["a"], ["b"]),
        helper.make_node("Mul", ["b", "two"], ["c"]),
        helper.make_node("ConstantOfShape", ["c"], ["d"]),
        helper.make_node("Slice", ["d", "zero", "n"], ["y"]),
        helper.make_node("NonZero", ["a"], ["z"]),
        helper.make_node("Transpose", ["z"], ["t"]),
        helper.make_node("Shape", ["t"], ["u"]),
    ]
    weights = {"open": i64(-1), "two": i64(2), "zero": i64(0)}
    agree(build(nodes, feeds, ["y", "t", "u"], weights=weights), feeds)
