"""Panels of few bits: weights that kernels widen to float32 as they read them.

``f16`` panels are panels of halves.  A panel of whole numbers is bytes: for every
``block`` indices of the reduction sixteen float32 scales, one for each lane, then
sixteen signed numbers an index: a byte each (``i8``), or two in a byte (``i4``), of
lane j in its low half and of lane j + 8 in its high one.  A number times its scale,
rounded to float32, is the weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim, ceildiv
from edgewise.errors import ShapeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import want, want_shape
from edgewise.ops.pack import PANEL, PackPanels
from edgewise.types import DType, TensorType

HALF, BYTE, NIBBLE = "f16", "i8", "i4"
WIDTHS = {HALF: 32, BYTE: 16, NIBBLE: 8}  # bytes of an index of a panel
MOST = {BYTE: 127, NIBBLE: 7}
SCALES = 4 * PANEL  # bytes
# Shares of the largest number of a block that are tried as the largest of its steps:
# with so few steps, finer ones for the many are worth more than the few that are cut.
SHARES = {BYTE: (1.0,), NIBBLE: tuple(1.0 - 0.025 * i for i in range(15))}


def panel_bytes(kind: str, block: int, reduced: Dim) -> Dim:
    """Bytes of a panel of whole numbers."""
    return SCALES * ceildiv(reduced, block) + WIDTHS[kind] * reduced


def narrow_shape(kind: str, block: int, count: Dim, reduced: Dim) -> tuple[Dim, ...]:
    """The shape of ``count`` panels."""
    if kind == HALF:
        return (count, reduced, PANEL)
    return (count, panel_bytes(kind, block, reduced))


def known(op: Op, kind: str, block: int) -> None:
    """Raise unless there are such panels."""
    if kind not in WIDTHS or block < 1:
        raise op.refuse((), f"kind {', '.join(WIDTHS)} and a block from 1 on: {op}")


def want_narrow(
    op: Op, w: TensorType, layout: tuple[str, int], count: Dim, reduced: Dim
) -> None:
    """Raise unless ``w`` are ``count`` panels; ``layout`` is kind and block."""
    known(op, *layout)
    want(op, (w,), frozenset({DType.F16 if layout[0] == HALF else DType.U8}))
    want_shape(op, "weight", w, *narrow_shape(*layout, count, reduced))


def narrowed(tiles: Array, kind: str, block: int, scales: Array | None = None) -> Array:
    """Panels ``f32[P, K, 16]`` with few bits.

    ``scales``, of every panel, block and lane, are those that lose the least where none
    are given; halves have none.
    """
    if kind == HALF:
        with np.errstate(over="ignore"):
            return tiles.astype(np.float16)
    if scales is None:
        scales = block_scales(tiles, kind, block, SHARES[kind])
    count, reduced, _ = tiles.shape
    size_of_panel = SCALES * -(-reduced // block) + WIDTHS[kind] * reduced
    out = np.zeros((count, size_of_panel), np.uint8)
    for number, (begin, at, size) in enumerate(_blocks(kind, block, reduced)):
        part, scale = tiles[:, begin : begin + size], scales[:, number]
        steps = _steps(part, scale, MOST[kind]).astype(np.int8)
        numbers = at + SCALES
        wide = WIDTHS[kind] * size
        out[:, at:numbers] = scale.astype("<f4").view(np.uint8)
        out[:, numbers : numbers + wide] = _stored(steps, kind).reshape(count, wide)
    return out


def widened(stored: Array, kind: str, block: int, reduced: int) -> Array:
    """Panels ``f32[P, K, 16]`` of those with few bits."""
    if kind == HALF:
        return stored.astype(np.float32)
    count = len(stored)
    out = np.zeros((count, reduced, PANEL), np.float32)
    for begin, at, size in _blocks(kind, block, reduced):
        numbers = at + SCALES
        scale = np.ascontiguousarray(stored[:, at:numbers]).view("<f4")
        raw = stored[:, numbers : numbers + WIDTHS[kind] * size]
        steps = _read(raw.reshape(count, size, WIDTHS[kind]), kind)
        with np.errstate(all="ignore"):  # bytes of a file may be any numbers
            out[:, begin : begin + size] = steps * scale[:, None]
    return out


def _blocks(kind: str, block: int, reduced: int) -> Iterator[tuple[int, int, int]]:
    """Of every block: its first index, where it lies, how many indices it has."""
    for begin in range(0, reduced, block):
        at = SCALES * (begin // block) + WIDTHS[kind] * begin
        yield begin, at, min(block, reduced - begin)


def block_scales(
    tiles: Array, kind: str, block: int, shares: tuple[float, ...] = (1.0,)
) -> Array:
    """Scales ``f32[P, blocks, 16]`` of panels ``f32[P, K, 16]``.

    Those that lose the least among ``shares`` of the largest number of a block.
    """
    count, reduced, _ = tiles.shape
    out = np.zeros((count, -(-reduced // block), PANEL), np.float32)
    for number in range(out.shape[1]):
        part = tiles[:, number * block : (number + 1) * block]
        out[:, number] = _scale(part, kind, shares)
    return out


def _scale(part: Array, kind: str, shares: tuple[float, ...]) -> Array:
    """The scales ``[P, 16]`` that lose the least of a block ``[P, size, 16]``."""
    most = np.abs(part).max(axis=1, initial=0.0)
    whole = np.where(most > 0, most / MOST[kind], 1.0).astype(np.float32)
    best, least = whole, np.full(whole.shape, np.inf)
    for share in shares:
        scale = np.maximum(whole * np.float32(share), np.finfo(np.float32).tiny)
        lost = _steps(part, scale, MOST[kind]) * scale[:, None] - part
        error = np.square(lost, dtype=np.float64).sum(axis=1)
        best = np.where(error < least, scale, best)
        least = np.minimum(error, least)
    return best


def _steps(part: Array, scale: Array, most: int) -> Array:
    found: Array = np.clip(np.rint(part / scale[:, None]), -most, most)
    return found


def _stored(steps: Array, kind: str) -> Array:
    """Signed numbers ``[P, size, 16]`` as bytes."""
    raw = steps.view(np.uint8)
    if kind == BYTE:
        return raw
    half = PANEL // 2
    return (raw[..., :half] & 15) | (raw[..., half:] << 4)


def _read(raw: Array, kind: str) -> Array:
    """The signed numbers of bytes ``[P, size, width]``, as float32."""
    if kind == NIBBLE:
        low = (raw << 4).view(np.int8) >> 4
        raw = np.concatenate([low, raw.view(np.int8) >> 4], axis=-1)
    return raw.view(np.int8).astype(np.float32)


class PackNarrow(Op, name="pack_narrow"):
    """Panels of few bits from real weights; ``axes`` and ``groups`` as `PackPanels`."""

    axes: tuple[int, ...]
    groups: int = 1
    kind: str = HALF
    block: int = 32

    @property
    def panels(self) -> PackPanels:
        """How weights would be packed that stay as they are."""
        return PackPanels(self.axes, self.groups)

    def infer(self, w: TensorType) -> TensorType:
        known(self, self.kind, self.block)
        want(self, (w,), frozenset({DType.F32}))
        count, reduced, _ = self.panels.infer(w).shape
        dtype = DType.F16 if self.kind == HALF else DType.U8
        shape = narrow_shape(self.kind, self.block, count, reduced)
        return w.with_dtype(dtype).with_shape(shape)

    def reference(self, w: Array) -> Array:
        return self.stepped(w, None)

    def stepped(self, w: Array, scales: Array | None) -> Array:
        """As ``reference``, with scales ``f32[P, blocks, 16]`` that are known."""
        tiles = self.panels.reference(w)
        return narrowed(tiles, self.kind, self.block, scales)

    def unpack(self, stored: Array, logical: TensorType) -> Array:
        """The logical array, of float32, whose packed form is ``stored``."""
        packed = self.infer(logical).dims
        if stored.shape != packed:
            raise ShapeError(
                f"pack_narrow: got stored {list(stored.shape)}; want {list(packed)}"
            )
        reduced = self.panels.infer(logical).dims[1]
        tiles = widened(stored, self.kind, self.block, reduced)
        return self.panels.unpack(tiles, logical)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for kind in WIDTHS:
            for k, n in ((3, 5), (1, 16), (70, 17), (32, 33), (0, 3), (2, 0)):
                yield Sample(PackNarrow((0, 1), 1, kind), (cases.floats(k, n),))
            yield Sample(PackNarrow((1, 0), 1, kind, 3), (cases.floats(6, 7),))
            conv = PackNarrow((2, 3, 1, 0), 2, kind, 8)
            yield Sample(conv, (cases.floats(34, 3, 1, 2),))


class PackHalves(Op, name="pack_halves"):
    """A tensor as halves, in its own shape."""

    def infer(self, w: TensorType) -> TensorType:
        want(self, (w,), frozenset({DType.F32}))
        return w.with_dtype(DType.F16)

    def reference(self, w: Array) -> Array:
        with np.errstate(over="ignore"):
            return w.astype(np.float16)

    def unpack(self, stored: Array, logical: TensorType) -> Array:
        """The logical array, of float32."""
        if stored.shape != logical.dims:
            raise ShapeError(
                f"pack_halves: got stored {list(stored.shape)}; "
                f"want {list(logical.dims)}"
            )
        return stored.astype(np.float32)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in ((0,), (3, 5), (2, 17, 3)):
            yield Sample(PackHalves(), (cases.floats(*shape),))


class WidenPanels(Op, name="widen_panels"):
    """Panels ``f32[P, K, 16]`` of those of few bits; ``reduced`` is K."""

    reduced: int
    kind: str = HALF
    block: int = 32

    def infer(self, w: TensorType) -> TensorType:
        layout = self.kind, self.block
        if not w.rank or self.reduced < 0:
            raise self.refuse((w,), "panels")
        want_narrow(self, w, layout, w.shape[0], self.reduced)
        return w.with_dtype(DType.F32).with_shape((w.shape[0], self.reduced, PANEL))

    def reference(self, w: Array) -> Array:
        return widened(w, self.kind, self.block, self.reduced)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for kind in WIDTHS:
            for k, n, block in ((3, 5, 32), (70, 37, 32), (64, 16, 64), (0, 3, 8)):
                yield Sample(WidenPanels(k, kind, block), (panels(k, n, kind, block),))
            worst = narrowed(cases.floats(2, 9, 16), kind, 4)
            worst.view(np.uint8)[...] = cases.whole(
                math.prod(worst.shape) * worst.itemsize, dtype="uint8", low=0, high=256
            ).reshape(worst.view(np.uint8).shape)
            yield Sample(WidenPanels(9, kind, 4), (worst,))


def panels(k: int, n: int, kind: str, block: int, seed: int = 2) -> Array:
    """Panels of a matrix, for samples."""
    weight = cases.floats(k, n, seed=seed)
    return PackNarrow((0, 1), 1, kind, block).reference(weight)
