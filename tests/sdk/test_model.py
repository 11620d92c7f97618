"""What users see of a model before they run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise.dims import symbol
from edgewise.format.write import write_bytes
from edgewise.ir.graph import Graph, constant, input_value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ops import Conv, MatMul, PackPanels, Relu
from edgewise.types import DType, TensorType

F32 = DType.F32
N = symbol("N")
WEIGHT = np.arange(5 * 3 * 3 * 3, dtype=np.float32).reshape(5, 3, 3, 3)
BIAS = np.arange(5, dtype=np.float32)


def example() -> ew.Model:
    packing = PackPanels(axes=(2, 3, 1, 0))
    packed = packing.reference(WEIGHT)
    infos = {
        "conv.weight": VariableInfo(
            "conv.weight",
            TensorType(F32, packed.shape),
            Role.PARAMETER,
            packed,
            TensorType(F32, WEIGHT.shape),
            packing,
        ),
        "conv.bias": VariableInfo(
            "conv.bias", TensorType(F32, (5,)), Role.PARAMETER, BIAS
        ),
        "seen": VariableInfo("seen", TensorType(DType.I64, ()), Role.STATE),
    }
    x = input_value("image", TensorType(F32, (N, 8, 8, 3)))
    w, b = (variable_value(k, infos[k].type) for k in ("conv.weight", "conv.bias"))
    conv = Conv(
        channels=5,
        kernel=(3, 3),
        strides=(1, 1),
        pads=(1, 1, 1, 1),
        dilations=(1, 1),
        groups=1,
        activation="none",
        alpha=0.0,
        beta=0.0,
    )(x, w, None, b, None, label="/conv")
    return ew.Model(Module({"infer": Graph((x,), (Relu()(conv),), ("y",))}, infos))


def test_inputs_and_outputs_have_names_types_and_shapes() -> None:
    model = example()
    assert model.inputs == (ew.TensorInfo("image", F32, ("N", 8, 8, 3)),)
    assert model.outputs == (ew.TensorInfo("y", F32, ("N", 8, 8, 5)),)


def test_parameters_have_the_names_and_shapes_of_the_source() -> None:
    parameters = example().parameters()
    assert list(parameters) == ["conv.weight", "conv.bias"]
    np.testing.assert_array_equal(parameters["conv.weight"], WEIGHT)
    np.testing.assert_array_equal(parameters["conv.bias"], BIAS)


def test_a_model_is_the_same_after_save_and_load(tmp_path: Path) -> None:
    model, path = example(), tmp_path / "m.ew"
    assert model.path is None
    model.save(path)
    ew.check(path)
    for again in (ew.load(path), ew.load(str(path)), ew.Model.load(path)):
        assert again.path == str(path)
        assert write_bytes(again.module) == write_bytes(model.module)


def test_the_summary_shows_shapes_parameters_and_work() -> None:
    rows = [line.split() for line in example().summary().splitlines()]
    macs = f"{8 * 8 * 5 * 27:,}"
    assert rows[0] == ["op", "name", "output", "params", "MACs"]
    assert rows[1] == ["conv", "/conv", "f32[N,", "8,", "8,", "5]", "140", macs]
    assert rows[2] == ["relu", "f32[N,", "8,", "8,", "5]", "0", "0"]
    assert rows[3] == ["total", "140", macs]


def test_the_summary_says_so_where_sizes_of_one_do_not_fit() -> None:
    x = input_value("x", TensorType(F32, (N, N)))
    y = MatMul()(x, constant(np.zeros((4, 4), np.float32)))
    model = ew.Model(Module({"infer": Graph((x,), (y,), ("y",))}, {}))
    assert [line.split()[-1] for line in model.summary().splitlines()][1:] == ["-"] * 2


def test_a_module_without_infer_has_no_inputs() -> None:
    with pytest.raises(ew.EdgewiseError, match="no function 'infer'"):
        ew.Model(Module({}, {})).inputs  # noqa: B018 - the property raises


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.ew"
    with pytest.raises(ew.ModelFormatError, match="No such file") as caught:
        ew.load(path)
    assert caught.value.path == str(path)
    assert str(caught.value).startswith(str(path))


def test_loading_imports_no_flatbuffers(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    example().save(path)
    script = "import sys, edgewise; edgewise.load(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True
    )
    assert "flatbuffers" not in done.stdout.split()
