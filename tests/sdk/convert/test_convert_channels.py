"""Channels that only the weight tells: open in the input, fixed by what reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert
from edgewise.errors import ModelFormatError, ShapeError
from edgewise.runtime.session import Session

Check = Callable[..., Any]
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype("f4")


CASES: list[tuple[str, tuple[int, ...], Mapping[str, Any], dict[str, Any]]] = [
    ("Conv", (2, 3, 8, 8), {"w": normal(4, 3, 3, 3)}, {}),
    ("Conv", (2, 4, 8, 8), {"w": normal(4, 2, 3, 3)}, {"group": 2}),
    ("Conv", (2, 4, 8, 8), {"w": normal(4, 1, 3, 3)}, {"group": 4}),
    ("Conv", (2, 3, 8), {"w": normal(4, 3, 3)}, {}),
    ("Conv", (1, 2, 4, 5, 6), {"w": normal(3, 2, 2, 2, 2)}, {}),
    ("ConvTranspose", (2, 3, 8, 8), {"w": normal(3, 4, 3, 3)}, {}),
    ("ConvTranspose", (2, 4, 8), {"w": normal(4, 2, 3)}, {"group": 2}),
    ("ConvInteger", (1, 3, 5, 5), {"w": np.ones((2, 3, 3, 3), "u1")}, {}),
    (
        "GroupNormalization",
        (2, 6, 4, 4),
        {"scale": normal(6), "shift": normal(6)},
        {"num_groups": 3},
    ),
]


def sizes(rank: int) -> dict[str, Any]:
    return {"x": list("NCDHW")[:rank]}


@pytest.mark.parametrize(("op", "shape", "weights", "attributes"), CASES)
def test_the_weight_says_how_many_channels_there_are(
    op: str,
    shape: tuple[int, ...],
    weights: Mapping[str, Any],
    attributes: dict[str, Any],
    build: Check,
    agree: Check,
) -> None:
    x = RNG.integers(0, 9, shape).astype("u1" if op == "ConvInteger" else "f4")
    node = helper.make_node(op, ["x", *weights], ["y"], **attributes)
    names = sizes(len(shape))
    model = build([node], {"x": x}, ["y"], weights=weights, shapes=names, opset=21)
    model.ir_version = 10
    agree(model, {"x": x})


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_run_with_other_channels_is_refused(op: str, build: Check) -> None:
    weights = {"w": normal(3, 3, 3, 3)}
    node = helper.make_node(op, ["x", "w"], ["y"])
    x = normal(1, 3, 8, 8)
    model = build([node], {"x": x}, ["y"], weights=weights, shapes=sizes(4))
    session = Session(convert(model))
    assert session.run({"x": x})["y"].shape[1] == 3
    with pytest.raises(ShapeError, match="as many elements"):
        session.run({"x": normal(1, 4, 8, 8)})


def test_channels_that_contradict_the_weight_are_refused(build: Check) -> None:
    weights = {"w": normal(3, 3, 3, 3)}
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    model = build([node], {"x": normal(1, 4, 8, 8)}, ["y"], weights=weights)
    with pytest.raises(ModelFormatError, match="its weight"):
        convert(model)


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_mean_and_variance_over_the_axes_that_there_are(
    rank: int, agree_on_node: Check
) -> None:
    agree_on_node("MeanVarianceNormalization", normal(*range(2, 2 + rank)))
