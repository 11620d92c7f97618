"""Models back in ONNX: names, shapes, layouts, bodies; and what they give there."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.op import Array

FLOAT = TensorProto.FLOAT
RNG = np.random.default_rng(3)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[Any]],
    weights: dict[str, Array] | None = None,
    outputs: tuple[str, ...] = ("y",),
    kind: int = FLOAT,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info(n, kind, s) for n, s in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()],
    )
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def run(proto: onnx.ModelProto, feed: dict[str, Array]) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [info.name for info in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def back(proto: onnx.ModelProto, feed: dict[str, Array]) -> onnx.ModelProto:
    """The model converted and back; what it gives stays what it was."""
    found = ew.convert(proto).to_onnx()
    onnx.checker.check_model(found, full_check=True)
    want, got = run(proto, feed), run(found, feed)
    assert got.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, 1e-4, 1e-5, err_msg=name)
    return found


def kinds(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def stored(proto: onnx.ModelProto) -> dict[str, Array]:
    return {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}


NORM = {"gamma": f32(4), "beta": f32(4), "mean": f32(4), "var": np.abs(f32(4)) + 1}


def network() -> tuple[onnx.ModelProto, dict[str, Array]]:
    node, names = helper.make_node, list(NORM)
    weights = {"w": f32(4, 3, 3, 3), "b": f32(4), **NORM}
    weights |= {"d": f32(4, 1, 3, 3), "v": f32(5, 4)}
    nodes = [
        node("Conv", ["x", "w", "b"], ["a"], pads=[1] * 4, strides=[2, 2]),
        node("BatchNormalization", ["a", *names], ["n"], epsilon=1e-3),
        node("Relu", ["n"], ["r"]),
        node("Conv", ["r", "d"], ["s"], group=4, pads=[1] * 4),
        node("Add", ["s", "r"], ["t"]),
        node("Concat", ["t", "r"], ["c"], axis=1),
        node("Slice", ["c", "from", "to", "one"], ["e"]),
        node("GlobalAveragePool", ["e"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "v"], ["y"], transB=1),
    ]
    bounds = {"from": [2], "to": [6], "one": [1]}
    given = {k: np.asarray(v, np.int64) for k, v in bounds.items()}
    return model(nodes, {"x": ["N", 3, 8, 7]}, weights | given), weights


def test_an_image_network_comes_back_as_it_was() -> None:
    proto, weights = network()
    found = back(proto, {"x": f32(2, 3, 8, 7)})
    changed = {"GlobalAveragePool": "ReduceMean", "Flatten": "Reshape"}
    assert kinds(found) == [changed.get(kind, kind) for kind in kinds(proto)]
    kept = stored(found)
    for name, array in weights.items():
        np.testing.assert_array_equal(kept[name], array, err_msg=name)


def test_parameters_are_written_as_they_are_now() -> None:
    from edgewise_trainer import Trainer, optimizers

    proto, weights = network()
    trainer = Trainer(ew.convert(proto), optimizer=optimizers.SGD(0.1), threads=1)
    trainer.step(f32(4, 3, 8, 7), np.arange(4))
    exported = trainer.export()
    found = exported.to_onnx()
    kept = stored(found)
    assert weights.keys() <= kept.keys()
    for name, array in trainer.parameters().items():
        np.testing.assert_array_equal(kept[name], array, err_msg=name)
    assert not np.allclose(kept["w"], weights["w"])
    assert not np.allclose(kept["mean"], weights["mean"])
    x = f32(3, 3, 8, 7)
    with ew.Session(exported) as session:
        want = session(x)
    np.testing.assert_allclose(run(found, {"x": x})["y"], want, 1e-4, 1e-5)


def test_a_transposed_convolution_and_a_line() -> None:
    node = helper.make_node
    nodes = [
        node("ConvTranspose", ["x", "w", "b"], ["a"], strides=[2], pads=[1, 0]),
        node("Conv", ["a", "v"], ["c"], dilations=[2]),
        node("BatchNormalization", ["c", *NORM], ["y"]),
    ]
    weights = {"w": f32(3, 5, 4), "b": f32(5), "v": f32(4, 5, 3), **NORM}
    kept = stored(back(model(nodes, {"x": ["N", 3, 9]}, weights), {"x": f32(2, 3, 9)}))
    np.testing.assert_array_equal(kept["w"], weights["w"])


def test_sizes_that_only_a_run_knows() -> None:
    node = helper.make_node
    whole = np.asarray([0, -1, 2], np.int64)
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("ReduceProd", ["s"], ["p"], keepdims=1),
        node("Reshape", ["x", "p"], ["flat"]),
        node("Reshape", ["x", "whole"], ["pairs"]),
        node("NonZero", ["flat"], ["places"]),
        node("Gather", ["flat", "places"], ["y"]),
    ]
    proto = model(nodes, {"x": ["N", "T", 4]}, {"whole": whole}, ("y", "pairs"))
    back(proto, {"x": np.maximum(f32(2, 5, 4), 0)})


def body(
    nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[str]
) -> onnx.GraphProto:
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    return helper.make_graph(nodes, "body", inputs, infos)


def test_branches_and_loops_have_bodies_again() -> None:
    node, info = helper.make_node, helper.make_tensor_value_info
    branches = {
        "then_branch": body([node("Mul", ["x", "w"], ["t"])], [], ["t"]),
        "else_branch": body([node("Sub", ["x", "w"], ["e"])], [], ["e"]),
    }
    turn = [
        info("i", TensorProto.INT64, []),
        info("go", TensorProto.BOOL, []),
        info("h", FLOAT, [2, 3]),
    ]
    steps = body(
        [
            node("Identity", ["go"], ["on"]),
            node("Add", ["h", "chosen"], ["next"]),
            node("Relu", ["next"], ["row"]),
        ],
        turn,
        ["on", "next", "row"],
    )
    slices = body(
        [node("Add", ["c", "s"], ["d"]), node("Mul", ["d", "w"], ["o"])],
        [info("c", FLOAT, [3]), info("s", FLOAT, [3])],
        ["d", "o"],
    )
    nodes = [
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["positive"]),
        node("If", ["positive"], ["chosen"], **branches),
        node("Loop", ["three", "", "x"], ["last", "rows"], body=steps),
        node("Scan", ["w", "last"], ["z", "o"], body=slices, num_scan_inputs=1),
    ]
    weights = {"w": f32(3), "zero": np.float32(0), "three": np.asarray(3, np.int64)}
    arrays = {k: np.asarray(v) for k, v in weights.items()}
    proto = model(nodes, {"x": [2, 3]}, arrays, ("rows", "z", "o"))
    for sign in (1, -1):
        back(proto, {"x": np.float32(sign) * np.abs(f32(2, 3))})


def test_inputs_that_are_outputs_and_outputs_that_are_one_value() -> None:
    nodes = [helper.make_node("Relu", ["x"], [name]) for name in ("a", "b")]
    nodes.append(helper.make_node("Identity", ["x"], ["c"]))
    proto = model(nodes, {"x": ["N"]}, outputs=("a", "b", "c"))
    back(proto, {"x": f32(3)})


def test_numbers_that_are_no_parameters_do_not_become_some() -> None:
    node = helper.make_node
    half = numpy_helper.from_array(np.float32([0.5]))
    nodes = [
        node("Constant", [], ["half"], value=half),
        node("Mul", ["x", "half"], ["a"]),
        node("LayerNormalization", ["a", "g"], ["b"]),
        node("Clip", ["b", "half"], ["y"]),
    ]
    found = back(model(nodes, {"x": ["N", 3]}, {"g": f32(3)}), {"x": f32(2, 3)})
    assert stored(found).keys() == {"g"}
    assert ew.convert(found).parameters().keys() == {"g"}


def test_the_metadata_of_the_source_stays() -> None:
    proto, _ = network()
    helper.set_model_props(proto, {"classes": "five"})
    found = ew.convert(proto).to_onnx()
    assert {p.key: p.value for p in found.metadata_props} == {"classes": "five"}


def test_what_onnx_lacks_is_named() -> None:
    nodes = [helper.make_node("CumProd", ["x", "axis"], ["y"], name="/running")]
    proto = model(nodes, {"x": [3]}, {"axis": np.asarray(0, np.int64)})
    proto.opset_import[0].version = 26
    with pytest.raises(ew.UnsupportedOpError, match=r"Cumprod .*'/running'"):
        ew.convert(proto).to_onnx()
