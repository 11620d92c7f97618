"""Parameters that come as inputs of open length: the operator says how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from edgewise.convert import convert
from edgewise.errors import ShapeError, UnsupportedOpError
from edgewise.runtime.session import Session

Check = Callable[..., Any]
X = np.arange(48, dtype="f4").reshape(1, 3, 4, 4)


def f32(*numbers: float) -> Any:
    return np.array(numbers, "f4")


def i64(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def open_model(
    build: Check, op: str, opset: int, inputs: tuple[Any, ...], **attributes: Any
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """One node over ``X`` and inputs whose sizes are all open."""
    names = ["x", *("" if a is None else f"p{i}" for i, a in enumerate(inputs))]
    feeds = {f"p{i}": a for i, a in enumerate(inputs) if a is not None}
    shapes = {
        name: [f"{name}_{axis}" for axis in range(array.ndim)]
        for name, array in feeds.items()
    }
    feeds = {"x": X, **feeds}
    outputs = ["y", "z"] if op == "TopK" else ["y"]
    node = helper.make_node(op, names, outputs, **attributes)
    return build([node], feeds, outputs, shapes=shapes, opset=opset), feeds


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes"),
    [
        ("Resize", 17, (None, f32(1, 1, 2, 2)), {}),
        ("Resize", 18, (None, f32(2, 2)), {"axes": [2, 3]}),
        ("Resize", 10, (f32(1, 1, 2, 2),), {}),
        ("Upsample", 9, (f32(1, 1, 2, 2),), {}),
        (
            "Resize",
            17,
            (f32(0, 0, 0, 0, 1, 1, 1, 1), f32(1, 1, 2, 2)),
            {"coordinate_transformation_mode": "tf_crop_and_resize"},
        ),
        ("TopK", 17, (i64(2),), {}),
        ("CumSum", 17, (i64(2),), {}),
        ("Trilu", 17, (i64(1),), {}),
    ],
)
def test_an_open_length_is_the_one_that_the_operator_takes(
    op: str,
    opset: int,
    inputs: tuple[Any, ...],
    attributes: dict[str, Any],
    build: Check,
    agree: Check,
) -> None:
    agree(*open_model(build, op, opset, inputs, **attributes))


def test_sizes_of_open_length(build: Check) -> None:
    # onnxruntime takes an unknown number of sizes for none.
    sizes = None, None, i64(8, 6)
    model, feeds = open_model(build, "Resize", 18, sizes, axes=[2, 3])
    assert Session(convert(model)).run(feeds)["y"].shape == (1, 3, 8, 6)


def test_a_run_with_another_length_is_refused(build: Check) -> None:
    model, feeds = open_model(build, "Resize", 17, (None, f32(1, 1, 2, 2)))
    session = Session(convert(model))
    with pytest.raises(ShapeError, match="as many elements"):
        session.run(feeds | {"p1": f32(1, 1, 2)})


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("GatherND", (i64(0, 1).reshape(1, 2),)),
        ("ScatterND", (i64(0, 1).reshape(1, 2), X[0, :1])),
    ],
)
def test_indices_of_open_length_are_refused_by_name(
    op: str, inputs: tuple[Any, ...], build: Check
) -> None:
    model, _ = open_model(build, op, 17, inputs)
    with pytest.raises(UnsupportedOpError, match=rf"{op}.* fixed size before export"):
        convert(model)
