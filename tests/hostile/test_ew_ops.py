"""Model files that give ops attributes no importer would: one error, no hang.

Ops trust their attributes; the reader, which infers types with them, must not.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from edgewise.errors import ModelFormatError
from edgewise.format import attributes
from edgewise.format._generated import schema
from edgewise.format.build import build
from edgewise.format.container import aligned, seal
from edgewise.format.flatten import Flat, flatten
from edgewise.format.forms import BOOL, DIM, FLOAT, INT, INTS, TEXT, TUPLE, forms
from edgewise.format.read import read_bytes
from edgewise.ir.graph import Graph, Leaf, input_value
from edgewise.ir.module import Module
from edgewise.ir.op import OPS, Op, Sample
from edgewise.types import DType, TensorType

SLOWEST = 2.0  # seconds for one node, on a busy machine
MOST = 1 << 26  # bytes
NUMBERS = (0, -1, 33, 2**40, 2**63 - 1, -(2**63))
WITH_ATTRIBUTES = {
    name: op
    for name, op in sorted(OPS.items())
    if op.fields and not issubclass(op, Leaf) and op.__module__.startswith("edgewise.")
    if not op.objects  # their inputs are no arrays; see test_ew_bodies
}


def applied(sample: Sample) -> Flat:
    """The tables of a module that applies the sample's op to inputs."""
    inputs = tuple(
        None
        if array is None
        else input_value(f"x{i}", TensorType(DType.of(array.dtype), array.shape))
        for i, array in enumerate(sample.inputs)
    )
    outputs = sample.op.node(*inputs)
    names = tuple(f"y{i}" for i in range(len(outputs)))
    given = tuple(value for value in inputs if value is not None)
    flat = flatten(Module({"infer": Graph(given, outputs, names)}, {}))
    flat.model.ops[0].attributes = tuple(every_attribute(sample.op))
    return flat


def every_attribute(op: Op) -> Iterator[schema.Attribute]:
    """Those at their default, too."""
    for field, form in zip(op.fields, forms(type(op)).values(), strict=True):
        attribute = attributes._encode(getattr(op, field.name), form)
        attribute.name = field.name
        yield attribute


def extremes(attribute: schema.Attribute) -> Iterator[dict[str, object]]:
    """What the attribute is changed to."""
    match attribute.kind:
        case k if k in {INT, DIM}:
            yield from ({"whole": number} for number in NUMBERS)
            yield {"kind": DIM, "text": "max(N, 2) * N - 7"}
        case k if k == FLOAT:
            yield from ({"real": r} for r in (np.nan, np.inf, -1e308, 0.0))
        case k if k == BOOL:
            yield {"whole": 1 - attribute.whole}
        case k if k == TEXT:
            yield from ({"text": text} for text in ("", "f32", "\0", "x" * 9999))
        case k if k in {INTS, TUPLE}:
            size = len(attribute.wholes) or len(attribute.items)
            for number in NUMBERS:
                yield {"kind": INTS, "wholes": (number,) * size, "items": ()}
            for many in (0, 5000):
                yield {"kind": INTS, "wholes": (1,) * many, "items": ()}


def changes(table: schema.Op) -> Iterator[str]:
    for attribute in table.attributes:
        before = dict(attribute.__dict__)
        for change in extremes(attribute):
            attribute.__dict__.update(change)
            yield attribute.name
            attribute.__dict__.clear()
            attribute.__dict__.update(before)


@pytest.mark.parametrize("op", WITH_ATTRIBUTES.values(), ids=WITH_ATTRIBUTES)
def test_attributes_at_their_extremes_are_read_or_refused(op: type[Op]) -> None:
    sample = next(iter(op.samples()))
    flat = applied(sample)
    data = b"".join(bytes(p).ljust(aligned(len(p)), b"\0") for p in flat.payloads)
    read_bytes(seal(build(flat.model, b"EDGW")) + data)
    tracemalloc.start()
    try:
        for what in changes(flat.model.ops[0]):
            header = build(flat.model, b"EDGW")
            tracemalloc.reset_peak()
            start = time.perf_counter()
            try:
                read_bytes(seal(header) + data)
            except ModelFormatError as error:
                assert "\n" not in str(error), what  # noqa: PT017 - both may happen
            assert time.perf_counter() - start < SLOWEST, what
            assert tracemalloc.get_traced_memory()[1] < MOST, what
    finally:
        tracemalloc.stop()
