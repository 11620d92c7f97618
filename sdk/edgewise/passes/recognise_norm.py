"""Normalisations that exporters write out as formulas, found again."""

from __future__ import annotations

from edgewise.dims import Shape
from edgewise.ir.graph import Value
from edgewise.ir.pattern import Pattern, a, scalar
from edgewise.ops.binary import Add, Div, Mul, Pow, Sub
from edgewise.ops.norm import LayerNorm, RmsNorm
from edgewise.ops.reduce import ReduceMean
from edgewise.ops.shape import Reshape
from edgewise.ops.unary import Reciprocal, Sqrt
from edgewise.passes.rewrite import rule

_CENTRED = a(Sub, "x", a(ReduceMean, "x", name="mean"), name="centred")


def _variance(of: Pattern | str) -> tuple[Pattern, ...]:
    """The mean of squares; both readings of ``of`` are the same value."""
    again = of if isinstance(of, str) else (of.name or "")
    return (
        a(ReduceMean, a(Pow, of, 2.0), name="square"),
        a(ReduceMean, a(Mul, of, again), name="square"),
    )


def _divided(top: Pattern | str, squares: tuple[Pattern, ...]) -> list[Pattern]:
    """``top / sqrt(square + eps)`` in the forms that exporters write."""
    found = []
    for square in squares:
        root = a(Sqrt, a(Add, square, "eps"))
        found += [a(Div, top, root), a(Mul, top, a(Reciprocal, root))]
        found += [a(Mul, top, a(Div, 1.0, root))]
        found += [a(Mul, top, a(Pow, a(Add, square, "eps"), -0.5))]
    return found


@rule(*_divided("centred", _variance(_CENTRED)))
def layer_norm(
    x: Value, mean: Value, square: Value, eps: Value, centred: Value
) -> Value | None:
    """``(x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps)`` over the last axes."""
    axis = _last_axes(mean, x.type.rank)
    number = scalar(eps)
    if axis is None or axis != _last_axes(square, centred.type.rank) or number is None:
        return None
    return LayerNorm(axis, number)(x, None, None)


def _last_axes(reduced: Value, rank: int) -> int | None:
    """The first of the axes that are reduced, where they are all the last ones."""
    op = reduced.op
    if not isinstance(op, ReduceMean) or not op.keepdims or not op.axes:
        return None
    axes = sorted(op.axes)
    return axes[0] if axes == list(range(axes[0], rank)) else None


@rule(a(Mul, a(LayerNorm, "x", None, None, name="norm"), "scale"))
def scaled_layer_norm(x: Value, norm: Value, scale: Value) -> Value | None:
    """A scale behind the normalisation."""
    fitting = _fitting(scale, norm)
    return None if fitting is None else norm.op(x, fitting, None)


@rule(
    a(Add, a(LayerNorm, "x", "scale", None, name="norm"), "shift"),
)
def shifted_layer_norm(
    x: Value, scale: Value | None, norm: Value, shift: Value
) -> Value | None:
    """A shift behind the normalisation."""
    fitting = _fitting(shift, norm)
    return None if fitting is None else norm.op(x, scale, fitting)


def _fitting(value: Value, norm: Value) -> Value | None:
    """``value`` in the shape of the normalised axes; ``None`` where it is not that."""
    op = norm.op
    if not isinstance(op, LayerNorm):
        return None
    wanted: Shape = norm.type.shape[op.axis :]
    shape = value.type.shape
    lead = len(shape) - len(wanted)
    if lead < 0 or shape[lead:] != wanted or any(size != 1 for size in shape[:lead]):
        return None
    return value if not lead else Reshape(wanted)(value)


@rule(*(a(Mul, norm, "scale") for norm in _divided("x", _variance("x"))))
def rms_norm(x: Value, square: Value, eps: Value, scale: Value) -> Value | None:
    """``x / sqrt(mean(x^2) + eps) * scale`` over the last axes."""
    axis, number = _last_axes(square, x.type.rank), scalar(eps)
    if axis is None or number is None or scale.type.shape != x.type.shape[axis:]:
        return None
    return RmsNorm(axis, number)(x, scale)


RULES = (layer_norm, scaled_layer_norm, shifted_layer_norm, rms_norm)
