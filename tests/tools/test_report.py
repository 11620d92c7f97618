"""What a file is said to hold."""

from __future__ import annotations

from pathlib import Path

import edgewise as ew
from edgewise.border import TensorInfo
from edgewise.tools.report import (
    ConstantReport,
    FunctionReport,
    VariableReport,
    report,
    shape_text,
)
from edgewise.types import DType


def test_a_report_counts_what_is_there(chain: ew.Model, tmp_path: Path) -> None:
    path = tmp_path / "chain.ew"
    chain.save(path)
    found = report(path, {"N": 5})
    assert found.bytes == path.stat().st_size == sum(found.sections.values())
    assert [info.name for info in found.inputs + found.outputs] == ["x", "y"]
    assert found.functions == {
        "infer": FunctionReport({"log": 1, "mul": 1, "reshape": 1, "relu": 1}, 0),
        "prepare": FunctionReport({"mul": 1}, 1),
    }
    assert found.variables == (
        VariableReport("derived", "f32", 1, 4, 16),
        VariableReport("parameter", "f32", 1, 4, 16),
    )
    assert found.constants == (ConstantReport("f32", 1, 4, 16),)
    assert found.sizes == {"N": 5}
    assert found.metadata["note"] == "made by hand"


def test_views_are_no_work_and_kernels_make_one_segment(
    chain: ew.Model, tmp_path: Path
) -> None:
    path = tmp_path / "chain.ew"
    chain.save(path)
    found = report(path)
    assert found.segments == ((True, 3, "", 1),)
    assert found.views == 1
    assert sum(found.functions["infer"].ops.values()) == 3 + found.views


def test_a_size_that_takes_a_long_rule_to_tell_is_cut() -> None:
    rule = "floor((H + 31) / 32) * floor((W + 31) / 32)"
    text = shape_text(TensorInfo("y", DType.F32, ("N", rule, 85)))
    assert text == "f32[N, floor((H + 31) / 32) * floor((W…, 85]"


def test_figures_are_plain(chain: ew.Model, tmp_path: Path) -> None:
    path = tmp_path / "chain.ew"
    chain.save(path)
    figures = report(path).figures()
    assert figures["inputs"] == [{"name": "x", "dtype": "f32", "shape": ["N", 4]}]
    assert figures["outputs"] == [{"name": "y", "dtype": "f32", "shape": ["4*N"]}]
