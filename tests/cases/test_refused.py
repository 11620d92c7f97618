"""Models that broke other runtimes, and have to be refused here: one error, in time.

Each test names the public threads that its case comes from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.errors import (
    DTypeError,
    EdgewiseError,
    KernelError,
    ModelFormatError,
    ShapeError,
    UnsupportedOpError,
)

Arrays = dict[str, Any]


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(
    nodes: list[onnx.NodeProto],
    feed: Arrays,
    weights: Arrays | None = None,
    shapes: dict[str, list[Any]] | None = None,
) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            (shapes or {}).get(name, array.shape),
        )
        for name, array in feed.items()
    ]
    tensors = [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    outputs = [onnx.ValueInfoProto(name="y")]
    graph = helper.make_graph(nodes, "case", infos, outputs, tensors)
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run(made: onnx.ModelProto, feed: Arrays) -> Any:
    with ew.Session(ew.convert(made)) as session:
        return session.run(feed)["y"]


X = np.ones((1, 4, 6, 6), "f4")


def test_a_circle_of_nodes() -> None:
    """microsoft/onnxruntime#4585, onnx/onnx#7815: a sort that waits for ever."""
    nodes = [node("Add", "x b", "a"), node("Relu", "a", "b"), node("Abs", "b", "y")]
    with pytest.raises(ModelFormatError, match="waits for its own output"):
        ew.convert(model(nodes, {"x": X}))


def test_a_value_that_nothing_makes_is_named() -> None:
    """microsoft/onnxruntime#4349, alibaba/MNN#4795: a null that is followed."""
    with pytest.raises(ModelFormatError, match="'lost'"):
        ew.convert(model([node("Add", "x lost", "y")], {"x": X}))


def test_a_weight_of_negative_size() -> None:
    """sonos/tract#2795, onnx/onnx#7580: -1 as an unsigned size is 16 EiB."""
    made = model([node("Add", "x w", "y")], {"x": X}, {"w": np.ones(1, "f4")})
    made.graph.initializer[0].dims[0] = -1
    with pytest.raises(ModelFormatError, match="negative"):
        ew.convert(made)


def test_a_sum_of_two_element_types() -> None:
    """microsoft/onnxruntime#4585: whole numbers read as fractions."""
    feed = {"x": np.ones(2, "f4"), "i": np.ones(2, "i8")}
    with pytest.raises(DTypeError, match="equal element types"):
        ew.convert(model([node("Add", "x i", "y")], feed))


@pytest.mark.parametrize("groups", [0, -3, 3, 1 << 40])
def test_convolution_groups_that_do_not_divide(groups: int) -> None:
    """alibaba/MNN#4797, onnx/tensorflow-onnx#2084: division by zero groups."""
    weights = {"w": np.ones((4, 4, 3, 3), "f4")}
    with pytest.raises(EdgewiseError, match="Conv"):
        run(
            model([node("Conv", "x w", "y", group=groups)], {"x": X}, weights), {"x": X}
        )


@pytest.mark.parametrize(
    "axes", [[0, 0, 1, 2], [0, 1, 2, 7], [0, 1], [-1, 0, 1, 2], [1 << 62, 0, 1, 2]]
)
def test_what_is_no_permutation(axes: list[int]) -> None:
    """microsoft/onnxruntime#23258: places that repeat read what is not there."""
    with pytest.raises(EdgewiseError, match="Transpose"):
        run(model([node("Transpose", "x", "y", perm=axes)], {"x": X}), {"x": X})


@pytest.mark.parametrize("index", [4, -5, 1 << 40, -(1 << 63)])
def test_an_index_out_of_range(index: int) -> None:
    """microsoft/onnxruntime#25251, apache/tvm#20297: a token that is in no table."""
    feed = {"x": np.ones((4, 2), "f4"), "i": np.array([0, index])}
    made = model([node("Gather", "x i", "y")], feed)
    with pytest.raises(KernelError, match="index is out of range"):
        run(made, feed)


@pytest.mark.parametrize("width", [6, 100, 1 << 40])
def test_a_reflection_wider_than_the_image(width: int) -> None:
    """microsoft/onnxruntime#27652, onnx/onnx#7467: memory that is not ours.

    numpy bounces on; others refuse.  Either will do, anything else will not.
    """
    pads = np.array([0, 0, width, 0, 0, 0, 0, 0])
    made = model([node("Pad", "x p", "y", mode="reflect")], {"x": X}, {"p": pads})
    try:
        got = run(made, {"x": X})
    except EdgewiseError as error:
        assert "pad" in str(error).lower()  # noqa: PT017 - both may happen
    else:
        full = [(0, 0), (0, 0), (width, 0), (0, 0)]
        np.testing.assert_array_equal(got, np.pad(X, full, "reflect"))


