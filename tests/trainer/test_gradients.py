"""Every gradient against finite differences, over the samples of its op."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edgewise.errors import TrainabilityError
from edgewise.ir.op import OPS
from edgewise_trainer.autodiff import has_gradient

WITH_GRADIENT = [name for name in OPS if has_gradient(OPS[name])]
# Forms that are refused by name, by the value of their last attribute.
REFUSED = {
    "scatter_elements": {"mul", "min", "max"},
    "scatter_nd": {"mul", "min", "max"},
}


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_a_gradient_is_the_limit_of_differences(
    name: str, check_gradient: Callable[..., int], differentiable: Callable[..., bool]
) -> None:
    compared, refused = 0, set()
    for sample in OPS[name].samples():
        if not differentiable(sample.op, sample.inputs):
            continue
        try:
            compared += check_gradient(sample.op, sample.inputs)
        except TrainabilityError:
            refused.add(sample.op.values[-1])
    assert compared > 0
    assert refused == REFUSED.get(name, set())
