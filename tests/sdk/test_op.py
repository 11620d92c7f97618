"""The base of ops: attributes, equality, binding, registration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgewise.dims import symbol
from edgewise.errors import InternalError, ShapeError
from edgewise.ir.graph import input_value
from edgewise.ir.op import OPS, Array, Op, Registry, Sample
from edgewise.ops import Add, Clip, Conv, LeakyRelu, Relu, Reshape, TopK
from edgewise.types import DType, TensorType

N = symbol("N")
F32 = TensorType(DType.F32, (N, 3))


def test_attributes_come_by_place_by_name_or_by_default() -> None:
    assert LeakyRelu().slope == 0.01
    assert LeakyRelu(0.2) == LeakyRelu(slope=0.2)
    assert Clip(high=6.0).low == float("-inf")
    assert Conv(8, (3, 3), groups=2).values[:2] == (8, (3, 3))


def test_missing_and_unknown_attributes_are_refused() -> None:
    with pytest.raises(InternalError, match="attribute shape is missing"):
        Reshape()
    with pytest.raises(InternalError, match="no such attributes"):
        Relu(slope=1.0)
    with pytest.raises(InternalError, match="no such attributes"):
        LeakyRelu(0.1, 0.2)


def test_an_op_is_a_value() -> None:
    assert Clip(0.0, 6.0) == Clip(0.0, 6.0)
    assert hash(Clip(0.0, 6.0)) == hash(Clip(0.0, 6.0))
    assert Clip(0.0, 6.0) != Clip(0.0, 5.0)
    assert Clip(0.0) != Clip(-0.0)
    assert Clip(float("nan")) == Clip(float("nan"))
    assert Relu() != Add()
    with pytest.raises(AttributeError, match="immutable"):
        Clip().low = 1.0
    assert repr(LeakyRelu(0.2)) == "leaky_relu(slope=0.2)"


def test_replacing_an_attribute_makes_another_op() -> None:
    op = Clip(0.0, 6.0)
    assert op.replace(high=1.0) == Clip(0.0, 1.0)
    assert op == Clip(0.0, 6.0)


def test_symbols_in_attributes_are_bound() -> None:
    op = Reshape((2 * N, 3))
    assert op.symbols() == {"N"}
    assert op.bind({"N": 4}) == Reshape((8, 3))
    assert Relu().bind({"N": 4}) is not None
    plain = Reshape((4,))
    assert plain.bind({"N": 4}) is plain


def test_calling_an_op_makes_a_node() -> None:
    x = input_value("x", F32)
    y = Relu()(x, label="act")
    assert y.type == F32
    assert y.node.label == "act"
    assert y.node.inputs == (x,)
    values, indices = TopK(2, 1).node(x)
    assert values.type == TensorType(DType.F32, (N, 2))
    assert indices.type == TensorType(DType.I64, (N, 2))


def test_a_wrong_number_of_inputs_names_the_op() -> None:
    x = input_value("x", F32)
    with pytest.raises(ShapeError, match="relu: does not take 2 inputs"):
        Relu()(x, x)


def test_an_op_without_its_meaning_cannot_be_registered() -> None:
    with pytest.raises(InternalError, match="does not define reference"):

        class Half(Op, name="test_half"):
            def infer(self, x: TensorType) -> TensorType:
                return x

    assert "test_half" not in OPS


def test_two_ops_cannot_share_a_name() -> None:
    registry = Registry()
    registry.add(Relu)
    with pytest.raises(InternalError, match="two ops are called relu"):
        registry.add(Relu)


def test_the_registry_imports_a_family_when_it_is_asked() -> None:
    registry = Registry()
    registry.homes["no_such"] = "edgewise.ops.nowhere"
    assert "no_such" in registry
    assert list(registry) == ["no_such"]
    with pytest.raises(ModuleNotFoundError):
        registry["no_such"]
    assert registry.get("other") is None
    assert OPS["relu"] is Relu


def test_fields_of_a_base_come_first() -> None:
    class Base(Op):
        first: int = 1

        def infer(self, x: TensorType) -> TensorType:
            return x

        def reference(self, x: Array) -> Array:
            return x.copy()

        @staticmethod
        def samples() -> Iterator[Sample]:
            return iter(())

    registered = dict(OPS.homes)

    class Derived(Base, name="test_derived"):
        second: tuple[int, ...] = ()

    try:
        assert [field.name for field in Derived.fields] == ["first", "second"]
        assert Derived(2).values == (2, ())
    finally:
        OPS.homes.clear()
        OPS.homes.update(registered)
