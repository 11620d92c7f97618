"""Modules into the bytes of a file and back."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.dims import symbol
from edgewise.errors import EdgewiseError, InternalError
from edgewise.format.read import read, read_bytes
from edgewise.format.write import write, write_bytes
from edgewise.ir.graph import (
    Constant,
    Graph,
    Node,
    Value,
    constant,
    input_value,
    variable_value,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.ops import Add, Concat, Exp, PackPanels, Relu, TopK
from edgewise.types import DType, QuantParams, TensorType

F32 = DType.F32
N = symbol("N")
RNG = np.random.default_rng(7)


def vector(key: str, array: Array, role: Role = Role.PARAMETER) -> VariableInfo:
    return VariableInfo(
        key, TensorType(DType.of(array.dtype), array.shape), role, array
    )


def module(graph: Graph, *infos: VariableInfo, **metadata: str) -> Module:
    return Module({"infer": graph}, {info.key: info for info in infos}, metadata)


def holding(*infos: VariableInfo) -> Module:
    return module(Graph((), (), ()), *infos)


def constant_module(array: Array) -> Module:
    return module(Graph((), (constant(array, "c"),), ("y",)))


def the_constant(found: Module) -> Array:
    (value,) = found.functions["infer"].outputs
    assert isinstance(value.op, Constant)
    return value.op.array


def assert_same_graph(a: Graph, b: Graph) -> None:
    """Node by node, with their edges."""
    left, right = a.nodes(), b.nodes()
    assert [n.op for n in left] == [n.op for n in right]
    assert [n.types for n in left] == [n.types for n in right]
    assert [n.label for n in left] == [n.label for n in right]
    places = {
        id(node): place for nodes in (left, right) for place, node in enumerate(nodes)
    }

    def edges(values: tuple[Value | None, ...]) -> list[object]:
        return [v if v is None else (places[id(v.node)], v.index) for v in values]

    assert [edges(n.inputs) for n in left] == [edges(n.inputs) for n in right]
    for pick in (lambda g: g.inputs, lambda g: g.outputs):
        assert edges(pick(a)) == edges(pick(b))
    assert a.output_names == b.output_names
    assert list(a.updates) == list(b.updates)
    assert edges(tuple(a.updates.values())) == edges(tuple(b.updates.values()))


def assert_same(a: Module, b: Module) -> None:
    assert a.metadata == b.metadata
    assert list(a.functions) == list(b.functions)
    for name, graph in a.functions.items():
        assert_same_graph(graph, b.functions[name])
    assert list(a.variables) == list(b.variables)
    for key, info in a.variables.items():
        other = b.variables[key]
        assert (info.key, info.role, info.packing) == (key, other.role, other.packing)
        assert (info.type, info.logical) == (other.type, other.logical)
        assert (info.initial is None) == (other.initial is None)
        if info.initial is not None:
            np.testing.assert_array_equal(info.initial, other.initial)


def example() -> Module:
    x = input_value("x", TensorType(F32, (N, 3, 2 * N + 1)))
    weight = RNG.standard_normal((3, 40)).astype(np.float32)
    packing = PackPanels(axes=(0, 1))
    packed = packing.reference(weight)
    infos = (
        VariableInfo(
            "w",
            TensorType(F32, packed.shape),
            Role.PARAMETER,
            packed,
            TensorType(F32, weight.shape),
            packing,
        ),
        vector("mean", np.arange(3, dtype=np.float32), Role.STATISTIC),
        VariableInfo("half", TensorType(F32, (3,)), Role.DERIVED),
        VariableInfo("count", TensorType(DType.I64, ()), Role.STATE),
        vector("seed", np.array([1, 2], np.uint64), Role.STATE),
    )
    w = variable_value("w", infos[0].type)
    mean = variable_value("mean", infos[1].type)
    top = TopK(k=2, axis=1, largest=True).node(x, label="top")
    both = Concat(axis=1)(top[0], x, label="/cat")
    infer = Graph(
        (x,), (both, top[1], Relu()(w)), ("y", "where", "w+"), {"mean": Exp()(mean)}
    )
    prepare = Graph((), (), (), {"half": Add()(mean, constant(np.float32(0.5)))})
    return Module(
        {"infer": infer, "prepare": prepare},
        {info.key: info for info in infos},
        {"empty": "", "edgewise.source": "näme.onnx", "ключ": "значение\0"},
    )


def test_a_module_comes_back_with_all_it_holds() -> None:
    given = example()
    assert_same(given, read_bytes(write_bytes(given)))


def test_equal_modules_give_equal_bytes_also_after_reading() -> None:
    data = write_bytes(example())
    assert write_bytes(read_bytes(data)) == data


def test_an_empty_module_comes_back() -> None:
    assert_same(Module({}, {}), read_bytes(write_bytes(Module({}, {}))))


def test_an_input_nobody_reads_stays() -> None:
    x, y = (input_value(key, TensorType(F32, (2,))) for key in "xy")
    given = module(Graph((x, y), (Relu()(y),), ("out",)))
    assert_same(given, read_bytes(write_bytes(given)))


def test_an_input_given_back_and_a_constant_output_work() -> None:
    x = input_value("x", TensorType(F32, (N,)))
    given = module(Graph((x,), (x, constant(np.arange(3))), ("a", "b")))
    assert_same(given, read_bytes(write_bytes(given)))


def test_equal_constants_are_stored_once() -> None:
    big = RNG.standard_normal(1000).astype(np.float32)
    x = input_value("x", TensorType(F32, (1000,)))
    y = Add()(Add()(x, constant(big.copy())), constant(big.copy()))
    data = write_bytes(module(Graph((x,), (y,), ("y",))))
    assert big.nbytes < len(data) < 2 * big.nbytes
    (first, second) = [
        node.inputs[1]
        for node in read_bytes(data).functions["infer"].nodes()
        if len(node.inputs) == 2
    ]
    assert first == second


def test_equal_ops_are_one_object_after_reading() -> None:
    x = input_value("x", TensorType(F32, (4,)))
    found = read_bytes(write_bytes(module(Graph((x,), (Relu()(Relu()(x)),), ("y",)))))
    first, second = [n.op for n in found.functions["infer"].nodes() if n.inputs]
    assert first is second


@pytest.mark.parametrize("size", [0, 1, 3, 64, 257])
@pytest.mark.parametrize("dtype", list(DType), ids=lambda dtype: dtype.value)
def test_every_element_type_comes_back(dtype: DType, size: int) -> None:
    if dtype is DType.STRING:
        array: Array = np.array([f"é{i}\0" * (i % 3) for i in range(size)], object)
    elif dtype is DType.BOOL:
        array = RNG.integers(0, 2, size).astype(bool)
    else:
        octets = RNG.integers(0, 256, size * dtype.bits // 8, dtype=np.uint8)
        if dtype.value in {"i4", "u4", "f4e2m1fn"}:
            octets &= 15
        elif dtype.value in {"i2", "u2"}:
            octets &= 3
        array = octets.view(dtype.numpy)
    found = the_constant(read_bytes(write_bytes(constant_module(array))))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tolist() == array.tolist() or found.tobytes() == array.tobytes()
    assert not found.flags.writeable


def test_four_bit_elements_take_half_a_byte_in_a_file() -> None:
    nibbles = np.zeros(4001, np.uint8).view(DType.U4.numpy)
    assert len(write_bytes(constant_module(nibbles))) < 2001 + 1024


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 32, (2, 1, 3)])
def test_every_shape_comes_back(shape: tuple[int, ...]) -> None:
    array = np.full(shape, np.nan, np.float64)
    found = the_constant(read_bytes(write_bytes(constant_module(array))))
    np.testing.assert_array_equal(found, array)
    assert found.shape == shape


@pytest.mark.parametrize("order", ["F", ">", "step"])
def test_memory_order_does_not_matter(order: str) -> None:
    plain = np.arange(60, dtype=np.float32).reshape(6, 10)
    array = {
        "F": np.asfortranarray(plain),
        ">": plain.astype(">f4"),
        "step": np.repeat(plain, 2, axis=1)[:, ::2],
    }[order]
    info = VariableInfo("w", TensorType(F32, (6, 10)), Role.PARAMETER, array)
    found = read_bytes(write_bytes(holding(info))).variables["w"]
    np.testing.assert_array_equal(found.initial, plain)


@pytest.mark.parametrize(
    "quant",
    [
        QuantParams((0.25,), (0,)),
        QuantParams((0.1, 3.0, 1e-30), (0, 0, 0), axis=0),
        QuantParams(tuple(0.1 * i for i in range(1, 51)), tuple(range(50)), axis=1),
        QuantParams((1.0,) * 50, (-(2**40),) * 50, axis=1),
        QuantParams((0.5,) * 6, (1,) * 6, axis=1, block=25),
    ],
    ids=repr,
)
def test_scales_come_back_exactly(quant: QuantParams) -> None:
    type_ = TensorType(DType.I8, (3, 50), quant)
    array = RNG.integers(-128, 128, (3, 50), dtype=np.int8)
    x = input_value("x", TensorType(DType.I8, (3, 50), quant))
    given = module(
        Graph((x,), (x,), ("y",)), VariableInfo("q", type_, Role.PARAMETER, array)
    )
    found = read_bytes(write_bytes(given))
    assert_same(given, found)
    assert found.variables["q"].type.quant == quant


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=9), st.text(max_size=9)))
def test_metadata_come_back(metadata: Mapping[str, str]) -> None:
    given_ = Module({}, {}, metadata)
    assert dict(read_bytes(write_bytes(given_)).metadata) == metadata


def test_a_long_chain_comes_back() -> None:
    x = y = input_value("x", TensorType(F32, (2,)))
    for _ in range(3000):
        y = Relu()(y)
    given = module(Graph((x,), (y,), ("y",)))
    assert_same(given, read_bytes(write_bytes(given)))


def backing(array: Array) -> Any:
    """What an array's memory belongs to in the end."""
    found: Any = array
    while isinstance(found, np.ndarray):
        found = found.base
    return found.obj if isinstance(found, memoryview) else found


