"""Attention and what stands around it, in every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from edgewise.convert import convert_module
from edgewise.errors import ModelFormatError
from edgewise.ir.op import Array

Check = Callable[..., Any]
RNG = np.random.default_rng(3)


def normal(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def attention(
    q: Array,
    k: Array,
    v: Array,
    allowed: Array | None = None,
    bias: Array | None = None,
    **options: float,
) -> Array:
    """The operator's text in double precision; a query that sees nothing gives 0."""
    groups = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype("f8"), groups, axis=1) for x in (k, v))
    scale = options.get("scale", 1 / np.sqrt(q.shape[-1]))
    scores = q.astype("f8") @ np.swapaxes(k, 2, 3) * scale
    if cap := options.get("softcap"):
        scores = cap * np.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    peak = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(peak), 0, peak))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


def run(
    build: Check, evaluated: Check, *inputs: Array | None, opset: int = 24, **given: Any
) -> list[Array]:
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    count = given.pop("outputs", 1)
    results = [f"y{i}" for i in range(count)]
    node = helper.make_node("Attention", names, results, name="look", **given)
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    module = convert_module(build([node], feeds, results, opset=opset)).module
    return list(evaluated(module, feeds).values())


def close(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got, want, 2e-5, 2e-5)


def test_heads_that_share_keys_look_at_the_same_ones(
    build: Check, module_outputs: Check
) -> None:
    q, k, v = normal(2, 6, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 3)
    (y,) = run(build, module_outputs, q, k, v)
    close(y, attention(q, k, v))


def test_packed_heads_give_packed_heads(build: Check, module_outputs: Check) -> None:
    q, k, v = normal(2, 6, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 3)
    packed = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (q, k, v)]
    (y,) = run(build, module_outputs, *packed, q_num_heads=6, kv_num_heads=2)
    close(y, attention(q, k, v).transpose(0, 2, 1, 3).reshape(2, 5, 18))


@pytest.mark.parametrize("scale", [0.25, 2.0])
def test_a_cap_and_a_scale(build: Check, module_outputs: Check, scale: float) -> None:
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 3, 4), normal(1, 2, 3, 4)
    (y,) = run(build, module_outputs, q, k, v, scale=scale, softcap=1.5)
    close(y, attention(q, k, v, scale=scale, softcap=1.5))


def test_a_query_sees_the_cache_and_no_later_key(
    build: Check, module_outputs: Check
) -> None:
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 3, 4), normal(1, 2, 3, 4)
    pk, pv = normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    y, key, value = run(
        build, module_outputs, q, k, v, None, pk, pv, is_causal=1, outputs=3
    )
    np.testing.assert_array_equal(key, np.concatenate((pk, k), 2))
    np.testing.assert_array_equal(value, np.concatenate((pv, v), 2))
    close(y, attention(q, key, value, np.tri(3, 8, 5, bool)))


def test_masks_of_truth_values_and_of_numbers_come_together_with_the_order(
    build: Check, module_outputs: Check
) -> None:
    q, k, v = normal(2, 2, 4, 4), normal(2, 2, 4, 4), normal(2, 2, 4, 4)
    truth = RNG.random((2, 1, 4, 4)) < 0.7
    (y,) = run(build, module_outputs, q, k, v, truth, is_causal=1)
    close(y, attention(q, k, v, truth & np.tri(4, dtype=bool)))
    bias = normal(4, 4)
    (y,) = run(build, module_outputs, q, k, v, bias, is_causal=1)
    close(y, attention(q, k, v, np.tri(4, dtype=bool), bias))


def test_a_query_that_may_see_nothing_gives_zeros(
    build: Check, module_outputs: Check
) -> None:
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    truth = np.ones((3, 5), bool)
    truth[1] = False
    y, _, _, weights = run(
        build, module_outputs, q, k, v, truth, qk_matmul_output_mode=3, outputs=4
    )
    assert not y[:, :, 1].any()
    assert not weights[:, :, 1].any()
    close(y, attention(q, k, v, truth))


def test_a_mask_that_ends_early_forbids_the_rest(
    build: Check, module_outputs: Check
) -> None:
    q, k, v = normal(1, 1, 3, 4), normal(1, 1, 5, 4), normal(1, 1, 5, 4)
    truth = np.ones((3, 3), bool)
    (y,) = run(build, module_outputs, q, k, v, truth)
    close(y, attention(q, k[:, :, :3], v[:, :, :3]))


def test_padded_keys_are_not_seen_and_the_order_counts_from_their_end(
    build: Check, module_outputs: Check
) -> None:
    q, k, v = normal(2, 1, 2, 4), normal(2, 1, 6, 4), normal(2, 1, 6, 4)
    valid = np.array([3, 6])
    (y,) = run(build, module_outputs, q, k, v, None, None, None, valid, is_causal=1)
    places = np.arange(2)[:, None] + (valid - 2)[:, None, None, None]
    keys = np.arange(6)
    allowed = (keys <= places) & (keys < valid[:, None, None, None])
    close(y, attention(q, k, v, allowed))


