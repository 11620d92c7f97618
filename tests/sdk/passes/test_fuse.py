"""Products take over what is done to their results."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from edgewise.ir.graph import Graph, Value, constant
from edgewise.ops import (
    Abs,
    Add,
    AveragePool,
    BatchNorm,
    Clip,
    Conv,
    DepthwiseConv,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Linear,
    MatMul,
    MaxPool,
    Mish,
    Mul,
    PackPanels,
    PackTaps,
    Pad,
    Relu,
    Sigmoid,
    Silu,
    Softplus,
    Tanh,
    Transpose,
)
from edgewise.passes import fuse, fuse_pad
from edgewise.passes.rewrite import Rewriter

RULES = (*fuse.RULES, *fuse_pad.RULES)
PACKS = ("pack_panels", "pack_taps")


def fused(t: Any, *outputs: Value) -> Graph:
    graph: Graph = t.rewritten(RULES, *outputs)
    return graph


def ops(t: Any, graph: Graph) -> Counter[str]:
    """Ops beside packing."""
    return Counter({k: v for k, v in t.ops(graph).items() if k not in PACKS})


def conv(t: Any, x: Value, *rest: Value | None) -> Value:
    weight = PackPanels((2, 3, 1, 0))(t.w(5, 3, 3, 3, key="conv"))
    return Conv(5, (3, 3), pads=(1, 1, 1, 1))(x, weight, *rest)


def depthwise(t: Any, x: Value, *rest: Value | None) -> Value:
    taps = PackTaps()(t.w(3, 1, 3, 3, key="taps"))
    return DepthwiseConv((3, 3), pads=(1, 1, 1, 1))(x, taps, *rest)


def linear(t: Any, x: Value, *rest: Value | None) -> Value:
    return Linear(5)(x, PackPanels((0, 1))(t.w(3, 5, key="linear")), *rest)


MAKERS = {"conv": conv, "depthwise": depthwise, "linear": linear}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def product(request: pytest.FixtureRequest, t: Any) -> Any:
    """Makes a product of ``x`` with more inputs."""
    return lambda *rest: request.param(t, t.x(2, 4, 5, 3), *rest)


ACTIVATIONS = [
    Clip(-0.5, 0.5),
    Elu(0.7),
    Gelu(False),
    Gelu(True),
    HardSigmoid(0.3, 0.4),
    HardSwish(),
    LeakyRelu(0.2),
    Mish(),
    Relu(),
    Sigmoid(),
    Silu(),
    Softplus(),
    Tanh(),
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
def test_an_activation_ends_a_product(activation: Any, product: Any, t: Any) -> None:
    assert ops(t, fused(t, activation(product()))).total() == 1


def test_a_second_activation_stays(product: Any, t: Any) -> None:
    assert ops(t, fused(t, Tanh()(Relu()(product())))).total() == 2


def test_a_product_with_two_readers_stays(product: Any, t: Any) -> None:
    value = product()
    assert ops(t, fused(t, Relu()(value), Abs()(value))).total() == 3


def test_a_bias_becomes_the_shift(product: Any, t: Any) -> None:
    value = product()
    bias = t.w(value.type.shape[-1], key="bias")
    (root,) = fused(t, Add()(bias, value)).outputs
    assert root.node.inputs[3] == bias


def test_a_second_bias_is_added_to_the_first(product: Any, t: Any) -> None:
    value = product()
    first, second = (t.w(1, value.type.shape[-1], key=key) for key in "ab")
    graph = fused(t, Add()(Add()(value, first), second))
    assert ops(t, graph) == {graph.outputs[0].op.name: 1, "add": 1, "reshape": 2}


def test_a_factor_becomes_the_scale(product: Any, t: Any) -> None:
    value = product(None, t.w(product().type.shape[-1], key="bias"), None)
    factor = constant(np.linspace(0.5, 2, value.type.shape[-1], dtype="f4"))
    graph = fused(t, Mul()(value, factor))
    assert graph.outputs[0].op.name == value.op.name
    assert graph.outputs[0].node.inputs[2] == factor


def test_a_computed_row_is_no_bias(product: Any, t: Any) -> None:
    value = product()
    row = t.x(value.type.shape[-1], key="row")
    assert ops(t, fused(t, Add()(value, row)))["add"] == 1
    assert ops(t, fused(t, Mul()(value, row)))["mul"] == 1


def test_a_residual_is_added(product: Any, t: Any) -> None:
    value = product()
    other = Abs()(t.x(*value.type.shape, key="other"))
    graph = fused(t, Relu()(Add()(other, value)))
    (root,) = graph.outputs
    assert ops(t, graph) == {root.op.name: 1, "abs": 1}
    assert root.node.inputs[4] is not None
    assert root.op.activation == "relu"  # type: ignore[attr-defined]  # a product


def test_of_two_products_one_takes_the_other(t: Any) -> None:
    x = t.x(2, 4, 5, 3)
    graph = fused(t, Add()(conv(t, x), linear(t, x)))
    assert ops(t, graph) == {"conv": 1, "linear": 1}


def test_nothing_is_added_behind_an_activation(product: Any, t: Any) -> None:
    value = Relu()(product())
    other = t.x(*value.type.shape, key="other")
    assert ops(t, fused(t, Add()(value, other)))["add"] == 1


def test_a_batch_norm_becomes_scale_and_shift(product: Any, t: Any) -> None:
    value = product()
    channels = value.type.shape[-1]
    statistics = [t.w(channels, key=key) for key in ("g", "b", "m", "v")]
    norm = BatchNorm(value.type.rank - 1, 1e-3)(value, *statistics)
    graph = fused(t, Relu()(norm))
    assert ops(t, graph) == {value.op.name: 1, "batch_norm_fold": 1}


def test_a_bias_before_a_batch_norm_is_folded_in(product: Any, t: Any) -> None:
    channels = product().type.shape[-1]
    value = product(None, t.w(channels, key="bias"), None)
    statistics = [t.w(channels, key=key) for key in ("g", "b", "m", "v")]
    graph = fused(t, BatchNorm(value.type.rank - 1)(value, *statistics))
    assert ops(t, graph) == {value.op.name: 1, "batch_norm_fold": 1}


def test_a_batch_norm_over_another_axis_stays(t: Any) -> None:
    value = conv(t, t.x(2, 4, 5, 3))
    norm = BatchNorm(1)(value, *(t.w(4, key=key) for key in ("g", "b", "m", "v")))
    assert ops(t, fused(t, norm)) == {"conv": 1, "batch_norm": 1}


def test_a_batch_norm_alone_is_a_scale_and_a_shift(t: Any) -> None:
    norm = BatchNorm(1)(t.x(2, 3, 4), *(t.w(3, key=k) for k in ("g", "b", "m", "v")))
    value = Add()(Mul()(norm, t.w(1, 3, 1, key="f")), t.w(3, 1, key="o"))
    graph = t.rewritten(fuse.LATE_RULES, value)
    assert ops(t, graph) == {
        "scale_shift": 1,
        "batch_norm_fold": 1,
        "reshape": 2,
        "mul": 2,
        "add": 1,
    }


@pytest.mark.parametrize("rows", [(4, 3), (2, 4, 3)])
def test_a_product_with_a_parameter_is_linear(rows: Any, t: Any) -> None:
    assert ops(t, fused(t, MatMul()(t.x(*rows), t.w(3, 5)))) == {"linear": 1}
    turned = Transpose((1, 0))(t.w(5, 3))
    assert ops(t, fused(t, MatMul()(t.x(*rows), turned))) == {"linear": 1}


def test_other_products_stay(t: Any) -> None:
    values = (
        MatMul()(t.x(4, 3), t.x(3, 5, key="z")),
        MatMul()(t.x(4, 3), t.w(2, 3, 5)),
        MatMul()(t.w(4, 3, key="v"), t.x(3, 5, key="z")),
    )
    assert ops(t, fused(t, *values)) == {"matmul": 3}


# Padding


def padded(t: Any, *pads: int, value: float = 0.0, x: Value | None = None) -> Value:
    top, left, bottom, right = pads
    around = (0, top, left, 0, 0, bottom, right, 0)
    return Pad(around, "constant", value)(t.x(2, 6, 7, 3) if x is None else x)


@pytest.mark.parametrize("make", [conv, depthwise])
def test_zeros_around_a_convolution_are_its_pads(make: Any, t: Any) -> None:
    graph = fused(t, make(t, padded(t, 1, 0, 2, 3), None, t.w(1, key="one") and None))
    assert "pad" not in ops(t, graph)


@pytest.mark.parametrize(
    "pad",
    [
        Pad((0, 1, 1, 0, 0, 1, 1, 0), "constant", 1.0),
        Pad((0, 1, 1, 0, 0, 1, 1, 0), "edge"),
        Pad((0, -1, 1, 0, 0, 1, 1, 0)),
        Pad((1, 1, 1, 0, 0, 1, 1, 0)),
    ],
    ids=repr,
)
def test_other_padding_stays(pad: Any, t: Any) -> None:
    assert ops(t, fused(t, conv(t, pad(t.x(2, 6, 7, 3)))))["pad"] == 1


def test_padding_of_channels_stays(t: Any) -> None:
    pad = Pad((0, 0, 0, 1, 0, 0, 0, 1))(t.x(2, 6, 7, 1))
    assert ops(t, fused(t, conv(t, pad)))["pad"] == 1


def test_zeros_before_an_average_count(t: Any) -> None:
    pool = AveragePool((3, 3), (2, 2))
    assert "pad" not in ops(t, fused(t, pool(padded(t, 1, 1, 1, 1))))
    own = AveragePool((3, 3), (2, 2), pads=(1, 1, 1, 1))
    assert ops(t, fused(t, own(padded(t, 1, 1, 1, 1))))["pad"] == 1


def test_what_cannot_win_before_a_maximum_goes(t: Any) -> None:
    pool = MaxPool((3, 3), (2, 2))
    nothing = padded(t, 1, 1, 1, 1, value=-np.inf)
    assert "pad" not in ops(t, fused(t, pool(nothing)))
    positive = Relu()(t.x(2, 6, 7, 3))
    assert "pad" not in ops(t, fused(t, pool(padded(t, 1, 1, 1, 1, x=positive))))


def test_what_may_win_before_a_maximum_stays(t: Any) -> None:
    pool = MaxPool((3, 3), (2, 2))
    assert ops(t, fused(t, pool(padded(t, 1, 1, 1, 1))))["pad"] == 1
    # A window over padding alone has zero to give, or nothing.
    positive = Relu()(t.x(2, 6, 7, 3))
    assert ops(t, fused(t, pool(padded(t, 3, 1, 1, 1, x=positive))))["pad"] == 1


def test_every_rule_is_counted(t: Any) -> None:
    value = Relu()(Add()(conv(t, padded(t, 1, 1, 1, 1)), t.w(5, key="b")))
    _, fired = Rewriter(RULES).apply(t.graph(value))
    assert fired == {"padded_convolution": 1, "added": 1, "activation": 1}
