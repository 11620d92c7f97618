"""Data, scores and options that make no sense are told in one line; extremes hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.sdk.quant.conftest import batches

import edgewise as ew

GOOD = batches(2)
X = GOOD[0]["x"]
ALONE = {"activations": "float32"}


@pytest.mark.parametrize(
    ("second", "error", "words"),
    [
        ({"z": X}, ew.ShapeError, "batch 2: input 'x' is missing"),
        ({"x": X[:, :2]}, ew.ShapeError, "batch 2: input 'x': got"),
        ({"x": X.astype(np.float64)}, ew.DTypeError, "batch 2: input 'x': got float64"),
        (None, ew.DTypeError, "batch 2"),
        ({"x": np.full_like(X, np.inf)}, ew.ConfigError, "batch 2.* at input 'x'"),
        ({"x": np.full_like(X, 3e38)}, ew.ConfigError, "batch 2.* at b"),
    ],
)
def test_a_batch_that_cannot_be_is_named(
    model: ew.Model, second: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ew.quantize(model, [GOOD[0], second])


def test_what_a_generator_raises_is_seen(model: ew.Model) -> None:
    def broken() -> Iterator[dict[str, np.ndarray]]:
        yield GOOD[0]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        ew.quantize(model, broken())


def test_an_input_that_never_changes_is_named(model: ew.Model) -> None:
    small = ew.quantize(model, [{"x": np.ones_like(X)}] * 2)
    assert small.quantization is not None
    assert "input 'x' never changed: 1" in small.quantization.notes


def later(score: object) -> Callable[[ew.Model], Any]:
    """Scores the source 1, and everything after that so."""
    scores = iter([1.0])
    return lambda model: next(scores, score)


@pytest.mark.parametrize("score", [None, "0.5", np.zeros(2), np.zeros(1), {}, 1j])
@pytest.mark.parametrize("options", [{}, {**ALONE, "weights": "int4"}])
def test_scores_that_are_no_numbers_are_refused(
    model: ew.Model, score: object, options: dict[str, str]
) -> None:
    for evaluate in (lambda model: score, later(score)):
        config = ew.QuantizeConfig(max_drop=0.0, evaluate=evaluate, **options)
        with pytest.raises(ew.ConfigError, match="evaluate: got"):
            ew.quantize(model, GOOD, config)


def test_a_score_of_nan_holds_nothing(model: ew.Model) -> None:
    config = ew.QuantizeConfig(max_drop=0.5, evaluate=later(np.nan))
    small = ew.quantize(model, GOOD, config)
    with ew.Session(model) as source, ew.Session(small) as session:
        np.testing.assert_array_equal(source(X), session(X))


@pytest.mark.parametrize(
    "options",
    [
        {"keep": None},
        {"keep": (3,)},
        {"keep": b"w"},
        {"keep": "w1"},
        {"keep": (name for name in "w")},
        {"group": 32.0},
        {"max_drop": 10**400, "evaluate": later(1.0)},
        {"max_drop": np.nan, "evaluate": later(1.0)},
    ],
)
def test_options_of_other_kinds_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ew.ConfigError, match=next(iter(options))):
        ew.QuantizeConfig(**options)


@pytest.mark.parametrize("options", [{}, {**ALONE, "weights": "int4"}])
def test_a_pattern_that_fits_no_weight_is_refused(
    model: ew.Model, options: dict[str, str]
) -> None:
    config = ew.QuantizeConfig(keep=("w1", "haed*"), **options)
    with pytest.raises(ew.ConfigError, match=r"'haed\*'; there are w1, b1"):
        ew.quantize(model, GOOD, config)


def test_what_is_no_model_or_no_config_is_refused(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="model: got str"):
        ew.quantize("model.ew", GOOD)  # type: ignore[arg-type]
    with pytest.raises(ew.ConfigError, match="want a QuantizeConfig"):
        ew.quantize(model, GOOD, "int8")  # type: ignore[arg-type]


def two_layers(first: float, second: float) -> onnx.ModelProto:
    """Two convolutions of weights of these sizes, with a ReLU between."""
    rng = np.random.default_rng(0)
    arrays = {
        "w1": rng.normal(0, first, (8, 4, 3, 3)),
        "w2": rng.normal(0, second, (6, 8, 1, 1)),
    }
    weights = [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 6, 6, 6])
    graph = helper.make_graph(nodes, "extremes", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


@pytest.mark.parametrize(("first", "second"), [(1e-14, 1e-9), (1e-20, 1e20), (1e30, 1)])
@pytest.mark.parametrize("method", ["minmax", "mse", "admm"])
def test_numbers_of_any_size_keep_their_bits(
    first: float, second: float, method: str
) -> None:
    model = ew.convert(two_layers(first, second))
    x = np.random.default_rng(1).standard_normal((3, 4, 8, 8)).astype("f4")
    small = ew.quantize(model, [{"x": x}] * 2, ew.QuantizeConfig(method=method))
    with ew.Session(model) as source, ew.Session(small) as session:
        wanted, got = (np.float64(run(x)) for run in (source, session))
    assert np.linalg.norm(got - wanted) < 0.1 * np.linalg.norm(wanted)


def test_weights_that_halves_would_lose_stay_real() -> None:
    model = ew.convert(two_layers(1e-8, 1.0))
    half = ew.quantize(model, None, ew.QuantizeConfig(weights="float16", **ALONE))
    assert half.quantization is not None
    (note,) = half.quantization.notes
    assert note.startswith("w1 stays float32: its numbers are so small")
    weights = half.parameters()
    np.testing.assert_array_equal(weights["w1"], model.parameters()["w1"])
    with pytest.raises(ew.ConfigError, match="w2 stays float32"):
        ew.quantize(
            ew.convert(two_layers(1e-8, 1e-8)),
            None,
            ew.QuantizeConfig(weights="float16", **ALONE),
        )


def biased(nodes: list[onnx.NodeProto], more: list[onnx.ValueInfoProto]) -> ew.Model:
    """Two products, the first of which adds what ``nodes`` make."""
    rng = np.random.default_rng(0)
    arrays = {
        "w1": rng.normal(size=(6, 8)),
        "b1": rng.normal(size=(1, 1, 8)),
        "w2": rng.normal(size=(8, 4)),
    }
    weights = [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()]
    weights.append(numpy_helper.from_array(np.array([8]), "eight"))
    chain = [
        helper.make_node("MatMul", ["x", "w1"], ["p"]),
        *nodes,
        helper.make_node("Add", ["p", "bias"], ["q"]),
        helper.make_node("Relu", ["q"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph(chain, "biased", [x, *more], [y], weights)
    opset = helper.make_opsetid("", 17)
    return ew.convert(helper.make_model(graph, opset_imports=[opset], ir_version=8))


@pytest.mark.parametrize("made", ["computed", "given"])
def test_factors_of_layers_may_be_computed(made: str) -> None:
    """From variables; what inputs give is added behind the layer."""
    rng, more = np.random.default_rng(2), []
    feed = {"x": rng.standard_normal((9, 6)).astype("f4")}
    source = "b1"
    if made == "given":
        source, feed["g"] = "g", rng.standard_normal((2, 4)).astype("f4")
        more = [helper.make_tensor_value_info("g", TensorProto.FLOAT, [2, 4])]
    nodes = [helper.make_node("Reshape", [source, "eight"], ["bias"])]
    model = biased(nodes, more)
    small = ew.quantize(model, [feed] * 2)
    assert small.quantization is not None
    assert [layer.name for layer in small.quantization.layers] == ["w1", "w2"]
    with ew.Session(model) as one, ew.Session(small) as other:
        wanted, got = (s.run(feed)["y"] for s in (one, other))
    assert np.linalg.norm(got - wanted) < 0.05 * np.linalg.norm(wanted)