@pytest.mark.parametrize(("left", "right"), [(2, -1), (-1, 1), (1, 0), (0, 0)])
def test_a_window_slides_along_the_keys(
    build: Check, module_outputs: Check, left: int, right: int
) -> None:
    q, k, v = normal(1, 2, 5, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    window = {"left_window_size": left, "right_window_size": right}
    (y,) = run(build, module_outputs, q, k, v, opset=25, **window)
    ahead = np.arange(5) - np.arange(5)[:, None]
    low = ahead >= -left if left >= 0 else True
    high = ahead <= right if right >= 0 else True
    close(y, attention(q, k, v, np.broadcast_to(low & high, (5, 5))))


@pytest.mark.parametrize(("name", "size"), [("N", 2), ("T", 5)])
def test_lengths_may_be_open(
    build: Check, module_outputs: Check, name: str, size: int
) -> None:
    q, k, v = normal(2, 2, 5, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 4)
    feeds = {"q": q, "k": k, "v": v}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
    shape = [name if n == size else n for n in (2, 2, 5, 4)]
    shape[1] = 2
    shapes = dict.fromkeys(feeds, shape)
    module = convert_module(build([node], feeds, ["y"], opset=23, shapes=shapes)).module
    close(module_outputs(module, feeds)["y"], attention(q, k, v, np.tri(5, dtype=bool)))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"q_num_heads": 4, "kv_num_heads": 4}, "4 heads do not share 6"),
        ({}, "q_num_heads"),
        ({"q_num_heads": 3, "kv_num_heads": 2}, "3 heads of queries do not share 2"),
        (
            {"q_num_heads": 2, "kv_num_heads": 2, "qk_matmul_output_mode": 4},
            "qk_matmul_output_mode=4",
        ),
    ],
)
def test_forms_that_make_no_sense_are_refused(
    build: Check, module_outputs: Check, given: dict[str, int], reason: str
) -> None:
    x = normal(1, 3, 6)
    with pytest.raises(ModelFormatError, match=f"look.*{reason}"):
        run(build, module_outputs, x, x, x, **given)


def test_a_cache_needs_keys_and_values(build: Check, module_outputs: Check) -> None:
    x = normal(1, 2, 3, 4)
    with pytest.raises(ModelFormatError, match="past_key and past_value"):
        run(build, module_outputs, x, x, x, None, x)


def flex(build: Check, score: onnx.GraphProto | None) -> onnx.ModelProto:
    feeds = {name: np.zeros((1, 2, 3, 4), "f4") for name in "qkv"}
    node = helper.make_node("FlexAttention", [*"qkv"], ["y"], domain="ai.onnx.preview")
    if score is not None:
        node.attribute.append(helper.make_attribute("score_mod", score))
    model = build([node], feeds, ["y"], opset=26)
    model.opset_import.append(helper.make_opsetid("ai.onnx.preview", 1))
    return model


def graph_of(op: str) -> onnx.GraphProto:
    scores = [helper.make_tensor_value_info("s", 1, [1, 2, 3, 3])]
    out = [helper.make_tensor_value_info("t", 1, None)]
    return helper.make_graph([helper.make_node(op, ["s"], ["t"])], "m", scores, out)


def test_a_graph_may_change_the_scores(build: Check, module_outputs: Check) -> None:
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 3, 4), normal(1, 2, 3, 4)
    module = convert_module(flex(build, graph_of("Neg"))).module
    y = module_outputs(module, {"q": q, "k": k, "v": v})["y"]
    close(y, attention(q, k, v, scale=-0.5))


def test_a_graph_that_changes_their_shape_is_refused(build: Check) -> None:
    with pytest.raises(ModelFormatError, match="score_mod makes"):
        convert_module(flex(build, graph_of("Shape")))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4])
def test_rotary_positions_turn_pairs(
    build: Check, module_outputs: Check, interleaved: int, turned: int
) -> None:
    x, positions = normal(2, 3, 5, 8), np.array([[4, 0, 1, 2, 9], [3, 3, 0, 7, 8]])
    half = (turned or 8) // 2
    angles = RNG.uniform(-3, 3, (10, half)).astype("f4")
    feeds = {"x": x, "c": np.cos(angles), "s": np.sin(angles), "p": positions}
    options = {"interleaved": interleaved, "rotary_embedding_dim": turned}
    node = helper.make_node("RotaryEmbedding", [*feeds], ["y"], **options)
    y = module_outputs(
        convert_module(build([node], feeds, ["y"], opset=23)).module, feeds
    )["y"]
    pairs = x[..., : half * 2]
    pairs = (
        pairs.reshape(2, 3, 5, half, 2)
        if interleaved
        else np.stack((pairs[..., :half], pairs[..., half:]), -1)
    )
    spun = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)[positions][
        :, None
    ]
    parts = np.stack((spun.real, spun.imag), -1 if interleaved else -2)
    close(y[..., : half * 2], parts.reshape(2, 3, 5, half * 2))
    np.testing.assert_array_equal(y[..., half * 2 :], x[..., half * 2 :])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_is_written_where_each_sample_stands(
    build: Check, module_outputs: Check, mode: str
) -> None:
    cache, update = normal(2, 3, 6, 4), normal(2, 3, 2, 4)
    starts = np.array([1, 4 if mode == "linear" else 5])
    feeds = {"cache": cache, "update": update, "starts": starts}
    node = helper.make_node("TensorScatter", [*feeds], ["y"], mode=mode)
    module = convert_module(build([node], feeds, ["y"], opset=24)).module
    want = cache.copy()
    for n, start in enumerate(starts):
        for j in range(2):
            want[n, :, (start + j) % 6] = update[n, :, j]
    np.testing.assert_array_equal(module_outputs(module, feeds)["y"], want)


def test_swiglu_gates_and_wants_one_shape(build: Check, module_outputs: Check) -> None:
    a, b = normal(3, 7), normal(3, 7)
    node = helper.make_node("SwiGLU", ["a", "b"], ["y"], alpha=0.5)
    feeds = {"a": a, "b": b}
    module = convert_module(build([node], feeds, ["y"], opset=28)).module
    close(module_outputs(module, feeds)["y"], a / (1 + np.exp(-0.5 * a)) * b)
    with pytest.raises(ModelFormatError, match="want one shape"):
        convert_module(build([node], {"a": a, "b": b[:1]}, ["y"], opset=28))
