"""Op attributes as tables: every kind there and back, everything else refused."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.dims import Dim, Expr, floordiv, maximum, symbol
from edgewise.errors import InternalError
from edgewise.format._generated import schema
from edgewise.format.attributes import decode, encode
from edgewise.format.build import build
from edgewise.format.forms import BOOL, DIM, ENUM, FLOAT, INT, INTS, TEXT, TUPLE
from edgewise.format.tables import DamageError, Decoder
from edgewise.ir.op import Array, Op, Sample
from edgewise.types import TensorType


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class _Plain(Op):
    def infer(self, x: TensorType) -> TensorType:
        return x

    def reference(self, x: Array) -> Array:
        return x

    @staticmethod
    def samples() -> Iterator[Sample]:
        return iter(())


class Everything(_Plain, name="test_format_everything"):
    whole: int
    real: float
    truth: bool
    text: str
    size: Dim
    colour: Colour
    wholes: tuple[int, ...]
    reals: tuple[float, ...]
    truths: tuple[bool, ...]
    texts: tuple[str, ...]
    sizes: tuple[Dim, ...]
    colours: tuple[Colour, ...]
    nested: tuple[tuple[int, ...], ...]
    deep: tuple[tuple[tuple[Dim, ...], ...], ...]


class Defaults(_Plain, name="test_format_defaults"):
    low: float = 0.0
    axes: tuple[int, ...] = ()
    mode: str = "same"


class Real(_Plain, name="test_format_types_as_objects"):
    count: int = 1
    pads: tuple[int, ...] = ()


# As the annotations read in a file without ``from __future__ import annotations``.
Real.fields = tuple(
    field._replace(kind=kind)
    for field, kind in zip(Real.fields, (int, tuple[int, ...]), strict=True)
)

wholes = st.integers(-(2**63), 2**63 - 1)
reals = st.floats()
texts = st.text(max_size=20)
colours = st.sampled_from(Colour)
N, T = symbol("N"), symbol("T_1")
sizes = st.one_of(
    wholes,
    st.sampled_from([N, 2 * N * T - 3, floordiv(N + 1, 2) + 1, maximum(N, T)]),
)
everything = st.builds(
    Everything,
    wholes,
    reals,
    st.booleans(),
    texts,
    sizes,
    colours,
    *(
        st.lists(item, max_size=4).map(tuple)
        for item in (wholes, reals, st.booleans(), texts, sizes, colours)
    ),
    st.lists(st.lists(wholes, max_size=3).map(tuple), max_size=3).map(tuple),
    st.lists(
        st.lists(st.lists(sizes, max_size=2).map(tuple), max_size=2).map(tuple),
        max_size=2,
    ).map(tuple),
)


def through_a_file(op: Op) -> Op:
    data = build(encode(op), b"TEST")
    return decode(Decoder(data).root(schema.Op, 4), type(op))


def bits(value: Any) -> Any:
    """With NaNs comparable and zeros told apart."""
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    return (np.float64(value).tobytes(),) if isinstance(value, float) else value


@settings(max_examples=50, deadline=None)
@given(everything)
def test_attributes_come_back_as_they_were(op: Everything) -> None:
    found = through_a_file(op)
    assert repr(found) == repr(op)
    assert bits(found.values) == bits(op.values)
    assert [type(value) for value in found.values] == [type(v) for v in op.values]


def test_attributes_at_their_default_are_not_written() -> None:
    assert encode(Defaults()).attributes == ()
    (only,) = encode(Defaults(mode="valid")).attributes
    assert (only.name, only.kind, only.text) == ("mode", TEXT, "valid")


def test_a_negative_zero_is_not_the_default_zero() -> None:
    assert math.copysign(1, through_a_file(Defaults(low=-0.0)).values[0]) == -1


def test_annotations_that_are_types_work_like_those_that_are_texts() -> None:
    assert through_a_file(Real(3, (1, 2))) == Real(3, (1, 2))


def test_numbers_of_numpy_become_numbers_of_python() -> None:
    found = through_a_file(Real(np.int64(3), (np.int32(1),)))
    assert repr(found) == repr(Real(3, (1,)))
    assert through_a_file(Defaults(low=np.float32(0.5))) == Defaults(low=0.5)


@pytest.mark.parametrize(
    "op",
    [
        Real(1.5),
        Real(2**63),
        Real(3, ("x",)),
        Real(3, None),
        Defaults(low="0"),
        Defaults(low=None),
        Defaults(mode=3),
        Real(N),
    ],
    ids=repr,
)
def test_a_value_that_the_class_does_not_declare_cannot_be_written(op: Op) -> None:
    with pytest.raises(InternalError, match=f"{op.name}: attribute .* want"):
        encode(op)


def attribute(name: str, kind: int, **fields: object) -> schema.Attribute:
    return schema.Attribute(name=name, kind=kind, **fields)


BAD = {
    "unknown": [attribute("nothing", INT)],
    "twice": [attribute("low", FLOAT), attribute("low", FLOAT)],
    "other kind": [attribute("low", INT, whole=1)],
    "text for float": [attribute("low", TEXT, text="1")],
    "kind unknown": [attribute("low", 200)],
    "tuple kind unknown": [attribute("axes", 200)],
    "no tuple": [attribute("axes", INT, whole=1)],
    "tuple of texts": [
        attribute("axes", TUPLE, items=(attribute("", TEXT, text="a"),))
    ],
    "dim for int": [attribute("axes", TUPLE, items=(attribute("", DIM, text="N"),))],
    "enum for text": [attribute("mode", ENUM, text="same")],
}


@pytest.mark.parametrize("attributes", BAD.values(), ids=BAD)
def test_an_attribute_the_op_cannot_have_is_damage(
    attributes: list[schema.Attribute],
) -> None:
    table = schema.Op(name="test_format_defaults", attributes=tuple(attributes))
    with pytest.raises(DamageError, match="op test_format_defaults: attribute"):
        decode(table, Defaults)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("truth", attribute("truth", BOOL, whole=2)),
        ("colour", attribute("colour", ENUM, text="GREEN")),
        ("colour", attribute("colour", ENUM, text="__doc__")),
        ("size", attribute("size", DIM, text="N; import os")),
        ("size", attribute("size", DIM, text="")),
        ("size", attribute("size", DIM, text="N**9")),
        ("size", attribute("size", DIM, text="(" * 900 + "N" + ")" * 900)),
        ("size", attribute("size", DIM, text="floordiv(N, 0)")),
        ("size", attribute("size", DIM, text="mod(1, 0)")),
        ("size", attribute("size", DIM, text="N" * 2000)),
        ("size", attribute("size", DIM, text="open(N, N)")),
        ("reals", attribute("reals", INTS, wholes=(1,))),
        ("nested", attribute("nested", INTS, wholes=(1,))),
    ],
)
def test_a_value_the_kind_cannot_have_is_damage(
    name: str, value: schema.Attribute
) -> None:
    good = Everything(1, 1.0, True, "", N, Colour.RED, *((),) * 8)
    table = encode(good)
    table.attributes = tuple(a if a.name != name else value for a in table.attributes)
    with pytest.raises(DamageError, match=f"attribute '{name}'"):
        decode(table, Everything)


def test_a_missing_attribute_without_default_is_damage() -> None:
    with pytest.raises(DamageError, match="attribute 'whole' is missing"):
        decode(schema.Op(name="test_format_everything"), Everything)


def test_a_size_comes_back_as_an_expression() -> None:
    good = Everything(1, 1.0, True, "", 2 * N, Colour.RED, *((),) * 8)
    assert isinstance(through_a_file(good).values[4], Expr)
