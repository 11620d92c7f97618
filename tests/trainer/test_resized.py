"""Training at other sizes than a model declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.dims import symbol
from edgewise.ir.op import Op
from edgewise.ops import Expand, Gather, Reshape, Resize, Slice
from edgewise.types import DType, TensorType
from edgewise_trainer import Trainer, optimizers
from edgewise_trainer.carried import carried

BATCH = symbol("batch")
RNG = np.random.default_rng(0)
WEIGHTS = {
    name: RNG.normal(0, 0.4, shape).astype(np.float32)
    for name, shape in {
        "w1": (6, 2, 3, 3),
        "gamma": (6,),
        "beta": (6,),
        "mean": (6,),
        "w2": (3, 6),
        "w3": (3, 6 * 64),
    }.items()
} | {"var": np.full(6, 0.7, np.float32)}


def network(x: list[Any], flat: str = "pooled") -> ew.Model:
    """Convolution, batch norm, upsampling, then a mean of the image or all of it."""
    node, norm = helper.make_node, ["gamma", "beta", "mean", "var"]
    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1] * 4, strides=[2, 2]),
        node("BatchNormalization", ["a", *norm], ["b"]),
        node("Relu", ["b"], ["c"]),
        node("Resize", ["c", "", "scales"], ["d"], mode="nearest"),
        node("GlobalAveragePool", ["d"], ["e"]),
        node("Flatten", [{"pooled": "e", "whole": "d"}[flat]], ["f"]),
        node("Gemm", ["f", {"pooled": "w2", "whole": "w3"}[flat]], ["y"], transB=1),
    ]
    scales = np.array([1, 1, 2, 2], np.float32)
    tensors = [numpy_helper.from_array(v, k) for k, v in WEIGHTS.items()]
    tensors.append(numpy_helper.from_array(scales, "scales"))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x)
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [x[0], 3])
    graph = helper.make_graph(nodes, "net", [given], [made], tensors)
    opset = helper.make_opsetid("", 17)
    return ew.convert(helper.make_model(graph, opset_imports=[opset], ir_version=8))


def trained(model: ew.Model, *batches: tuple[int, ...]) -> Trainer:
    optimizer = optimizers.SGD(0.1, momentum=0.9)
    trainable = ["w1", "gamma", "beta", "w2"]
    one = Trainer(model, optimizer=optimizer, trainable=["w2"], threads=1)
    rng = np.random.default_rng(1)
    for shape in batches:
        x = rng.standard_normal(shape).astype(np.float32)
        one.step(x, np.arange(shape[0]) % 3)
    assert set(trainable) <= one.parameters().keys()
    return one


def test_a_model_for_one_image_trains_on_batches_of_others() -> None:
    shapes = [(4, 2, 12, 10), (3, 2, 12, 10), (1, 2, 8, 8), (4, 2, 8, 8)]
    fixed = trained(network([1, 2, 8, 8]), *shapes)
    free = trained(network(["N", 2, "H", "W"]), *shapes)
    for name, value in free.parameters().items():  # upsampled by other ops
        np.testing.assert_allclose(fixed.parameters()[name], value, 1e-5, 1e-6, name)
    x = np.random.default_rng(2).standard_normal((5, 2, 14, 6)).astype(np.float32)
    y = np.arange(5) % 3
    want = free.evaluate((x, y), batch_size=2)
    assert fixed.evaluate((x, y), batch_size=2) == pytest.approx(want, rel=1e-5)
    assert fixed.export().inputs[0].shape == (1, 2, 8, 8)


def test_a_size_that_cannot_work_is_one_error_and_harms_nothing() -> None:
    one = Trainer(network([1, 2, 8, 8], "whole"), trainable=["w3"], threads=1)
    x, y = np.zeros((2, 2, 12, 8), np.float32), np.arange(2)
    with pytest.raises(ew.ShapeError, match=r"'x' \[2, 2, 12, 8\]: linear: got"):
        one.step(x, y)
    assert one.step(x[:, :, :8], y) > 0
    assert one.steps == 1


def typed(*shape: Any) -> TensorType:
    return TensorType(DType.F32, shape)


@pytest.mark.parametrize(
    ("op", "before", "after", "expected"),
    [
        (Reshape((1, 320)), (1, 8, 8, 5), (BATCH, 6, 6, 5), (BATCH, 180)),
        (Reshape((1, 49, 5)), (1, 7, 7, 5), (BATCH, 3, 4, 5), (BATCH, 12, 5)),
        (Reshape((49, 5)), (1, 49, 5), (BATCH, 49, 5), (49 * BATCH, 5)),
        (Reshape((4, 49, 5)), (196, 5), (49 * BATCH, 5), (BATCH, 49, 5)),
        (Reshape((4, 7, 7, 3, 2)), (4, 49, 6), (BATCH, 49, 6), (BATCH, 7, 7, 3, 2)),
        (Reshape((1, 5, 1)), (1, 5), (BATCH, 5), (BATCH, 5, 1)),
        (Reshape((1, 6, 6, 1)), (1, 1, 6, 6), (BATCH, 1, 8, 9), (BATCH, 8, 9, 1)),
        (Reshape((4, 8, 8, 1)), (4, 1, 8, 8), (BATCH, 3, 8, 8), None),
        (Reshape(()), (1, 1), (1, 1), ()),
        (Reshape((4, 8, 7, 8, 7)), (4, 56, 56), (4, 28, 28), None),
        (Reshape((1, 49, 5)), (49, 5), (36 * BATCH, 5), None),
        (Slice((0, 2), (8, 3), (1, 1)), (8, 9), (BATCH, 9), (BATCH, 3)),
        (Slice((0, 2), (8, 3), (1, 1)), (8, 9), (8, 7), None),
        (Expand((3, 4, 5)), (4, 1), (BATCH, 1), (3, BATCH, 5)),
        (Gather(1), (4, 9), (BATCH, 9), (BATCH, 5)),
        (Gather(1), (4, 9), (4, 7), None),
        (Resize((1, 5, 16)), (1, 5, 8), (BATCH, 5, 6), (BATCH, 5, 12)),
        (Resize((1, 5, 10)), (1, 5, 8), (1, 5, 6), None),
    ],
)
def test_sizes_follow_where_they_can_mean_one_thing(
    op: Op, before: Any, after: Any, expected: Any
) -> None:
    more = (TensorType(DType.I64, (5,)),) if isinstance(op, Gather) else ()
    types = (typed(*before), *more), (typed(*after), *more)
    batch = before[0] if before[0] in (1, 4) else 4
    if expected is None:
        with pytest.raises(ew.ShapeError, match="for which the model was made"):
            carried(op, *types, {"batch": batch})
        return
    (found,) = carried(op, *types, {"batch": batch}).infer_all(types[1])
    assert found == typed(*expected)
