"""Recurrent layers give what onnxruntime gives."""

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


LAYERS = [("GRU", 3, 2), ("LSTM", 4, 3), ("RNN", 1, 2)]


def layer(f32: Check, gates: int, ways: int = 1) -> tuple[Any, ...]:
    """Input and weights of 5 steps, 3 sequences, 4 inputs and 3 outputs."""
    x, w, r = f32(5, 3, 4), f32(ways, 3 * gates, 4), f32(ways, 3 * gates, 3)
    return x, w, r, f32(ways, 6 * gates)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates", "outputs"), LAYERS)
def test_sequences_of_different_lengths(
    direction: str, op: str, gates: int, outputs: int, agree_on_node: Check, f32: Check
) -> None:
    ways = 2 if direction == "bidirectional" else 1
    given = (*layer(f32, gates, ways), np.array([5, 1, 3], np.int32))
    more = {"hidden_size": 3, "outputs": outputs, "direction": direction}
    agree_on_node(op, *given, **more)
    agree_on_node(op, *given, fixed=(1, 2, 3, 4), **more)


@pytest.mark.parametrize(
    ("op", "gates", "attributes"),
    [
        ("GRU", 3, {"activations": ["Relu", "Softsign"]}),
        ("GRU", 3, {"activations": ["HardSigmoid", "Tanh"], "activation_alpha": [0.3]}),
        ("GRU", 3, {"clip": 0.7}),
        ("LSTM", 4, {"clip": 0.7}),
        ("LSTM", 4, {"input_forget": 1}),
        ("LSTM", 4, {"activations": ["Sigmoid", "Elu", "Softplus"]}),
        (
            "LSTM",
            4,
            {
                "activations": ["HardSigmoid", "Affine", "LeakyRelu"],
                "activation_alpha": [0.3, 1.5, 0.2],
                "activation_beta": [0.4, 0.1],
            },
        ),
        ("RNN", 1, {"activations": ["Relu"]}),
        ("RNN", 1, {"activations": ["ThresholdedRelu"], "activation_alpha": [0.5]}),
    ],
)
def test_unusual_cells(
    op: str, gates: int, attributes: Any, agree_on_node: Check, f32: Check
) -> None:
    agree_on_node(op, *layer(f32, gates), hidden_size=3, **attributes)


def test_an_unknown_activation_is_refused(build: Check, f32: Check) -> None:
    more = {"hidden_size": 4, "activations": ["Swirl", "Tanh"]}
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], name="gru", **more)
    weights = {"w": f32(1, 12, 3), "r": f32(1, 12, 4)}
    with pytest.raises(UnsupportedOpError, match=r"gru.*swirl.*use one of tanh"):
        convert_module(build([node], {"x": f32(5, 2, 3)}, ["y"], weights=weights))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("ways", [1, 2])
def test_weights_in_bytes_are_the_numbers_they_stand_for(
    columns: bool, ways: int, build: Check, module_outputs: Check, f32: Check
) -> None:
    x, _, _, bias = layer(f32, 4, ways)
    w, r = (np.rint(30 * f32(ways, n, 12)).astype(np.int8) for n in (4, 3))
    shape = (ways, 12) if columns else (ways,)
    scales = [0.01 * (1 + np.abs(f32(*shape))) for _ in range(2)]
    zeros = [np.full(shape, 3, np.int8)] * 2
    more: dict[str, Any] = {"hidden_size": 3}
    more |= {"direction": "bidirectional"} if ways == 2 else {}
    pairs = (scales[0], zeros[0], scales[1], zeros[1])
    given = (x, w, r, bias, None, None, None, None, *pairs)
    names = ["" if a is None else f"x{i}" for i, a in enumerate(given)]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", **more
    )
    feeds = {f"x{i}": a for i, a in enumerate(given) if a is not None}
    model = build([node], feeds, ["y"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    got = module_outputs(convert_module(model).module, feeds)["y"]

    real = [
        ((q - np.float32(3)) * scale.reshape(ways, 1, -1)).transpose(0, 2, 1)
        for q, scale in zip((w, r), scales, strict=True)
    ]
    plain = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], **more)
    feeds = dict(zip("xwrb", (x, *real, bias), strict=True))
    wanted = module_outputs(convert_module(build([plain], feeds, ["y"])).module, feeds)
    np.testing.assert_allclose(got, wanted["y"], 1e-5, 1e-6)
