"""Real architectures, at small sizes, give what onnxruntime gives."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from edgewise.convert import convert, convert_module
from edgewise.errors import UnsupportedOpError
from edgewise.ir.module import Module, Role

Check = Callable[..., Any]
FOLDER = Path(__file__).parents[3] / "benchmarks" / "models"
SKELETONS = sorted(path.stem for path in (FOLDER / "skeletons").glob("*.onnx"))
# Those whose reference takes a second or more.
LONG = {
    "efficientnet_b0",
    "efficientnet_lite0",
    "minilm_like_encoder",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "resnet18",
    "resnet18_bn",
    "resnet50",
    "vit_tiny_patch16_224",
    "yolo_tiny_like",
}
SIDE = 64  # pixels, in place of 224 or 320


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def filled(builder: ModuleType) -> Callable[[str], onnx.ModelProto]:
    """The model of a name, its images small."""
    made: dict[str, onnx.ModelProto] = {}

    def fill(name: str) -> onnx.ModelProto:
        if name not in made:
            model = builder.fill(FOLDER / "skeletons" / f"{name}.onnx")
            if name not in ("vit_tiny_patch16_224", "ds_cnn_kws"):
                shrink(model)
            made[name] = model
        return made[name]

    return fill


def shrink(model: onnx.ModelProto) -> None:
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if len(dims) == 4:
            dims[2].dim_value = dims[3].dim_value = SIDE


def feeds_of(model: onnx.ModelProto, batch: int = 1, steps: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    weights = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        sizes = {"N": batch, "T": steps}
        shape = [d.dim_value or sizes[d.dim_param] for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if "mask" in value.name:
            feeds[value.name] = np.ones(shape, dtype)
        elif dtype.kind == "f":
            feeds[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            feeds[value.name] = rng.integers(0, 100, shape).astype(dtype)
    return feeds


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in SKELETONS],
)
def test_a_model_agrees_with_onnxruntime(name: str, filled: Any, agree: Check) -> None:
    model = filled(name)
    agree(model, feeds_of(model))


@pytest.mark.parametrize("name", ["ds_cnn_kws", "bilstm_text"])
def test_open_sizes_stay_open(name: str, filled: Any, agree: Check) -> None:
    agree(filled(name), feeds_of(filled(name), batch=3, steps=9))


def ops(module: Module) -> Counter[str]:
    return Counter(node.op.name for node in module.functions["infer"].nodes())


@pytest.mark.parametrize(
    "name", [n for n in SKELETONS if "net" in n or n.startswith("mobile")]
)
def test_only_the_border_of_an_image_network_moves_data(name: str, filled: Any) -> None:
    counts = ops(convert_module(filled(name)).module)
    shuffles = 16 if "shuffle" in name else 0
    assert counts["transpose"] == 1 + shuffles
    assert counts["relu"] == counts["add"] == counts["batch_norm"] == 0
    assert counts["clip"] == counts["pack_panels"] == counts["pack_taps"] == 0


def test_a_transformer_is_made_of_few_ops(filled: Any) -> None:
    counts = ops(convert_module(filled("vit_tiny_patch16_224")).module)
    assert counts["linear"] == 4 * 12 + 1
    assert counts["layer_norm"] == 2 * 12 + 1
    assert counts["erf"] == counts["dim_value"] == 0
    assert counts["attention"] == 12
    assert counts["transpose"] == 1
    assert counts["matmul"] == counts["softmax"] == counts["slice"] == 0


@pytest.mark.parametrize("name", ["ds_cnn_kws", "resnet18_bn", "gru_kws"])
def test_parameters_are_those_of_the_file(name: str, filled: Any) -> None:
    model = filled(name)
    want = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    converted = convert(model)
    parameters = converted.parameters()
    statistics = [
        key
        for key, entry in converted.module.variables.items()
        if entry.role is Role.STATISTIC
    ]
    assert len(statistics) == (40 if name == "resnet18_bn" else 0)
    assert parameters
    assert set(parameters) <= set(want)
    for key, array in parameters.items():
        np.testing.assert_array_equal(array, want[key])


def test_a_batch_norm_is_derived_and_never_stored(filled: Any) -> None:
    module = convert_module(filled("resnet18_bn")).module
    derived = [v for v in module.variables.values() if v.role is Role.DERIVED]
    assert len(derived) == 40
    assert all(info.initial is None for info in derived)
    assert set(module.functions["prepare"].updates) == {v.key for v in derived}


def test_one_unknown_operator_refuses_the_whole_model(filled: Any) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(filled("ds_cnn_kws"))
    model.graph.node[-1].op_type = "Softmaxx"
    with pytest.raises(UnsupportedOpError, match=r"Softmaxx.*Softmax"):
        convert(model)


def test_weights_are_the_same_every_time(builder: ModuleType) -> None:
    path = FOLDER / "skeletons" / "ds_cnn_kws.onnx"
    first, second = builder.fill(path), builder.fill(path)
    assert first.SerializeToString() == second.SerializeToString()


def test_a_stripped_model_fills_to_the_same(
    builder: ModuleType, tmp_path: Path
) -> None:
    full = builder.fill(FOLDER / "skeletons" / "ds_cnn_kws.onnx")
    onnx.save(full, str(tmp_path / "full.onnx"))
    skeleton = builder.strip(tmp_path / "full.onnx")
    onnx.save(skeleton, str(tmp_path / "skeleton.onnx"))
    assert skeleton.ByteSize() < full.ByteSize() / 3
    again = builder.fill(tmp_path / "skeleton.onnx")
    assert again.SerializeToString() == full.SerializeToString()