def test_a_batch_that_was_frozen_into_a_reshape_is_told_with_its_node() -> None:
    """microsoft/onnxruntime#6424, tensorflow/tensorflow#33014."""
    nodes = [node("Reshape", "x to", "y", name="flatten")]
    weights = {"to": np.array([1, 16])}
    feed = {"x": np.ones((2, 16), "f4")}
    made = model(nodes, feed, weights, {"x": ["N", 16]})
    with pytest.raises(ShapeError, match=r"flatten|reshape"):
        run(made, feed)


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", ["i4", "i8", "u1"])
def test_a_division_of_whole_numbers_by_zero(op: str, dtype: str) -> None:
    """apache/tvm#19541, microsoft/onnxruntime#16998: the process dies of SIGFPE."""
    feed = {"x": np.array([7, 1], dtype), "d": np.array([2, 0], dtype)}
    with pytest.raises(KernelError, match="division by zero"):
        run(model([node(op, "x d", "y")], feed), feed)


def test_a_kernel_larger_than_the_image() -> None:
    """alibaba/MNN#3628, microsoft/onnxruntime#9194: a height of -1."""
    weights = {"w": np.ones((2, 4, 9, 9), "f4")}
    made = model([node("Conv", "x w", "y")], {"x": X}, weights, {"x": [1, 4, "H", "W"]})
    with pytest.raises(ShapeError, match="window"):
        run(made, {"x": X})


def test_a_kernel_of_another_rank() -> None:
    """onnx/onnx#6180, alibaba/MNN#4796: a shape read past its end."""
    weights = {"w": np.ones((2, 4, 3), "f4")}
    with pytest.raises(EdgewiseError, match="Conv"):
        ew.convert(model([node("Conv", "x w", "y")], {"x": X}, weights))


@pytest.mark.parametrize("code", [9999, 77, 0, -1])
def test_an_element_type_that_is_none(code: int) -> None:
    """microsoft/onnxruntime#4585: a table read past its end."""
    made = model([node("Relu", "x", "y")], {"x": X})
    made.graph.input[0].type.tensor_type.elem_type = code
    with pytest.raises(ModelFormatError, match=f"element type {code}"):
        ew.convert(made)


def test_a_version_of_the_future_is_told_with_ours() -> None:
    """apache/tvm#18698: another version's meaning, silently."""
    made = model([node("Relu", "x", "y")], {"x": X})
    made.opset_import[0].version = 999
    with pytest.raises(
        ModelFormatError, match=r"operator set 999; edgewise reads 1 to"
    ):
        ew.convert(made)


def test_all_unknown_operators_are_told_at_once() -> None:
    """apache/tvm#14647: one export after another, one operator a time."""
    nodes = [node("Quux", "x", "a", name="first"), node("Corge", "a", "y")]
    with pytest.raises(UnsupportedOpError, match=r"Quux.*first.*Corge"):
        ew.convert(model(nodes, {"x": X}))


@pytest.mark.parametrize("shape", [(1, 4, 6), (1, 4, 7, 6), (0, 4, 6, 6), ()])
def test_a_feed_of_another_shape_is_told_with_the_input(shape: tuple[int, ...]) -> None:
    """tensorflow/tensorflow#23940, alibaba/MNN#2203."""
    made = model([node("Relu", "pixels", "y")], {"pixels": X})
    with pytest.raises(ShapeError, match="pixels"):
        run(made, {"pixels": np.ones(shape, "f4")})


@pytest.mark.parametrize("index", [4, -1, 1 << 30, 1 << 62])
def test_a_sparse_weight_whose_index_lies_outside(index: int) -> None:
    """microsoft/onnxruntime#27699 and #27950: a write wherever the file says."""
    made = model([node("Add", "x w", "y")], {"x": np.ones(4, "f4")})
    sparse = made.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([5, 6], "f4"), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1, index])))
    with pytest.raises(ModelFormatError, match="beyond its sizes"):
        ew.convert(made)


def test_a_reshape_that_wants_both_zero_and_the_rest() -> None:
    """onnx/onnx#4550, robertknight/rten#1355: 0 / 0 for the missing size."""
    weights = {"to": np.array([0, -1])}
    made = model(
        [node("Reshape", "x to", "y", allowzero=1)],
        {"x": np.ones((0, 3), "f4")},
        weights,
    )
    with pytest.raises(EdgewiseError, match="Reshape"):
        run(made, {"x": np.ones((0, 3), "f4")})


def test_an_output_of_a_tensor_that_is_cut_short() -> None:
    """microsoft/onnxruntime#27547, alibaba/MNN#4823: copied by its declared length."""
    made = model([node("Add", "x w", "y")], {"x": X}, {"w": np.ones(1, "f4")})
    weight = made.graph.initializer[0]
    weight.CopyFrom(
        TensorProto(name="w", data_type=1, dims=[1 << 16, 1 << 20], raw_data=bytes(4))
    )
    with pytest.raises(ModelFormatError, match="holds 4 bytes"):
        ew.convert(made)
