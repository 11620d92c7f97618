"""Recurrent layers and quantisation give what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import UnsupportedOpError

Check = Callable[..., Any]


@pytest.fixture
def f32(rng: np.random.Generator) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        return rng.standard_normal(shape).astype("f4")

    return make


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("states", [False, True])
def test_recurrent_layers(
    direction: str, states: bool, agree_on_node: Check, f32: Check
) -> None:
    steps, batch, inputs, hidden = 5, 2, 3, 4
    count = 2 if direction == "bidirectional" else 1
    for op, gates, outputs in (("GRU", 3, 2), ("LSTM", 4, 3), ("RNN", 1, 2)):
        start = [f32(count, batch, hidden) for _ in range(outputs - 1)]
        agree_on_node(
            op,
            f32(steps, batch, inputs),
            f32(count, gates * hidden, inputs),
            f32(count, gates * hidden, hidden),
            f32(count, 2 * gates * hidden) if states else None,
            *([None, *start] if states else []),
            fixed=(1, 2),
            outputs=outputs,
            hidden_size=hidden,
            direction=direction,
        )


def test_the_other_reset_gate_and_peepholes(agree_on_node: Check, f32: Check) -> None:
    x, w, r, b = f32(5, 2, 3), f32(1, 12, 3), f32(1, 12, 4), f32(1, 24)
    agree_on_node(
        "GRU",
        x,
        w,
        r,
        b,
        fixed=(1, 2, 3),
        hidden_size=4,
        linear_before_reset=1,
        outputs=2,
    )
    w, r, b, start = f32(1, 16, 3), f32(1, 16, 4), f32(1, 32), f32(1, 2, 4)
    agree_on_node(
        "LSTM", x, w, r, b, None, start, start, f32(1, 12), fixed=(1, 2), hidden_size=4
    )


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"activations": ["Relu", "Tanh"]}, "Relu"),
        ({"clip": 3.0}, "clip"),
    ],
)
def test_unusual_recurrences_are_refused(
    attributes: Any, text: str, build: Check, f32: Check
) -> None:
    node = helper.make_node(
        "GRU", ["x", "w", "r"], ["y"], name="gru", hidden_size=4, **attributes
    )
    weights = {"w": f32(1, 12, 3), "r": f32(1, 12, 4)}
    with pytest.raises(UnsupportedOpError, match=text):
        convert_module(build([node], {"x": f32(5, 2, 3)}, ["y"], weights=weights))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantisation_there_and_back(
    dtype: Any, axis: int | None, agree_on_node: Check, f32: Check
) -> None:
    size = () if axis is None else ((3, 5)[axis],)
    scale = np.abs(f32(*size)) * 0.1 + 0.01
    zero = np.full(size, 3, dtype)
    more = {} if axis is None else {"axis": axis}
    agree_on_node("QuantizeLinear", f32(3, 5), scale, zero, fixed=(1, 2), **more)
    q = np.arange(15).reshape(3, 5).astype(dtype)
    agree_on_node("DequantizeLinear", q, scale, zero, fixed=(1, 2), **more)


def test_quantisation_without_a_zero_point(agree_on_node: Check, f32: Check) -> None:
    agree_on_node("QuantizeLinear", np.abs(f32(3, 5)), np.array(0.02, "f4"))
    agree_on_node("DynamicQuantizeLinear", f32(3, 5), outputs=3)
