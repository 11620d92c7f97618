"""Models whose weights alone have few bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.sdk.quant.conftest import batches, network
from tests.sdk.quant.test_quantize import outputs

import edgewise as ew
from edgewise.passes.widen import widened

# Of the outputs, as vectors: the most that so many bits may take.
CLOSE = {"float16": 1e-3, "int8": 2e-2, "int4": 0.25}


def config(weights: str, **more: object) -> ew.QuantizeConfig:
    return ew.QuantizeConfig(weights=weights, activations="float32", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", CLOSE)
def test_outputs_are_those_of_float32_weights_of_the_same_values(
    model: ew.Model, weights: str
) -> None:
    small = ew.quantize(model, None, config(weights))
    x = batches(1, seed=9)[0]["x"]
    got, want = outputs(small, x), outputs(model, x)
    assert np.linalg.norm(got - want) <= CLOSE[weights] * np.linalg.norm(want)
    same = outputs(ew.Model(widened(small.module)), x)
    np.testing.assert_allclose(got, same, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", CLOSE)
def test_layers_run_on_kernels_of_their_own(model: ew.Model, weights: str) -> None:
    small = ew.quantize(model, None, config(weights))
    with ew.Session(small) as session:
        rows = session.profile(batches(1)[0], runs=1).rows
    narrow = [row for row in rows if row.op.startswith("narrow_")]
    assert len(narrow) == 3
    assert all(row.kernel for row in narrow)


@pytest.mark.parametrize("weights", CLOSE)
def test_a_file_keeps_weights_under_their_names(
    model: ew.Model, weights: str, tmp_path: Path
) -> None:
    small = ew.quantize(model, None, config(weights))
    small.save(tmp_path / "small.ew")
    again = ew.load(tmp_path / "small.ew")
    x = batches(1)[0]["x"]
    np.testing.assert_array_equal(outputs(again, x), outputs(small, x))
    assert again.quantization == small.quantization
    before, after = model.parameters(), again.parameters()
    assert list(before) == list(after)
    for name, weight in after.items():
        assert weight.dtype == np.float32
        assert weight.shape == before[name].shape
        lost = np.linalg.norm(weight - before[name])
        assert lost <= CLOSE[weights] * np.linalg.norm(before[name])
    assert again.quantization is not None
    kinds = {layer.name: layer.precision for layer in again.quantization.layers}
    assert kinds == dict.fromkeys(("w1", "w3", "w4"), weights)


@pytest.mark.parametrize("weights", CLOSE)
def test_other_engines_get_the_values_they_stand_for(weights: str) -> None:
    small = ew.quantize(ew.convert(network()), None, config(weights))
    proto = small.to_onnx()
    x = batches(1)[0]["x"]
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (theirs,) = session.run(None, {"x": x})
    np.testing.assert_allclose(outputs(small, x), theirs, rtol=1e-4, atol=1e-4)


def with_a_table() -> onnx.ModelProto:
    """Rows of a table, multiplied."""
    rng = np.random.default_rng(0)
    shapes = {"table": (50, 24), "w": (24, 10)}
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("MatMul", ["rows", "w"], ["y"]),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", 7])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 7, 10])
    graph = helper.make_graph(nodes, "table", [ids], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


@pytest.mark.parametrize("weights", CLOSE)
def test_tables_are_halves(weights: str) -> None:
    model = ew.convert(with_a_table())
    small = ew.quantize(model, None, config(weights))
    assert small.module.variables["table"].type.dtype.value == "f16"
    table = model.parameters()["table"].astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(small.parameters()["table"], table)
    ids = np.arange(21, dtype=np.int64).reshape(3, 7) * 2
    got = outputs(small, ids)
    np.testing.assert_allclose(got, table[ids] @ small.parameters()["w"], atol=1e-5)
    session = onnxruntime.InferenceSession(small.to_onnx().SerializeToString())
    np.testing.assert_allclose(got, session.run(None, {"ids": ids})[0], atol=1e-5)
    with ew.Session(small) as running:
        rows = running.profile({"ids": ids}, runs=1).rows
    assert all(row.kernel for row in rows if row.op in {"gather", "cast"})


def test_a_weight_beyond_halves_is_said_and_stays() -> None:
    proto = network()
    for tensor in proto.graph.initializer:
        if tensor.name == "w3":
            array = numpy_helper.to_array(tensor).copy()
            array[0, 0] = 70_000.0
            tensor.CopyFrom(numpy_helper.from_array(array, "w3"))
    model = ew.convert(proto)
    small = ew.quantize(model, None, config("float16"))
    report = small.quantization
    assert report is not None
    assert any("w3" in note and "65504" in note for note in report.notes)
    weight = small.parameters()["w3"]
    np.testing.assert_array_equal(weight, model.parameters()["w3"])
    (row,) = [layer for layer in report.layers if layer.name == "w3"]
    assert row.precision == "float32"


def test_layers_that_are_kept_stay_float32(model: ew.Model) -> None:
    small = ew.quantize(model, None, config("int4", keep=("w1",)))
    np.testing.assert_array_equal(small.parameters()["w1"], model.parameters()["w1"])
    with pytest.raises(ew.ConfigError, match="without weights"):
        ew.quantize(model, None, config("int4", keep=("*",)))


def test_a_guard_leaves_the_noisiest_weights_float32(model: ew.Model) -> None:
    x = batches(1, seed=9)[0]["x"]
    want = outputs(model, x)

    def closeness(candidate: ew.Model) -> float:
        return -float(np.linalg.norm(outputs(candidate, x) - want))

    most = -closeness(ew.quantize(model, None, config("int4")))
    guard = {"max_drop": 0.6 * most, "evaluate": closeness}
    small = ew.quantize(model, None, config("int4", **guard))
    assert closeness(small) >= -0.6 * most
    assert small.quantization is not None
    kinds = [layer.precision for layer in small.quantization.layers]
    assert set(kinds) == {"int4", "float32"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": "float16", "activations": "float16"},
        {"weights": "int4", "activations": "int16"},
        {"weights": "int4", "activations": "int8"},
        {"weights": "float32", "activations": "float32"},
        {"group": 48},
    ],
)
def test_what_no_kernels_are_for_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ew.ConfigError, match="want"):
        ew.QuantizeConfig(**wrong)  # type: ignore[arg-type]
