"""Every gradient against finite differences, over the samples of its op."""

from __future__ import annotations

import numpy as np
import pytest
from differences import check, doubled, type_of

from edgewise.errors import TrainabilityError
from edgewise.ir.op import OPS, Sample
from edgewise.types import DType
from edgewise_trainer.autodiff import has_gradient

LARGEST = 300  # elements of all real inputs: differences take three runs for each
WITH_GRADIENT = [name for name in OPS if has_gradient(OPS[name])]


def fits(sample: Sample) -> bool:
    """Whether differences can be taken: real, finite, not too many numbers."""
    real = [x for x in sample.inputs if x is not None and x.dtype.kind == "f"]
    finite = all(x.dtype.itemsize >= 4 and np.isfinite(x).all() for x in real)
    if not real or not finite or sum(x.size for x in real) > LARGEST:
        return False
    types = [None if x is None else type_of(doubled(x)) for x in sample.inputs]
    made = sample.op.infer_all(tuple(types))
    if any(y.dtype in {DType.F32, DType.F16} for y in made):  # rounded
        return False
    results = sample.op.reference(*map(doubled, sample.inputs))
    return all(
        np.isfinite(y).all()
        for y in (results if isinstance(results, tuple) else (results,))
    )


# Forms that are refused by name, by the value of their last attribute.
REFUSED = {
    "scatter_elements": {"mul", "min", "max"},
    "scatter_nd": {"mul", "min", "max"},
}


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_a_gradient_is_the_limit_of_differences(name: str) -> None:
    compared, refused = 0, set()
    for sample in filter(fits, OPS[name].samples()):
        try:
            compared += check(sample.op, sample.inputs)
        except TrainabilityError:
            refused.add(sample.op.values[-1])
    assert compared > 0
    assert refused == REFUSED.get(name, set())
