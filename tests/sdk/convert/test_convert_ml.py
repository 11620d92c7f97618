"""Operators of ai.onnx.ml give what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import helper

from edgewise.convert import convert
from edgewise.errors import ModelFormatError, UnsupportedOpError

Check = Callable[..., Any]
X = np.array([[1, 2], [-1, 0.5], [0, 0], [0.25, np.nan]], "f4")
FOREST: Mapping[str, Any] = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2],
    "nodes_featureids": [0, 0, 0, 1, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0, 0.3, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * 2,
    "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
    "nodes_missing_value_tracks_true": [0, 0, 0, 1, 0, 0],
}


def votes(prefix: str, ids: list[int], weights: list[float]) -> dict[str, Any]:
    """Votes of the four leaves."""
    return {
        f"{prefix}_treeids": [0, 0, 1, 1],
        f"{prefix}_nodeids": [1, 2, 1, 2],
        f"{prefix}_ids": ids,
        f"{prefix}_weights": weights,
    }


def model(build: Check, op: str, feeds: Mapping[str, Any], **attributes: Any) -> Any:
    outputs = ["label", "scores"] if op.endswith("Classifier") else ["y"]
    node = helper.make_node(op, list(feeds), outputs, domain="ai.onnx.ml", **attributes)
    made = build([node], feeds, outputs)
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return made


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Binarizer", {"threshold": 0.5}),
        ("Scaler", {"offset": [1.0, -2.0], "scale": [0.5, 3.0]}),
        ("Normalizer", {"norm": "MAX"}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        (
            "Imputer",
            {"imputed_value_floats": [7.0, 8.0], "replaced_value_float": np.nan},
        ),
        (
            "LinearRegressor",
            {
                "coefficients": [1.0, 2.0, -1.0, 0.5],
                "intercepts": [0.1, 0.2],
                "targets": 2,
            },
        ),
        ("OneHotEncoder", {"cats_int64s": [0, 1, 2]}),
        ("LabelEncoder", {"keys_floats": [0.0, 1.0], "values_int64s": [5, 6]}),
        (
            "LabelEncoder",
            {"keys_floats": [2.0], "values_floats": [9.0], "default_float": 1.5},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_features(op: str, attributes: Any, build: Check, agree: Check) -> None:
    finite = X if op == "Imputer" else np.nan_to_num(X)
    agree(model(build, op, {"x": finite}, **attributes), {"x": finite})


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("classes", [1, 3])
def test_linear_classifiers(
    classes: int, post: str, build: Check, agree: Check
) -> None:
    x = np.nan_to_num(X)
    attributes = {
        "coefficients": [1.0, -2.0, 0.3, 0.4, 0.2, 0.2][: 2 * classes],
        "intercepts": [0.5, 0.1, 0.0][:classes],
        "classlabels_ints": [10, 20, 30][: max(classes, 2)],
        "post_transform": post,
    }
    agree(model(build, "LinearClassifier", {"x": x}, **attributes), {"x": x})


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_regression_trees(aggregate: str, build: Check, agree: Check) -> None:
    attributes = {
        **FOREST,
        **votes("target", [0, 1, 1, 0], [0.25, 0.75, -0.125, 0.5]),
        "n_targets": 2,
        "aggregate_function": aggregate,
    }
    agree(model(build, "TreeEnsembleRegressor", {"x": X}, **attributes), {"x": X})


def test_regression_trees_over_a_base(build: Check, agree: Check) -> None:
    attributes = {
        **FOREST,
        **votes("target", [0] * 4, [0.25, 0.75, -0.125, 0.5]),
        "base_values": [1.0],
        "n_targets": 1,
    }
    agree(model(build, "TreeEnsembleRegressor", {"x": X}, **attributes), {"x": X})


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("weights", [[0.2, 0.7, 0.1, 0.6], [-0.2, 0.7, 0.1, -0.6]])
def test_a_classifier_of_one_score(
    weights: list[float], post: str, build: Check, agree: Check
) -> None:
    attributes = {
        **FOREST,
        **votes("class", [0] * 4, weights),
        "classlabels_strings": ["no", "yes"],
        "post_transform": post,
    }
    agree(model(build, "TreeEnsembleClassifier", {"x": X}, **attributes), {"x": X})


def test_a_classifier_of_many_classes(build: Check, agree: Check) -> None:
    attributes = {
        **FOREST,
        **votes("class", [0, 1, 2, 0], [0.5, 0.25, 0.75, 0.125]),
        "classlabels_int64s": [7, 8, 9],
    }
    agree(model(build, "TreeEnsembleClassifier", {"x": X}, **attributes), {"x": X})


@pytest.mark.parametrize(
    "attributes",
    [
        {"nodes_truenodeids": [9, 0, 0, 1, 0, 0]},
        {"nodes_modes": ["BRANCH_ODD", "LEAF", "LEAF"] * 2},
        {"nodes_values": [0.5]},
        {"target_nodeids": [1, 2, 1, 7]},
    ],
)
def test_broken_trees_are_refused(attributes: Any, build: Check) -> None:
    good = {**FOREST, **votes("target", [0] * 4, [1.0] * 4)}
    broken = model(build, "TreeEnsembleRegressor", {"x": X}, **good | attributes)
    with pytest.raises(ModelFormatError, match="TreeEnsembleRegressor"):
        convert(broken)


def test_an_operator_that_is_not_here_is_named(build: Check) -> None:
    with pytest.raises(UnsupportedOpError, match=r"ai\.onnx\.ml\.SVMRegressor"):
        convert(model(build, "SVMRegressor", {"x": X}))


def test_features_are_picked_along_the_last_axis(build: Check, agree: Check) -> None:
    feeds = {"x": np.arange(4, dtype="f4"), "i": np.array([[1, 3]])}
    agree(model(build, "ArrayFeatureExtractor", feeds), feeds)
