"""Operators that draw at random: by a seed, or anew at every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from edgewise.convert import ConvertConfig, convert, convert_module
from edgewise.errors import ModelFormatError, UnsupportedOpError
from edgewise.ir.op import Array
from edgewise.runtime.session import Session

Check = Callable[..., Any]
MANY = 20000
# Five standard deviations of a mean of MANY draws.
NEAR = 5 / np.sqrt(MANY)
DRAWING = ConvertConfig(random=True)


@pytest.fixture(name="draws")
def draws_fixture(build: Check) -> Check:
    """What one node draws in two runs of one session."""

    def draws(op: str, *inputs: Array, **attributes: Any) -> tuple[Array, Array]:
        feeds = {f"x{i}": x for i, x in enumerate(inputs)}
        node = helper.make_node(op, [*feeds], ["y"], name="draw", **attributes)
        with Session(convert(build([node], feeds, ["y"]), DRAWING)) as session:
            return session.run(feeds)["y"], session.run(feeds)["y"]

    return draws


@pytest.mark.parametrize(
    "op", ["RandomNormal", "RandomUniform", "RandomNormalLike", "Bernoulli"]
)
def test_a_draw_is_refused_unless_asked_for(build: Check, op: str) -> None:
    like = op.endswith("Like") or op == "Bernoulli"
    feeds = {"x": np.full((3, 5), 0.5, "f4")} if like else {}
    options = {} if like else {"shape": [3]}
    node = helper.make_node(op, [*feeds], ["y"], name="draw", **options)
    model = build([node], feeds, ["y"])
    with pytest.raises(UnsupportedOpError, match=rf"{op}.*draw.*random=True"):
        convert_module(model)
    convert_module(model, DRAWING)


def test_a_seed_gives_the_same_numbers_and_no_seed_gives_others(draws: Check) -> None:
    first, second = draws("RandomNormal", shape=[99], seed=3.5)
    np.testing.assert_array_equal(first, second)
    other, _ = draws("RandomNormal", shape=[99], seed=4.5)
    assert not np.array_equal(first, other)
    first, second = draws("RandomNormal", shape=[99])
    assert not np.array_equal(first, second)


def test_two_nodes_without_a_seed_draw_each_for_itself(build: Check) -> None:
    nodes = [
        helper.make_node("RandomUniform", [], [name], shape=[9]) for name in ("a", "b")
    ]
    with Session(convert(build(nodes, {}, ["a", "b"]), DRAWING)) as session:
        results = session.run({})
    assert not np.array_equal(results["a"], results["b"])


@pytest.mark.parametrize("code", [1, 10, 11, 16])
def test_uniform_numbers_stay_below_the_end(draws: Check, code: int) -> None:
    y, _ = draws(
        "RandomUniform", shape=[MANY], low=-1.0, high=3.0, dtype=code, seed=1.0
    )
    assert y.dtype == helper.tensor_dtype_to_np_dtype(code)
    wide = y.astype("f8")
    assert wide.min() >= -1
    assert wide.max() < 3
    assert abs(wide.mean() - 1) < 4 * NEAR


def test_normal_numbers_have_their_mean_and_spread(draws: Check) -> None:
    like = np.zeros((MANY // 4, 4), "f8")
    y, _ = draws("RandomNormalLike", like, mean=2.0, scale=0.5, seed=2.0)
    assert y.dtype == np.float64
    assert y.shape == like.shape
    assert abs(y.mean() - 2) < NEAR
    assert abs(y.std() - 0.5) < NEAR


def test_a_shape_with_a_negative_size_is_refused(draws: Check) -> None:
    with pytest.raises(ModelFormatError, match="sizes from 0 on"):
        draws("RandomNormal", shape=[-1])


def test_bernoulli_takes_each_chance_and_is_sure_at_the_ends(draws: Check) -> None:
    chances = np.repeat(np.array([0.0, 0.25, 1.0], "f4"), MANY).reshape(3, MANY)
    y, _ = draws("Bernoulli", chances, seed=5.0, dtype=TensorProto.INT32)
    assert y.dtype == np.int32
    assert not y[0].any()
    assert y[2].all()
    assert abs(y[1].mean() - 0.25) < NEAR


def test_multinomial_draws_classes_by_their_chances(draws: Check) -> None:
    chances = np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        logs = np.log(chances).astype("f4")
    y, _ = draws("Multinomial", logs, sample_size=MANY, seed=6.0, dtype=7)
    assert y.dtype == np.int64
    assert not y[1].any()
    shares = np.bincount(y[0], minlength=3) / MANY
    assert np.abs(shares - chances[0]).max() < NEAR


@pytest.mark.parametrize("late", [False, True])
def test_dropout_in_training_keeps_and_scales(build: Check, late: bool) -> None:
    x = np.ones(MANY, "f4")
    feeds = {"x": x, "ratio": np.array(0.25, "f4"), "training": np.array(True)}
    weights = {} if late else {key: feeds.pop(key) for key in ("ratio", "training")}
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "m"], seed=7)
    model = build([node], feeds, ["y", "m"], weights=weights)
    with Session(convert(model)) as session:
        y, mask = session.run(feeds).values()
        np.testing.assert_allclose(y, np.where(mask, x / 0.75, 0), 1e-6)
        assert abs(mask.mean() - 0.75) < NEAR
        if late:
            y, mask = session.run(feeds | {"training": np.array(False)}).values()
            np.testing.assert_array_equal(y, x)
            assert mask.all()
