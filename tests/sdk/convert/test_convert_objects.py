"""Strings, sequences and optionals of ONNX; sparse and other odd constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewise.convert import convert
from edgewise.errors import (
    EdgewiseError,
    ModelFormatError,
    ShapeError,
    UnsupportedOpError,
)
from edgewise.ops.text import texts
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session

Check = Callable[..., Any]
F, I = TensorProto.FLOAT, TensorProto.INT64  # noqa: E741 - short names of types


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    with Session(convert(model)) as session:
        return session.run(feeds)


def over(
    nodes: list[onnx.NodeProto], inputs: Mapping[str, onnx.TypeProto], *outputs: str
) -> onnx.ModelProto:
    """A model over inputs of any types."""
    graph = helper.make_graph(
        nodes,
        "objects",
        [helper.make_value_info(name, type_) for name, type_ in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    sets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


TENSOR = helper.make_tensor_type_proto(F, ["N", 2])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)
OPTIONAL = helper.make_optional_type_proto(TENSOR)
A, B = np.ones((3, 2), "f4"), np.zeros((1, 2), "f4")


def test_a_sequence_is_joined_and_asked(build: Check) -> None:
    nodes = [
        node("ConcatFromSequence", "xs", "joined", axis=0),
        node("SequenceLength", "xs", "count"),
        node("SequenceAt", "xs last", "tail"),
        node("Constant", "", "last", value_int=-1),
        node("Relu", "tail", "y"),
    ]
    model = over(nodes, {"xs": SEQUENCE}, "joined", "count", "y")
    for given in ([A, B], [B], [A, A, B]):
        got = run(model, {"xs": given})
        np.testing.assert_array_equal(got["joined"], np.concatenate(given))
        assert got["count"] == len(given)
        np.testing.assert_array_equal(got["y"], given[-1])


def test_a_sequence_is_made_changed_and_given_back() -> None:
    nodes = [
        node("SequenceConstruct", "a b", "s"),
        node("Constant", "", "one", value_int=1),
        node("SequenceInsert", "s a one", "t"),
        node("SequenceErase", "t", "u"),
        node("Identity", "u", "xs"),
        node("SplitToSequence", "a", "rows", axis=0, keepdims=0),
    ]
    other = helper.make_tensor_type_proto(F, ["M", 2])
    got = run(over(nodes, {"a": TENSOR, "b": other}, "xs", "rows"), {"a": A, "b": B})
    assert [x.shape for x in got["xs"]] == [(3, 2), (3, 2)]
    assert [x.shape for x in got["rows"]] == [(2,)] * 3


def test_a_place_outside_a_sequence_ends_the_run() -> None:
    nodes = [
        node("Constant", "", "place", value_int=5),
        node("SequenceAt", "xs place", "y"),
    ]
    with pytest.raises(EdgewiseError):
        run(over(nodes, {"xs": SEQUENCE}, "y"), {"xs": [A]})


def test_a_tensor_of_unknown_rank_is_refused() -> None:
    bare = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F, None))
    nodes = [
        node("Constant", "", "place", value_int=0),
        node("SequenceAt", "xs place", "y"),
    ]
    with pytest.raises(UnsupportedOpError, match="number of axes"):
        convert(over(nodes, {"xs": bare}, "y"))


def test_an_optional_may_be_empty() -> None:
    nodes = [node("OptionalHasElement", "x", "has")]
    model = over(nodes, {"x": OPTIONAL}, "has")
    assert run(model, {"x": A})["has"]
    assert not run(model, {"x": None})["has"]


def test_an_optional_is_opened_and_closed() -> None:
    nodes = [
        node("OptionalGetElement", "x", "t"),
        node("Neg", "t", "u"),
        node("Optional", "u", "y"),
        node("Optional", "", "none", type=TENSOR),
    ]
    model = over(nodes, {"x": OPTIONAL}, "y", "none")
    got = run(model, {"x": A})
    np.testing.assert_array_equal(got["y"], -A)
    assert got["none"] is None
    with pytest.raises(EdgewiseError):
        run(model, {"x": None})


def test_every_tensor_of_a_sequence_is_mapped(build: Check) -> None:
    """The graph within reads what lies around it as well."""
    inner = helper.make_graph(
        [node("Mul", "t factor", "u"), node("Add", "u extra", "v")],
        "inner",
        [onnx.ValueInfoProto(name=name) for name in ("t", "extra")],
        [onnx.ValueInfoProto(name="v")],
    )
    nodes = [
        node("Constant", "", "factor", value_float=3.0),
        node("SequenceMap", "xs b", "ys", body=inner),
    ]
    model = over(nodes, {"xs": SEQUENCE, "b": TENSOR}, "ys")
    got = run(model, {"xs": [A, 2 * A], "b": B + 1})["ys"]
    assert run(model, {"xs": [], "b": B})["ys"] == []
    for result, given in zip(got, (A, 2 * A), strict=True):
        np.testing.assert_array_equal(result, 3 * given + 1)


def test_strings_are_split_joined_normalised_and_matched(build: Check) -> None:
    words = texts(["Ab c", "d", "Ab"])
    nodes = [
        node("StringSplit", "x", "parts counts"),
        node("StringConcat", "x suffix", "longer"),
        node("StringNormalizer", "x", "kept", case_change_action="LOWER",
             is_case_sensitive=1, stopwords=["d"]),
        node("RegexFullMatch", "x", "match", pattern="[A-Z].*"),
        node("Equal", "x x", "same"),
        node("Gather", "x places", "picked"),
    ]  # fmt: skip
    weights = {"suffix": texts(["!"]), "places": np.array([2, 0], "i8")}
    names = ["parts", "counts", "longer", "kept", "match", "same", "picked"]
    model = build(nodes, {"x": words}, names, weights=weights, opset=20)
    got = run(model, {"x": words})
    assert got["parts"].tolist() == [["Ab", "c"], ["d", ""], ["Ab", ""]]
    assert got["counts"].tolist() == [2, 1, 1]
    assert got["longer"].tolist() == ["Ab c!", "d!", "Ab!"]
    assert got["kept"].tolist() == ["ab c", "ab"]
    assert got["match"].tolist() == [True, False, True]
    assert got["same"].all()
    assert got["picked"].tolist() == ["Ab", "Ab c"]


def test_a_pattern_that_re2_does_not_know_is_refused(build: Check) -> None:
    words = texts(["a"])
    nodes = [node("RegexFullMatch", "x", "y", pattern=r"(?P>word)")]
    with pytest.raises(UnsupportedOpError, match="pattern"):
        convert(build(nodes, {"x": words}, ["y"], opset=20))


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skips", [0, 1, 3])
def test_ngrams_are_counted(
    mode: str, skips: int, agree_on_node: Check, rng: np.random.Generator
) -> None:
    agree_on_node(
        "TfIdfVectorizer",
        rng.integers(0, 4, (3, 9)),
        mode=mode,
        min_gram_length=1,
        max_gram_length=3,
        max_skip_count=skips,
        ngram_counts=[0, 3, 7],
        ngram_indexes=[0, 2, 1, 4, 3, 5],
        pool_int64s=[1, 2, 3, 1, 2, 0, 3, 1, 1, 2],
        weights=[1.0, 2.0, 0.5, 3.0, 1.5, 0.25],
    )


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({"value_float": 1.5}, np.float32(1.5)),
        ({"value_floats": [1.5, 2]}, np.array([1.5, 2], "f4")),
        ({"value_int": 7}, np.int64(7)),
        ({"value_ints": [1, 2]}, np.array([1, 2], "i8")),
        ({"value_string": "ü"}, texts(["ü"], ())),
        ({"value_strings": ["a", ""]}, texts(["a", ""])),
    ],
)
def test_a_constant_in_each_of_its_forms(attributes: Any, wanted: Any) -> None:
    got = run(over([node("Constant", "", "y", **attributes)], {}, "y"), {})["y"]
    assert (got.dtype, got.shape) == (np.asarray(wanted).dtype, np.shape(wanted))
    assert got.tolist() == wanted.tolist()


def sparse(indices: Any, dims: list[int], count: int = 2) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.arange(1, count + 1, dtype="f4"), "w")
    places = numpy_helper.from_array(np.array(indices, "i8"))
    return helper.make_sparse_tensor(values, places, dims)


DENSE = np.array([[0, 1, 0], [2, 0, 0]], "f4")


@pytest.mark.parametrize("indices", [[1, 3], [[0, 1], [1, 0]]])
def test_a_sparse_constant_and_initializer_are_dense(
    indices: Any, build: Check
) -> None:
    held = sparse(indices, [2, 3])
    nodes = [node("Constant", "", "c", sparse_value=held), node("Add", "x c", "y")]
    got = run(build(nodes, {"x": DENSE}, ["y"]), {"x": DENSE})["y"]
    np.testing.assert_array_equal(got, 2 * DENSE)
    model = build([node("Add", "x w", "y")], {"x": DENSE}, ["y"])
    model.graph.sparse_initializer.append(held)
    np.testing.assert_array_equal(run(model, {"x": DENSE})["y"], 2 * DENSE)
    assert list(convert(model).parameters()) == ["w"]


@pytest.mark.parametrize(
    ("indices", "dims"),
    [
        ([1, 6], [2, 3]),
        ([-1, 0], [2, 3]),
        ([[0, 3], [0, 0]], [2, 3]),
        ([[0], [1]], [2, 3]),
        ([0], [2, 3]),
        ([0, 1], [-2, 3]),
        ([0, 1], [1 << 40, 1 << 40]),
    ],
)
def test_a_broken_sparse_tensor_is_refused(
    indices: Any, dims: Any, build: Check
) -> None:
    model = build([node("Add", "x w", "y")], {"x": DENSE}, ["y"])
    model.graph.sparse_initializer.append(sparse(indices, dims))
    with pytest.raises(ModelFormatError, match="'w'"):
        convert(model)


def test_a_value_may_be_given_out_twice_and_a_weight_too(build: Check) -> None:
    nodes = [node("Neg", "x", "y"), node("Identity", "y", "z")]
    model = build(nodes, {"x": DENSE}, ["y", "z", "w"], weights={"w": DENSE})
    got = run(model, {"x": DENSE})
    np.testing.assert_array_equal(got["y"], -DENSE)
    np.testing.assert_array_equal(got["z"], -DENSE)
    np.testing.assert_array_equal(got["w"], DENSE)


def test_two_outputs_of_one_name_are_refused(build: Check) -> None:
    model = build([node("Neg", "x", "y")], {"x": DENSE}, ["y", "y"])
    with pytest.raises(ModelFormatError, match="outputs"):
        convert(model)


def test_texts_that_double_are_not_folded_and_end_the_run() -> None:
    nodes = [node("Constant", "", "t0", value_strings=["abcd"])]
    nodes += [node("StringConcat", f"t{i} t{i}", f"t{i + 1}") for i in range(40)]
    graph = helper.make_graph(nodes, "g", [], [onnx.ValueInfoProto(name="t40")])
    opsets = [helper.make_opsetid("", 20)]
    made = convert(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    config = SessionConfig(memory_limit=1_000_000)
    with (
        Session(made, config=config) as session,
        pytest.raises(ShapeError, match="memory_limit"),
    ):
        session.run({})