def test_weights_are_read_only_views_of_the_map(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    infos = [
        vector(f"w{i}", RNG.standard_normal((33, 17 + i)).astype(np.float32))
        for i in range(4)
    ]
    write(holding(*infos), path)
    found = read(path)
    maps = set()
    for info in infos:
        array = found.variables[info.key].initial
        assert array is not None
        maps.add(id(backing(array)))
        assert isinstance(backing(array), mmap.mmap)
        assert array.__array_interface__["data"][0] % 64 == 0
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    assert len(maps) == 1


def test_a_view_outlives_its_module_and_its_file(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    weight = RNG.standard_normal(5000).astype(np.float32)
    write(holding(vector("w", weight)), path)
    array = read(path).variables["w"].initial
    path.unlink()
    np.testing.assert_array_equal(array, weight)


def misfits() -> dict[str, Module]:
    x = input_value("x", TensorType(F32, (2,)))
    relu = Relu()(x)
    array = np.zeros(3, np.float32)
    elsewhere = variable_value("w", TensorType(F32, (4,)))
    wrong = Node(Relu(), (x,), (TensorType(F32, (5,)),))
    return {
        "an input that is no input": module(Graph((), (relu,), ("y",))),
        "a computed input": module(Graph((relu,), (), ())),
        "a variable that is not there": module(
            Graph((), (variable_value("w", x.type),), ("y",))
        ),
        "a variable of another type": module(
            Graph((), (elsewhere,), ("y",)), vector("w", array)
        ),
        "an update of nothing": module(Graph((x,), (), (), {"w": x})),
        "types that are not inferred": module(Graph((x,), (Value(wrong),), ("y",))),
        "a parameter without bytes": holding(VariableInfo("w", x.type, Role.PARAMETER)),
        "a derived variable with bytes": holding(vector("w", array, Role.DERIVED)),
        "an array of another shape": holding(
            VariableInfo("w", x.type, Role.PARAMETER, array)
        ),
        "an array of another type": holding(
            VariableInfo("w", x.type, Role.PARAMETER, np.zeros(2))
        ),
        "another key": Module({}, {"v": vector("w", array)}),
        "strings that are none": constant_module(np.array([1, "a"], object)),
    }


@pytest.mark.parametrize("given", misfits().values(), ids=misfits())
def test_a_module_that_is_wrong_is_not_written(given: Module) -> None:
    with pytest.raises(InternalError):
        write_bytes(given)


def test_a_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(EdgewiseError, match="no file can hold"):
        write_bytes(Module({}, {}, {"key": "\ud800"}))
