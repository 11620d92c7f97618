"""What a value is: a tensor's element type, shape, quantisation; or a container."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self, TypeAlias

from edgewise.dims import Dim, Shape, bind, product, symbol
from edgewise.dtype import DType
from edgewise.errors import DTypeError

__all__ = [
    "ANY",
    "DType",
    "OptionalType",
    "QuantParams",
    "SequenceType",
    "TensorType",
    "Unranked",
    "ValueType",
    "may_agree",
]


class QuantParams:
    """How stored integers stand for real numbers: ``real = scale * (q - zero_point)``.

    Attributes:
        scales: One per tensor, or one per slice along ``axis``.
        zero_points: As many as scales.
        axis: The axis the scales run along; -1 for one scale per tensor.
        block: Elements along ``axis`` that share a scale; 0: one scale a slice.
    """

    __slots__ = ("axis", "block", "scales", "zero_points")

    def __init__(
        self,
        scales: tuple[float, ...],
        zero_points: tuple[int, ...],
        axis: int = -1,
        block: int = 0,
    ) -> None:
        if not scales or len(scales) != len(zero_points):
            raise DTypeError(
                f"{len(scales)} scales and {len(zero_points)} zero points do not pair"
            )
        self.scales, self.zero_points = scales, zero_points
        self.axis, self.block = axis, block

    def _key(self) -> tuple[object, ...]:
        return self.scales, self.zero_points, self.axis, self.block

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantParams) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class TensorType:
    """Element type and shape of a value; immutable, compared by value."""

    __slots__ = ("dtype", "quant", "shape")

    def __init__(
        self, dtype: DType, shape: Shape, quant: QuantParams | None = None
    ) -> None:
        self.dtype, self.shape, self.quant = dtype, shape, quant

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_object(self) -> bool:
        """Whether its values are Python objects rather than bytes in flat memory."""
        return self.dtype is DType.STRING

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return all(isinstance(dim, int) for dim in self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape of a static type."""
        if not self.is_static:
            raise DTypeError(f"{self} has sizes that only a run knows")
        return self.shape  # type: ignore[return-value]  # checked above

    @property
    def elements(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes that a static tensor takes in memory."""
        return math.prod(self.dims) * self.dtype.bits // 8

    def with_shape(self, shape: Shape) -> TensorType:
        """The same elements in another shape."""
        return TensorType(self.dtype, shape, self.quant)

    def with_dtype(self, dtype: DType) -> TensorType:
        """The same shape of other elements."""
        return TensorType(dtype, self.shape)

    def bind(self, values: Mapping[str, Dim]) -> TensorType:
        """With the symbols in ``values`` replaced."""
        if self.is_static:
            return self
        shape = tuple(bind(dim, values) for dim in self.shape)
        return TensorType(self.dtype, shape, self.quant)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorType)
            and self.dtype is other.dtype
            and self.shape == other.shape
            and self.quant == other.quant
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"{self.dtype.value}[{', '.join(map(str, self.shape))}]"


class Unranked:
    """Tensors of one element type and any shape: what a container may hold."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unranked) and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((Unranked, self.dtype))

    def __repr__(self) -> str:
        return f"{self.dtype.value}[...]"


# A size that may differ from one tensor of a container to the next.
ANY = symbol("any")


class _Container:
    """What containers share: they are Python objects, and no symbol is in them."""

    __slots__ = ()

    element: TensorType | Unranked | SequenceType
    is_object = True
    is_static = True
    bytes = 0

    def bind(self, values: Mapping[str, Dim]) -> Self:
        """The same type."""
        del values
        return self

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class SequenceType(_Container):
    """A list of tensors; sizes in ``element`` that are no numbers become ``ANY``."""

    __slots__ = ("element",)
    element: TensorType | Unranked

    def __init__(self, element: TensorType | Unranked) -> None:
        self.element = _any_sizes(element)

    def __repr__(self) -> str:
        return f"sequence({self.element})"


class OptionalType(_Container):
    """What ``element`` says, or ``None``."""

    __slots__ = ("element",)

    def __init__(self, element: TensorType | Unranked | SequenceType) -> None:
        if not isinstance(element, SequenceType):
            element = _any_sizes(element)
        self.element = element

    def __repr__(self) -> str:
        return f"optional({self.element})"


ValueType: TypeAlias = TensorType | SequenceType | OptionalType


def _any_sizes(element: TensorType | Unranked) -> TensorType | Unranked:
    if isinstance(element, Unranked) or element.is_static:
        return element
    sizes = (dim if isinstance(dim, int) else ANY for dim in element.shape)
    return TensorType(element.dtype, tuple(sizes))


def may_agree(a: ValueType | Unranked, b: ValueType | Unranked) -> bool:
    """Whether a value may be of both types: an unknown size may be any."""
    if isinstance(a, Unranked | TensorType) and isinstance(b, Unranked | TensorType):
        if a.dtype is not b.dtype:
            return False
        if isinstance(a, Unranked) or isinstance(b, Unranked):
            return True
        pairs = zip(a.shape, b.shape, strict=False)
        known = (
            m == n or not (isinstance(m, int) and isinstance(n, int)) for m, n in pairs
        )
        return a.rank == b.rank and all(known)
    if isinstance(a, _Container) and isinstance(b, _Container):
        return type(a) is type(b) and may_agree(a.element, b.element)
    return False
