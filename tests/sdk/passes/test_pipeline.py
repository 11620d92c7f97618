"""All passes together: switches, order, reports."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from edgewise.convert import ConvertConfig
from edgewise.ir.graph import Value, constant
from edgewise.ops import Add, Conv, MatMul, Mul, PackPanels, Relu, Transpose
from edgewise.passes.pipeline import PassReport, optimise

SWITCHES = ("canonical", "fold", "share", "layout", "fuse", "lower")


@pytest.fixture
def module(t: Any) -> Any:
    """Something for every pass: two convolutions, a product, numbers that vanish."""

    def conv(x: Value, key: str) -> Value:
        image = Transpose((0, 2, 3, 1))(x)
        weight = PackPanels((2, 3, 1, 0))(t.w(3, 3, 1, 1, key=key))
        return Transpose((0, 3, 1, 2))(Conv(3, (1, 1))(image, weight))

    one = Add()(constant(np.array(0.5, "f4")), constant(np.array(0.5, "f4")))
    y = Relu()(conv(Relu()(conv(t.x(1, 3, 4, 5), "a")), "b"))
    y = Mul()(MatMul()(y, t.w(5, 2, key="c")), one)
    return t.module(Add()(y, y), Relu()(Mul()(y, one)), Relu()(Mul()(y, one)))


def test_all_passes_keep_the_numbers(module: Any, t: Any) -> None:
    after, reports = optimise(module, ConvertConfig())
    t.same_numbers(module, after)
    ops = t.ops(after.functions["infer"])
    assert ops == {"conv": 2, "transpose": 2, "linear": 1, "add": 1, "relu": 1}
    assert {r.name for r in reports} == {*SWITCHES, "recognise", "over bytes"}


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_pass_that_is_off_does_not_run(switch: str, module: Any, t: Any) -> None:
    after, reports = optimise(module, ConvertConfig(**{switch: False}))
    t.same_numbers(module, after)
    assert switch not in {r.name for r in reports}


def test_with_all_passes_off_nothing_changes(module: Any) -> None:
    after, reports = optimise(module, ConvertConfig(**dict.fromkeys(SWITCHES, False)))
    assert reports == ()
    assert after.functions["infer"] is module.functions["infer"]


def test_a_report_counts_what_was_done(module: Any) -> None:
    _, reports = optimise(module, ConvertConfig())
    (lower,) = (r for r in reports if r.name == "lower")
    assert lower == PassReport(name="lower", count=3, changes={"packed": 3})
    first = next(r for r in reports if r.name == "fold")
    assert first.changes == {"add": 1}


def test_what_was_done_is_logged(module: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "edgewise.passes"):
        optimise(module, ConvertConfig())
    assert "pass layout" in caplog.text


def test_a_second_run_finds_nothing_more(module: Any) -> None:
    config = ConvertConfig(lower=False)
    after, _ = optimise(module, config)
    _, reports = optimise(after, config)
    assert sum(report.count for report in reports) == 0
