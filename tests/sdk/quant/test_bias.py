"""What weights lose on average, layer by layer."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.quant.bias import lost_on_average

RNG = np.random.default_rng(0)
CLOSE = 1e-12


@pytest.mark.parametrize("groups", [1, 2])
def test_of_convolutions(groups: int) -> None:
    lost, means = RNG.normal(size=(6, 4, 3, 2)), RNG.normal(size=4 * groups)
    found = lost_on_average(lost, PackPanels((2, 3, 1, 0), groups), means)
    seen = means.reshape(groups, 4)[np.arange(6) // (6 // groups)]
    want = (lost * seen[:, :, None, None]).sum((1, 2, 3))
    np.testing.assert_allclose(found, want, rtol=0, atol=CLOSE)


def test_of_products() -> None:
    lost, means = RNG.normal(size=(5, 7)), RNG.normal(size=5)
    for array, axes in ((lost, (0, 1)), (lost.T, (1, 0))):
        found = lost_on_average(array, PackPanels(axes), means)
        np.testing.assert_allclose(found, means @ lost, rtol=0, atol=CLOSE)


def test_of_depthwise_convolutions() -> None:
    lost, means = RNG.normal(size=(5, 1, 3, 3)), RNG.normal(size=5)
    found = lost_on_average(lost, PackTaps(), means)
    want = lost.sum((1, 2, 3)) * means
    np.testing.assert_allclose(found, want, rtol=0, atol=CLOSE)
