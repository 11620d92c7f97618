"""The gradient of pooling that tells where the largest elements are."""

from __future__ import annotations

from edgewise.dims import product
from edgewise.ops import Expand, MaxPoolPlaces, Reshape, ScatterElements
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar


@gradient(MaxPoolPlaces)
def max_pool_places(at: Adjoint) -> Gradients:
    """To the places; they count all elements in order."""
    if at.op.column_major:
        raise at.refuse("it counts places by columns")
    shape, count = at.x.type.shape, (product(at.y.type.shape),)
    flat = Expand((product(shape),))(scalar(0.0, at.x))
    places, grads = Reshape(count)(at.outputs[1]), Reshape(count)(at.dy)
    return (Reshape(shape)(ScatterElements(0, "add")(flat, places, grads)),)
