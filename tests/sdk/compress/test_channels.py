"""Models without their weakest channels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.sdk.compress.conftest import outputs

import edgewise as ew
from edgewise import compress

CLOSE = 1e-5


def shapes(model: ew.Model) -> dict[str, tuple[int, ...]]:
    return {key: info.logical.dims for key, info in model.module.variables.items()}


def test_every_reader_loses_what_a_layer_loses(model: ew.Model) -> None:
    found = shapes(compress.prune(model, 0.5, structured=True))
    assert found["w1"] == (12, 3, 3, 3)
    assert found["w2"] == (12, 1, 3, 3)
    assert found["w3"] == (12, 12, 1, 1)
    assert {found[k] for k in ("b1", "gamma", "beta", "mean", "var")} == {(12,)}
    assert found["w4"] == (10, 24, 1, 1)
    assert found["w5"] == (10, 120)
    assert found["b5"] == (10,)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_channels_that_give_nothing_are_those_that_go(
    model: ew.Model, x: np.ndarray, norm: str
) -> None:
    dead = np.zeros(24, np.bool_)
    dead[np.random.default_rng(5).permutation(24)[:12]] = True
    infos = model.module.variables.values()
    arrays = {
        info.key: compress.weights.logical(model, info.key).copy()
        for info in infos
        if info.initial is not None
    }
    for key in ("w1", "b1", "w2", "w3", "beta", "mean"):
        arrays[key][dead] = 0
    arrays["w4"][::2] = 0
    names = ("w1", "w2", "w3", "w4", "b1", "beta", "mean")
    changes = {key: arrays[key] for key in names}
    plain = compress.weights.Coding.PLAIN
    quiet = compress.weights.with_weights(model, changes, plain)
    small = compress.prune(quiet, 0.5, structured=True, norm=norm)
    want = outputs(quiet, x)
    np.testing.assert_allclose(outputs(small, x), want, atol=CLOSE * np.abs(want).max())
    assert shapes(small)["w1"][0] == 12
    kept = small.parameters()["w1"]
    np.testing.assert_array_equal(kept, arrays["w1"][~dead])


def test_what_is_left_out_keeps_its_channels(model: ew.Model) -> None:
    found = shapes(compress.prune(model, 0.5, structured=True, keep=("w3",)))
    assert found["w1"][0] == found["w3"][0] == 24  # they are added
    assert found["w4"] == (10, 48, 1, 1)


def test_a_small_model_can_be_made_smaller_again(
    model: ew.Model, x: np.ndarray
) -> None:
    half = compress.prune(model, 0.5, structured=True)
    quarter = compress.prune(half, 0.5, structured=True)
    assert shapes(quarter)["w1"][0] == 6
    assert outputs(quarter, x).shape == (3, 10)


def test_all_but_one_channel_may_go(model: ew.Model, x: np.ndarray) -> None:
    least = compress.prune(model, 0.99, structured=True)
    assert shapes(least)["w1"][0] == 1
    assert np.isfinite(outputs(least, x)).all()


def shuffled() -> onnx.ModelProto:
    """Channels that a reshape deals out anew, and one layer that is all there is."""
    rng = np.random.default_rng(0)
    w = numpy_helper.from_array(rng.normal(size=(8, 3, 1, 1)).astype("f4"), "w")
    v = numpy_helper.from_array(rng.normal(size=(4, 8, 1, 1)).astype("f4"), "v")
    rows = numpy_helper.from_array(np.array([0, 2, 4, 25]), "rows")
    back = numpy_helper.from_array(np.array([0, 8, 5, 5]), "back")
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("Reshape", ["a", "rows"], ["b"]),
        node("Transpose", ["b"], ["c"], perm=[0, 2, 1, 3]),
        node("Reshape", ["c", "back"], ["d"]),
        node("Conv", ["d", "v"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 5, 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 5, 5])
    graph = helper.make_graph(nodes, "shuffled", [x], [y], [w, v, rows, back])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def test_where_no_channel_can_go_that_is_said() -> None:
    with pytest.raises(ew.ConfigError, match="no layer can lose 50%"):
        compress.prune(ew.convert(shuffled()), 0.5, structured=True)


def test_sizes_that_may_be_one_or_the_other_are_left_alone() -> None:
    """Which of two open sizes a sum has only the run knows."""
    rng = np.random.default_rng(0)
    arrays = {"w1": rng.normal(size=(6, 8)), "w2": rng.normal(size=(8, 3))}
    weights = [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()]
    nodes = [
        helper.make_node("MatMul", ["a", "w1"], ["p"]),
        helper.make_node("MatMul", ["b", "w1"], ["q"]),
        helper.make_node("Add", ["p", "q"], ["s"]),
        helper.make_node("MatMul", ["s", "w2"], ["y"]),
    ]
    ends = {"a": ["N", 6], "b": ["M", 6], "y": ["K", 3]}
    a, b, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in ends.items()
    )
    graph = helper.make_graph(nodes, "sum", [a, b], [y], weights)
    opset = helper.make_opsetid("", 17)
    model = ew.convert(helper.make_model(graph, opset_imports=[opset], ir_version=8))
    small = compress.prune(model, 0.5, structured=True)
    assert small.parameters()["w1"].shape == (6, 4)
    feed = {
        name: rng.normal(size=(count, 6)).astype(np.float32)
        for name, count in (("a", 1), ("b", 5))
    }
    with ew.Session(small) as session:
        got = session.run(feed)["y"]
    left = small.parameters()
    wanted = (feed["a"] + feed["b"]) @ left["w1"] @ left["w2"]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
