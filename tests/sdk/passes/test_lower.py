"""Packed parameters, and what variables alone decide."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.dims import symbol
from edgewise.ir.graph import constant
from edgewise.ir.module import Role
from edgewise.ops import (
    Add,
    BatchNormFold,
    Exp,
    Expand,
    Gather,
    Linear,
    Mul,
    PackPanels,
    PackTaps,
    Relu,
    Reshape,
    ScaleShift,
    TopK,
    Transpose,
)
from edgewise.passes.lower import lower
from edgewise.types import DType

PACK = PackPanels((0, 1))


def test_a_weight_is_stored_packed(t: Any) -> None:
    module = t.module(Linear(5)(t.x(2, 3), PACK(t.w(3, 5))))
    after, done = lower(module)
    t.same_numbers(module, after)
    assert t.ops(after.functions["infer"]) == {"linear": 1}
    info = after.variables["w"]
    assert info.packing == PACK
    assert info.logical == module.variables["w"].type
    assert info.type.shape == (1, 3, 16)
    np.testing.assert_array_equal(
        info.packing.unpack(info.initial, info.logical), module.variables["w"].initial
    )
    assert "prepare" not in after.functions
    assert done == {"packed": 1}


def test_readers_of_one_packing_share_it(t: Any) -> None:
    w = t.w(3, 5)
    module = t.module(
        Linear(5)(t.x(2, 3), PACK(w)), Linear(5)(t.x(4, 3, key="z"), PACK(w))
    )
    after, _ = lower(module)
    t.same_numbers(module, after)
    assert list(after.variables) == ["w"]
    assert after.variables["w"].packing == PACK


def test_tied_weights_are_stored_once_as_they_are(t: Any) -> None:
    table = t.w(5, 3)
    rows = Gather(0)(table, t.x(4, dtype=DType.I64))
    logits = Linear(5)(rows, PackPanels((1, 0))(table))
    module = t.module(logits)
    after, _ = lower(module)
    t.same_numbers(module, after)
    assert after.variables["w"].packing is None
    assert after.variables["w/pack_panels"].role is Role.DERIVED
    assert after.variables["w/pack_panels"].initial is None
    assert list(after.functions["prepare"].updates) == ["w/pack_panels"]


def test_a_weight_that_is_an_output_is_stored_as_it_is(t: Any) -> None:
    w = t.w(3, 5)
    module = t.module(Linear(5)(t.x(2, 3), PACK(w)), w)
    after, _ = lower(module)
    t.same_numbers(module, after)
    assert after.variables["w"].packing is None


def test_two_packings_of_one_weight_are_derived(t: Any) -> None:
    w = t.w(3, 3)
    values = (
        Linear(3)(t.x(2, 3), PACK(w)),
        Linear(3)(t.x(2, 3), PackPanels((1, 0))(w)),
    )
    module = t.module(*values)
    after, _ = lower(module)
    t.same_numbers(module, after)
    assert after.variables["w"].packing is None
    assert {"w/pack_panels", "w/pack_panels_1"} <= set(after.variables)


def test_constants_are_packed_at_home(t: Any) -> None:
    panels = PACK(constant(np.ones((3, 5), "f4")))
    taps = PackTaps()(constant(np.ones((4, 1, 3, 3), "f4")))
    after, done = lower(t.module(Linear(5)(t.x(2, 3), panels), taps))
    assert t.ops(after.functions["infer"]) == {"linear": 1}
    assert done["packed constants"] == 2


def test_a_folded_norm_is_prepared(t: Any) -> None:
    scale, shift = BatchNormFold().node(*(t.w(3, key=k) for k in "gbmv"), None)
    module = t.module(ScaleShift(1)(t.x(2, 3), scale, shift))
    after, done = lower(module)
    t.same_numbers(module, after)
    assert t.ops(after.functions["infer"]) == {"scale_shift": 1}
    assert done["derived"] == 2
    assert list(after.functions["prepare"].updates) == [
        "g/batch_norm_fold.0",
        "g/batch_norm_fold.1",
    ]


def test_only_the_end_of_a_computation_is_kept(t: Any) -> None:
    value = Exp()(Mul()(t.w(3), constant(np.array(2, "f4"))))
    module = t.module(Add()(t.x(3), value))
    after, _ = lower(module)
    t.same_numbers(module, after)
    derived = [k for k, v in after.variables.items() if v.role is Role.DERIVED]
    assert derived == ["w/exp"]


def test_names_are_the_same_every_time(t: Any) -> None:
    def names() -> list[str]:
        value = Add()(Mul()(t.x(3), Exp()(t.w(3))), Exp()(t.w(3, key="v")))
        return list(lower(t.module(value))[0].variables)

    assert names() == names()


def test_views_of_variables_stay(t: Any) -> None:
    module = t.module(Add()(t.x(2, 3), Reshape((1, 3))(t.w(3))))
    after, done = lower(module)
    assert done == {"packed": 0}
    assert "prepare" not in after.functions


def test_a_view_of_a_computation_is_taken_of_what_is_derived(t: Any) -> None:
    value = Reshape((1, 3))(Exp()(t.w(3)))
    after, _ = lower(t.module(Add()(t.x(2, 3), value)))
    assert t.ops(after.functions["infer"]) == {"add": 1, "reshape": 1}
    assert "w/exp" in after.variables


def test_what_grows_is_not_derived(t: Any) -> None:
    value = Expand((1000, 1000, 3))(t.w(3))
    after, _ = lower(t.module(Relu()(value)))
    assert "prepare" not in after.functions


def test_what_depends_on_an_input_or_an_open_size_stays(t: Any) -> None:
    n = symbol("N")
    value = Add()(t.x(n, 3), Expand((n, 3))(t.w(3)))
    after, _ = lower(t.module(value))
    assert "prepare" not in after.functions


def test_a_moved_variable_is_derived(t: Any) -> None:
    module = t.module(Mul()(t.x(3, 2), Transpose((1, 0))(t.w(2, 3))))
    after, _ = lower(module)
    t.same_numbers(module, after)
    assert "w/transpose" in after.variables


def test_a_derived_name_that_is_taken_gets_another(t: Any) -> None:
    value = Add()(Mul()(t.x(3), Exp()(t.w(3))), t.w(3, key="w/exp"))
    module = t.module(value)
    after, _ = lower(module)
    t.same_numbers(module, after)
    assert "w/exp_1" in after.variables


def test_several_outputs_are_derived_apart(t: Any) -> None:
    values, places = TopK(2, 0, True).node(t.w(5))
    module = t.module(Add()(t.x(2), values), places)
    after, _ = lower(module)
    t.same_numbers(module, after)
    assert {"w/top_k.0", "w/top_k.1"} <= set(after.variables)
