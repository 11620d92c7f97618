"""ONNX's own test-suite, run once for all tests here."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import pytest

from edgewise.onnx_backend import Backend

LIST = Path(__file__).with_name("exclusions.txt")

Error: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
)


class Outcomes(unittest.TestResult):
    """What every case ended with; ``None``: it passed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, BaseException | None] = {}

    def addSuccess(self, test: Any) -> None:  # noqa: N802 - unittest's name
        self.found[_name(test)] = None

    def addError(self, test: Any, err: Error) -> None:  # noqa: N802
        self.found[_name(test)] = err[1]

    def addFailure(self, test: Any, err: Error) -> None:  # noqa: N802
        self.found[_name(test)] = err[1]

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        """Devices that are not there are no cases; all else has to run."""
        if "device CUDA" not in reason:
            self.found[_name(test)] = AssertionError(f"skipped: {reason}")


def _name(test: Any) -> str:
    return str(test.id()).rpartition(".")[2].removesuffix("_cpu")


def _suite() -> Any:
    from onnx.backend.test.runner import Runner

    class Whole(Runner):  # type: ignore[misc]  # onnx has no types
        """Compares elements of sequences whole; ONNX asks scalars for a length."""

        @classmethod
        def assert_similar_outputs(
            cls, ref_outputs: Any, outputs: Any, *rest: Any, **named: Any
        ) -> None:
            if isinstance(ref_outputs, np.ndarray):  # an element of a sequence
                ref_outputs, outputs = [ref_outputs], [outputs]
            super().assert_similar_outputs(ref_outputs, outputs, *rest, **named)

    class Every(Backend):
        """Tries every case, so that it ends with the error that refuses it."""

        @classmethod
        def is_compatible(cls, *_: Any, **__: Any) -> bool:
            return True

    return Whole(Every, __name__).test_suite


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Cases by name, with the error that ended them."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # The suite writes what it makes of its whole models there.
        patch.setenv("ONNX_HOME", str(tmp_path_factory.mktemp("onnx")))
        # It computes its expectations as it is loaded: those warnings are not ours.
        warnings.simplefilter("ignore")
        suite = _suite()
        warnings.simplefilter("error")
        result = Outcomes()
        suite.run(result)
        yield result.found


@pytest.fixture(scope="session")
def excluded() -> dict[str, str]:
    """Patterns of what edgewise refuses, with the reasons."""
    lines = LIST.read_text().splitlines()
    pairs = [line.split("#") for line in lines if line and not line.startswith("#")]
    return {pattern.strip(): reason.strip() for pattern, reason in pairs}
