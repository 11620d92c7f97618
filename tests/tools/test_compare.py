"""Finding the op that computes something else than its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgewise as ew
from edgewise.ops import Exp, Mul


def positive(rows: int) -> dict[str, Any]:
    return {"x": np.linspace(0.5, 2, 4 * rows, dtype=np.float32).reshape(rows, 4)}


@pytest.mark.parametrize("rows", [1, 3, 17])
def test_a_right_model_has_nothing_bad(chain: ew.Model, rows: int) -> None:
    report = ew.compare(chain, positive(rows))
    assert [row.op for row in report.rows] == ["log", "mul", "reshape", "relu"]
    assert [row.name for row in report.rows][:2] == ["logarithm", "scaled"]
    assert report.first_bad is None
    assert report.first_not_finite is None
    assert all(row.cosine > 0.999999 for row in report.rows)
    assert all(row.max_abs < 1e-5 for row in report.rows)


def test_only_the_wrong_op_is_bad(
    chain: ew.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    # prepare multiplies too, so there the reference must stay as it is.
    right = Mul.reference

    def wrong(self: Mul, a: Any, b: Any) -> Any:
        return right(self, a, b) + (a.ndim == 2)

    monkeypatch.setattr(Mul, "reference", wrong)
    report = ew.compare(chain, positive(2))
    bad = [row.name for row in report.rows if row.bad]
    assert bad == ["scaled"]
    assert report.first_bad is not None
    assert report.first_bad.max_abs == pytest.approx(1, abs=1e-5)


def test_the_first_nan_is_located_and_not_called_bad(chain: ew.Model) -> None:
    inputs = positive(2)
    inputs["x"][1, 2] = -1
    report = ew.compare(chain, inputs)
    assert report.first_bad is None
    assert report.first_not_finite is not None
    assert report.first_not_finite.name == "logarithm"


def test_a_nan_where_the_reference_has_none_is_bad(
    exponential: ew.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exp, "reference", lambda self, x: np.zeros_like(x))
    report = ew.compare(exponential, {"x": np.array([np.nan, 0, 1], np.float32)})
    assert report.first_bad is not None
    assert report.first_bad.max_abs == np.inf
    assert not report.first_bad.finite


def test_overflow_in_both_is_not_bad(exponential: ew.Model) -> None:
    report = ew.compare(exponential, {"x": np.array([1e3, -1e3, 0], np.float32)})
    assert report.first_bad is None
    assert report.first_not_finite is not None


def test_a_wrong_sign_of_infinity_is_bad(
    exponential: ew.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exp, "reference", lambda self, x: -np.exp(x))
    with np.errstate(over="ignore"):
        report = ew.compare(exponential, {"x": np.full(3, 1e3, np.float32)})
    assert report.first_bad is not None
    assert report.first_bad.max_abs == np.inf


def test_the_report_prints_a_line_for_each_op(chain: ew.Model) -> None:
    *lines, bad, odd = str(ew.compare(chain, positive(1))).splitlines()
    assert len(lines) == 2 + 4
    assert (bad, odd) == ("first bad: none", "first NaN or infinity: none")
    assert lines[0].split() == ["op", "name", "cosine", "max", "abs", "finite"]


def test_inputs_that_do_not_fit_are_refused(chain: ew.Model) -> None:
    with pytest.raises(ew.ShapeError, match="'x' is missing"):
        ew.compare(chain, {})
    with pytest.raises(ew.ShapeError, match="axis 1 is 4"):
        ew.compare(chain, {"x": np.ones((1, 5), np.float32)})
    with pytest.raises(ew.DTypeError, match="float64"):
        ew.compare(chain, {"x": np.ones((1, 4))})
