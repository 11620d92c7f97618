"""The good files that mutants are made of: small models with every kind of content."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

import edgewise as ew
from edgewise import compress

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
LARGEST = 1 << 16  # bytes: most of a mutant of a larger file is weights


class Seed(NamedTuple):
    """A good file.

    Attributes:
        name: What it is, for people.
        data: Its bytes.
    """

    name: str
    data: bytes


def onnx_seeds(more: Path) -> list[Seed]:
    """The small models that the package onnx brings as files, and demonstrations.

    Args:
        more: A folder of others; it may be empty.
    """
    paths = sorted(DATA.glob("*/*/model.onnx"))
    paths += sorted((Path(ew.__file__).parent / "demo_data").glob("*.onnx"))
    paths += sorted(more.glob("*.onnx"))
    seeds = [Seed(f"{p.parent.name}/{p.name}", p.read_bytes()) for p in paths]
    seeds += [Seed(model.graph.name, model.SerializeToString()) for model in written()]
    return [seed for seed in seeds if len(seed.data) <= LARGEST]


def ew_seeds(folder: Path) -> list[Seed]:
    """What was converted to that folder."""
    paths = sorted(folder.glob("*.ew"))
    return [Seed(path.name, path.read_bytes()) for path in paths]


def write_ew(folder: Path) -> None:
    """Convert the seeds, those of that folder too, into it."""
    for number, seed in enumerate(onnx_seeds(folder)):
        try:
            ew.convert(seed.data).save(folder / f"{number:04}.ew")
        except ew.UnsupportedOpError:
            continue
    write_small(folder)


def write_small(folder: Path) -> None:
    """Put models of small numbers there: bytes, few bits, codings of files."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (8, 2, 3, 3), "w2": (8, 1, 3, 3), "w3": (8, 8, 1, 1)}
    weights = [
        onnx.numpy_helper.from_array(rng.normal(size=shape).astype("f4"), name)
        for name, shape in shapes.items()
    ]
    model = onnx.parser.parse_model(IMAGES)
    model.graph.initializer.extend(weights)
    real = ew.convert(model)
    data = [{"x": rng.normal(size=(2, 2, 7, 7)).astype("f4")}] * 2
    made = [
        ew.quantize(real, data),
        ew.quantize(real, data, ew.QuantizeConfig(keep=("w2",), reduce_range=False)),
        compress.prune(real, 0.7),
        compress.cluster(real, 4),
        compress.binarize(real),
    ]
    for weights_ in ("float16", "int8", "int4"):
        config = ew.QuantizeConfig(weights=weights_, activations="float32")
        made.append(ew.quantize(real, None, config))
    for number, small in enumerate(made):
        small.save(folder / f"small{number}.ew")


def write_node_cases(folder: Path) -> None:
    """Put the models of ONNX's node tests there, one or more for every operator."""
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        if case.model is not None:
            data = case.model.SerializeToString()
            (folder / f"{case.name}.onnx").write_bytes(data)


IMAGES = """
    <ir_version: 9, opset_import: ["": 20]>
    images (float[N, 2, 7, 7] x) => (y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w1)
        b = Relu (a)
        c = Conv <pads = [1, 1, 1, 1], group = 8> (b, w2)
        d = Relu (c)
        e = Conv (d, w3)
        s = Add (e, b)
        y = MaxPool <kernel_shape = [2, 2]> (s)
    }
"""

# In ONNX's own notation: one feature each that the package's files do not show.
TEXTS = (
    """
    <ir_version: 9, opset_import: ["": 20]>
    shapes (float[N, 4] x, int64[2] to) => (y) {
        s = Shape (x)
        one = Constant <value = int64[1] {1}> ()
        n = Gather <axis = 0> (s, one)
        flat = Concat <axis = 0> (n, one)
        r = Reshape <allowzero = 0> (x, to)
        z = ConstantOfShape <value = float[1] {2.0}> (flat)
        w = Expand (z, flat)
        t = Transpose <perm = [1, 0]> (r)
        y = Add (t, w)
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20]>
    turns (float[3] x, int64 count, bool go) => (y, all) {
        y, all = Loop (count, go, x) <body = turn (int64 i, bool c, float[3] v)
            => (bool again, float[3] next, float[3] out) {
            again = Identity (c)
            next = Add (v, x)
            out = Mul (next, x)
        }>
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20]>
    branch (float[3] x, bool go) => (y) {
        y = If (go) <then_branch = a () => (float[3] p) { p = Relu (x) },
                     else_branch = b () => (float[3] q) { q = Neg (x) }>
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20, "local": 1]>
    calls (float[2, 3] x) => (y) {
        t = local.Scaled <by = 2.0> (x)
        y = local.Scaled <by = 0.5> (t)
    }
    <opset_import: ["": 20], domain: "local">
    Scaled <by> (v) => (w) {
        f = Constant <value_float: float = @by> ()
        w = Mul (v, f)
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20]>
    places (float[4, 5] x, int64[3] i, int64[2, 5] j) => (a, b, c, d, e) {
        a = Gather <axis = 0> (x, i)
        b = GatherElements <axis = 0> (x, j)
        c = ScatterElements <axis = 0, reduction = "add"> (x, j, b)
        k = Constant <value = int64[1] {3}> ()
        d, e = TopK <axis = 1, largest = 1> (x, k)
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20]>
    image (float[1, 2, 8, 8] x, float[4] scales) => (a, b, c) {
        none = Constant <value = float[0] {}> ()
        a = Resize <mode = "linear"> (x, none, scales)
        p = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> ()
        padded = Pad <mode = "reflect"> (x, p)
        b = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (padded)
        c = LpPool <kernel_shape = [2, 2], p = 2> (b)
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20]>
    whole (float[2, 8] x) => (y) {
        s = Constant <value = float {0.1}> ()
        z = Constant <value = int8 {3}> ()
        w = Constant <value = int8[8, 2] {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7,
            8}> ()
        q = QuantizeLinear (x, s, z)
        m = MatMulInteger (q, w, z)
        f = Cast <to = 1> (m)
        y = Mul (f, s)
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20]>
    held (float[3] x, int64 at) => (y, n) {
        s = SequenceConstruct (x, x)
        t = SequenceInsert (s, x, at)
        y = SequenceAt (t, at)
        n = SequenceLength (t)
    }
    """,
    """
    <ir_version: 9, opset_import: ["": 20]>
    found (float[6] x) => (y, z) {
        i = NonZero (x)
        t = Transpose <perm = [1, 0]> (i)
        y = GatherND (x, t)
        m = Constant <value = int64[1] {-1}> ()
        z = Reshape (y, m)
    }
    """,
)


def written() -> list[onnx.ModelProto]:
    """Models of ``TEXTS``."""
    return [onnx.parser.parse_model(text) for text in TEXTS]
