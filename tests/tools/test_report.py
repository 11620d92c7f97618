"""What a file is said to hold."""

from __future__ import annotations

from pathlib import Path

import edgewise as ew
from edgewise.tools.report import FunctionReport, VariableReport, report


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
    assert found.sizes == {"N": 5}
    assert found.metadata["note"] == "made by hand"


def test_views_are_no_work_and_kernels_make_one_segment(
    chain: ew.Model, tmp_path: Path
) -> None:
    path = tmp_path / "chain.ew"
    chain.save(path)
    (segment,) = report(path).segments
    assert segment == (True, 3, "", 1)


def test_figures_are_plain(chain: ew.Model, tmp_path: Path) -> None:
    path = tmp_path / "chain.ew"
    chain.save(path)
    figures = report(path).figures()
    assert figures["inputs"] == [{"name": "x", "dtype": "f32", "shape": ["N", 4]}]
    assert figures["outputs"] == [{"name": "y", "dtype": "f32", "shape": ["4*N"]}]
