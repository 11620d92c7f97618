"""Branches that differ in rank: one is converted, and no run takes it for the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgewise.convert import convert, convert_module
from edgewise.convert.assume import MAX_TRIES, Assumptions, first_that_fits
from edgewise.errors import DTypeError, ShapeError
from edgewise.format.read import read_bytes
from edgewise.format.write import write_bytes
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.ops import Expect
from edgewise.runtime.session import Session
from edgewise.types import DType, SequenceType, TensorType

Check = Callable[..., Any]
X = np.array([[1, 2], [3, -1]], "f4")
YES, NO = np.array(True), np.array(False)
F = TensorProto.FLOAT


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def graph(
    nodes: Sequence[onnx.NodeProto], outputs: str, inputs: Sequence[Any] = ()
) -> onnx.GraphProto:
    given = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
    return helper.make_graph(list(nodes), "inner", list(inputs), given)


def flat_or_whole(x: str, y: str, condition: str = "c") -> onnx.NodeProto:
    """An If called ``y``: ``x`` as one vector, or as it is."""
    then = graph([node("Constant", "", "all", value_ints=[-1]),
                  node("Reshape", f"{x} all", "a")], "a")  # fmt: skip
    other = graph([node("Identity", x, "b")], "b")
    return node("If", condition, y, name=y, then_branch=then, else_branch=other)


def squeezed(x: str, y: str, axis: int) -> list[onnx.NodeProto]:
    """What PyTorch writes for ``squeeze`` of an axis of unknown size."""
    axes = [node("Constant", "", "axis", value_ints=[axis])]
    then = graph([node("Squeeze", f"{x} axis", "a")], "a")
    other = graph([node("Identity", x, "b")], "b")
    return [
        *axes,
        node("Shape", x, "shape"),
        node("Gather", "shape axis", "size"),
        node("Constant", "", "one", value_ints=[1]),
        node("Equal", "size one", "alone"),
        node("If", "alone", y, name=y, then_branch=then, else_branch=other),
    ]


def run(model: onnx.ModelProto, **feeds: Any) -> dict[str, Any]:
    with Session(read_back(convert(model))) as session:
        return dict(session.run(feeds))


def read_back(model: Model) -> Model:
    return Model(read_bytes(write_bytes(model.module)))


def test_the_first_branch_is_taken_and_the_other_ends_the_run(
    build: Check, agree: Check, module_outputs: Check
) -> None:
    feeds = {"x": X, "c": YES}
    model = build([flat_or_whole("x", "odd"), node("Neg", "odd", "y")], feeds, ["y"])
    module = agree(model, feeds)
    np.testing.assert_array_equal(run(model, **feeds)["y"], -X.reshape(-1))
    wanted = "'odd' chose its else_branch; want its then_branch"
    with pytest.raises(ShapeError, match=wanted):
        module_outputs(module, {"x": X, "c": NO})
    with pytest.raises(ShapeError, match=wanted):
        run(model, x=X, c=NO)


def test_the_second_is_taken_where_the_rest_wants_its_rank(
    build: Check, agree: Check
) -> None:
    feeds = {"x": X, "c": NO}
    nodes = [flat_or_whole("x", "odd"), node("Concat", "odd x", "y", axis=1)]
    model = build(nodes, feeds, ["y"])
    agree(model, feeds)
    with pytest.raises(ShapeError, match=r"'odd' chose its then_branch; want its else"):
        run(model, x=X, c=YES)


def test_where_both_fit_computed_numbers_are_not_taken_to_be_equal(
    build: Check, agree: Check
) -> None:
    nodes = [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Equal", "sum zero", "c"),
        flat_or_whole("x", "y"),
    ]
    model = build(nodes, {"x": X}, ["y"], weights={"zero": np.zeros((), "f4")})
    agree(model, {"x": X})
    with pytest.raises(ShapeError, match="'y' chose its then_branch"):
        run(model, x=X - X)


def test_where_neither_fits_the_first_error_is_told(build: Check) -> None:
    nodes = [flat_or_whole("x", "odd"), node("Concat", "odd cube", "y", axis=0)]
    cube = np.zeros((1, 1, 1), "f4")
    model = build(nodes, {"x": X, "c": YES, "cube": cube}, ["y"])
    with pytest.raises(ShapeError, match=r"concat: got \(f32\[4\], f32\[1, 1, 1\]"):
        convert(model)


@pytest.mark.parametrize("wants", [(1, 2, 1), (2, 1, 2), (2, 2, 1)])
def test_each_of_several_is_taken_as_what_follows_it_wants(
    wants: tuple[int, ...], build: Check, agree: Check
) -> None:
    # Nothing is wrong before the last: the tries go back over all of them.
    ifs = [flat_or_whole("x", f"if{n}", f"c{n}") for n in range(3)]
    ends = [
        node("Concat", f"if{n} {'v' if rank == 1 else 'x'}", f"y{n}", axis=0)
        for n, rank in enumerate(wants)
    ]
    feeds = {"x": X, "v": np.ones(1, "f4")}
    feeds |= {f"c{n}": np.array(rank == 1) for n, rank in enumerate(wants)}
    model = build([*ifs, *ends], feeds, ["y0", "y1", "y2"])
    agree(model, feeds)
    for n, rank in enumerate(wants):
        with pytest.raises(ShapeError, match=f"'if{n}' chose"):
            run(model, **feeds | {f"c{n}": np.array(rank != 1)})


def test_the_tries_have_an_end() -> None:
    tried = []

    def imported(assumed: Assumptions) -> None:
        nodes = [onnx.NodeProto(name=str(n)) for n in range(10)]
        tried.append([assumed.choice(node, likely=True) for node in nodes])
        assert [assumed.choice(n, likely=False) for n in nodes] == tried[-1]
        raise ShapeError(f"failure {len(tried)}")

    with pytest.raises(ShapeError, match=r"^failure 1$"):
        first_that_fits(imported)
    assert len(tried) == MAX_TRIES
    assert len(set(map(tuple, tried))) == MAX_TRIES


def test_without_such_a_branch_an_error_is_not_met_twice() -> None:
    tried = []

    def imported(assumed: Assumptions) -> None:
        tried.append(assumed)
        raise ShapeError("failure")

    with pytest.raises(ShapeError, match="failure"):
        first_that_fits(imported)
    assert len(tried) == 1


@pytest.mark.parametrize("outer", [YES, NO])
def test_it_may_lie_in_a_branch_of_another(
    outer: Any, build: Check, agree: Check
) -> None:
    inner = graph([flat_or_whole("x", "odd"), node("Concat", "odd x", "a", axis=0)],
                  "a")  # fmt: skip
    other = graph([node("Exp", "x", "b")], "b")
    nodes = [node("If", "o", "y", name="outer", then_branch=inner, else_branch=other)]
    model = build(nodes, {"x": X, "c": NO, "o": outer}, ["y"])
    agree(model, {"x": X, "c": NO, "o": outer})
    if outer:
        with pytest.raises(ShapeError, match="'odd' chose its then_branch"):
            run(model, x=X, c=YES, o=outer)
    else:  # what is not run holds for nothing
        np.testing.assert_allclose(run(model, x=X, c=YES, o=outer)["y"], np.exp(X))


def test_it_may_lie_in_a_loop(build: Check, agree: Check) -> None:
    scalars = (("i", TensorProto.INT64), ("go", TensorProto.BOOL))
    inputs = [
        *(helper.make_tensor_value_info(name, code, []) for name, code in scalars),
        helper.make_tensor_value_info("sum", F, None),
    ]
    body = graph(
        [
            node("Identity", "go", "on"),
            flat_or_whole("x", "odd"),
            node("Add", "sum odd", "more"),
        ],
        "on more",
        inputs,
    )
    nodes = [node("Loop", "n c start", "y", body=body)]
    feeds = {"x": X, "c": YES, "n": np.array(3), "start": np.zeros(4, "f4")}
    model = build(nodes, feeds, ["y"])
    agree(model, feeds)
    # The condition is the loop's own too: where it fails, the body never runs.
    assert not run(model, **feeds | {"c": NO})["y"].any()


def test_a_rank_that_only_a_shape_tells_is_checked_too(
    build: Check, agree: Check
) -> None:
    feeds = {"x": X, "c": YES}
    nodes = [flat_or_whole("x", "odd"), node("Shape", "odd", "y")]
    model = build(nodes, feeds, ["y"], shapes={"x": ["m", "n"]})
    agree(model, feeds)
    with pytest.raises(ShapeError, match="'odd' chose its else_branch"):
        run(model, x=X, c=NO)


def test_no_pass_loses_a_check(build: Check) -> None:
    feeds = {"x": X, "c": YES}
    nodes = [flat_or_whole("w", "odd"), node("Transpose", "odd", "y")]
    model = build(nodes, {"c": YES}, ["y"], weights={"w": feeds["x"]})
    graph = convert_module(model).module.functions["infer"]
    assert [n.op for n in graph.nodes() if n.op.name == "expect"] == [
        Expect(True, "odd")
    ]


def test_sizes_that_decide_are_told_with_the_branch(build: Check, agree: Check) -> None:
    row = np.arange(3, dtype="f4").reshape(3, 1)
    nodes = [*squeezed("x", "odd", 1), node("Neg", "odd", "y")]
    model = build(nodes, {"x": row}, ["y"], shapes={"x": [3, "n"]})
    agree(model, {"x": row})
    with pytest.raises(ShapeError, match=r"If 'odd' chooses its then_branch"):
        run(model, x=np.zeros((3, 2), "f4"))


def test_sizes_that_are_known_leave_nothing_to_assume(
    build: Check, agree: Check, caplog: pytest.LogCaptureFixture
) -> None:
    row = X[:1]
    model = build(squeezed("x", "y", 0), {"x": row}, ["y"])
    module = agree(model, {"x": row})
    assert "expect" not in {n.op.name for n in module.functions["infer"].nodes()}
    assert not caplog.records


def test_what_was_assumed_is_told_once(
    build: Check, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [flat_or_whole("x", "odd"), node("Concat", "odd x", "y", axis=1)]
    convert(build(nodes, {"x": X, "c": NO}, ["y"]))
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(told) == 1
    assert told[0].startswith("If 'odd' is taken to choose its else_branch")


def test_all_outputs_of_the_branch_are_guarded(build: Check, agree: Check) -> None:
    then = graph(
        [node("SequenceConstruct", "x x", "s"), node("Flatten", "x", "a", axis=0)],
        "a s",
    )
    other = graph(
        [node("SequenceConstruct", "x", "t"), node("ReduceSum", "x", "b", keepdims=0)],
        "b t",
    )
    nodes = [
        node("If", "c", "z s", name="odd", then_branch=then, else_branch=other),
        node("SequenceLength", "s", "y"),
    ]
    model = build(nodes, {"x": X, "c": YES}, ["y"])
    agree(model, {"x": X, "c": YES})
    with pytest.raises(ShapeError, match="'odd' chose its else_branch"):
        run(model, x=X, c=NO)


@pytest.mark.parametrize(
    "kind", [TensorType(DType.BF16, (2,)), TensorType(DType.STRING, (2,)),
             SequenceType(TensorType(DType.F32, (2,)))],
)  # fmt: skip
def test_an_expectation_gives_what_it_takes(kind: Any) -> None:
    x, c = input_value("x", kind), input_value("c", TensorType(DType.BOOL, ()))
    infer = Graph((x, c), (Expect(False, "ä 'b'")(x, c),), ("y",))
    model = Model(read_bytes(write_bytes(Module({"infer": infer}, {}))))
    plain = np.array([1, 0]).astype(object if kind.is_object else kind.dtype.numpy)
    if isinstance(kind, SequenceType):
        given: Any = [np.ones(2, "f4")]
    else:
        given = np.array(["a", ""], object) if kind.is_object else plain
    with Session(model) as session:
        got = session.run({"x": given, "c": NO})["y"]
        assert type(got) is type(given)
        np.testing.assert_array_equal(got, given)
        assert got is not given
        with pytest.raises(ShapeError, match="chose its then_branch"):
            session.run({"x": given, "c": YES})


@pytest.mark.parametrize("shape", [(1,), (2, 2)])
def test_a_condition_is_one_truth_value(shape: tuple[int, ...]) -> None:
    x = TensorType(DType.F32, (2,))
    with pytest.raises(DTypeError, match=r"want bool\[\]"):
        Expect(True, "odd").infer_all((x, TensorType(DType.BOOL, shape)))
    with pytest.raises(DTypeError, match=r"want bool\[\]"):
        Expect(True, "odd").infer_all((x, TensorType(DType.I64, ())))
    with pytest.raises(ShapeError, match="no input left out"):
        Expect(True, "odd").infer_all((None, TensorType(DType.BOOL, ())))


def test_a_squeeze_without_axes_takes_open_sizes_not_to_be_1(build: Check) -> None:
    nodes = [node("Squeeze", "x", "s", name="all"), node("Concat", "s s", "y", axis=1)]
    feeds = {"x": np.zeros((2, 1, 3, 2), "f4")}
    model = build(nodes, feeds, ["y"], shapes={"x": ["N", 1, 3, 2]})
    assert run(model, **feeds)["y"].shape == (2, 6, 2)
    with pytest.raises(ShapeError, match=r"Squeeze 'all'.*meets no 1 among \[N\]"):
        run(model, x=feeds["x"][:1])


@pytest.mark.parametrize("size", [0, 1, 3])
def test_an_empty_input_is_told_from_others(size: int, build: Check) -> None:
    nodes = [
        node("Shape", "x", "shape", end=1),
        node("Equal", "shape zero", "none"),
        node("Greater", "shape zero", "some"),
        node("Cast", "shape", "any", to=TensorProto.BOOL),
    ]
    feeds = {"x": np.zeros((size, 2), "f4")}
    names, weights = ["none", "some", "any"], {"zero": np.array([0], "i8")}
    model = build(nodes, feeds, names, weights=weights, shapes={"x": ["N", 2]})
    assert [bool(y[0]) for y in run(model, **feeds).values()] == [
        not size,
        *[size > 0] * 2,
    ]
