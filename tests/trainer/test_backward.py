"""Reverse accumulation: sums over readers, pruning, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.errors import TrainabilityError
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import Graph, Value, constant, input_value
from edgewise.ops import (
    Add,
    Cast,
    Expect,
    Greater,
    If,
    Mul,
    ReduceSum,
    Relu,
    Resize,
    Round,
    TopK,
    Where,
)
from edgewise.types import DType, TensorType
from edgewise_trainer.autodiff import backward

X = TensorType(DType.F32, (3,))
ONE = constant(np.float32(1))


def total(value: Value) -> Value:
    return ReduceSum(tuple(range(value.type.rank)), keepdims=False)(value)


def gradient(loss: Value, *of: Value) -> Graph:
    grads = backward({loss: ONE}, of)
    inputs = tuple(of)
    found = tuple(grads[value] for value in of if value in grads)
    return Graph(inputs, found, tuple(f"d{i}" for i in range(len(found))))


def run(graph: Graph, **feeds: object) -> list[np.ndarray]:
    arrays = {key: np.asarray(value, np.float32) for key, value in feeds.items()}
    found, _ = evaluate(graph, arrays, {})
    return list(found.values())


@pytest.mark.parametrize("count", range(1, 11))
def test_every_reader_of_a_value_adds_to_its_gradient(count: int) -> None:
    x = input_value("x", X)
    value = x
    for _ in range(count - 1):
        value = Add()(value, x)
    (found,) = run(gradient(total(value), x), x=[1, -2, 3])
    np.testing.assert_array_equal(found, [count] * 3)


def test_a_value_that_is_both_sides_of_a_product_counts_twice() -> None:
    x = input_value("x", X)
    (found,) = run(gradient(total(Mul()(x, x)), x), x=[1, -2, 3])
    np.testing.assert_array_equal(found, [2, -4, 6])


def test_a_value_that_the_loss_does_not_use_has_no_gradient() -> None:
    x, unused = input_value("x", X), input_value("unused", X)
    loss = total(Relu()(x))
    assert unused not in backward({loss: ONE}, [x, unused])


def test_outputs_that_nobody_reads_need_no_gradient() -> None:
    x = input_value("x", X)
    values, _ = TopK(2, 0).node(x)
    (found,) = run(gradient(total(values), x), x=[1, -2, 3])
    np.testing.assert_array_equal(found, [1, 0, 1])


def test_an_op_that_jumps_is_named_before_anything_runs() -> None:
    x = input_value("x", X)
    loss = total(Round()(x, label="/quantise"))
    with pytest.raises(TrainabilityError, match=r"Round '/quantise' has no gradient"):
        backward({loss: ONE}, [x])


def test_a_truth_that_becomes_a_number_is_a_jump() -> None:
    x = input_value("x", X)
    loss = total(Cast("f32")(Greater()(x, constant(np.float32(0)), label="gate")))
    with pytest.raises(TrainabilityError, match="Greater 'gate' has no gradient"):
        backward({loss: ONE}, [x])


def test_choosing_by_a_truth_is_none() -> None:
    x = input_value("x", X)
    zero = constant(np.float32(0))
    loss = total(Where()(Greater()(x, zero), x, Mul()(x, constant(np.float32(0.5)))))
    (found,) = run(gradient(loss, x), x=[1, -2, 3])
    np.testing.assert_array_equal(found, [1, 0.5, 1])


def test_what_is_taken_for_granted_passes_gradients_on() -> None:
    x = input_value("x", X)
    sure = constant(np.asarray(True))
    loss = total(Mul()(Expect(True, "/if")(x, sure), constant(np.float32(3))))
    (found,) = run(gradient(loss, x), x=[1, -2, 3])
    np.testing.assert_array_equal(found, [3, 3, 3])


def test_control_flow_is_named_before_anything_runs() -> None:
    x = input_value("x", X)
    branch = If.giving((X,), then_branch="a", else_branch="b")
    loss = total(branch(constant(np.asarray(True)), x, label="/choice"))
    with pytest.raises(TrainabilityError, match="If '/choice' has no gradient"):
        backward({loss: ONE}, [x])


def test_control_flow_beside_the_way_back_does_not_matter() -> None:
    x, aside = input_value("x", X), input_value("aside", X)
    branch = If.giving((X,), then_branch="a", else_branch="b")
    loss = total(Mul()(x, branch(constant(np.asarray(True)), aside)))
    assert backward({loss: ONE}, [x]).keys() == {x}


def test_scales_of_a_resize_are_not_trained() -> None:
    x, scales = input_value("x", X), input_value("scales", TensorType(DType.F32, (1,)))
    loss = total(Resize((6,), "linear")(x, scales, label="/up"))
    with pytest.raises(TrainabilityError, match=r"Resize '/up' .* its scales"):
        backward({loss: ONE}, [x, scales])
