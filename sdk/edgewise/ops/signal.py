"""Spectra: the discrete Fourier transform, and the mel scale laid over one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from edgewise.dims import Dim, floordiv
from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, INTEGERS, integers, want, want_axis, wide
from edgewise.types import DType, TensorType


class Dft(Op, name="dft"):
    """The discrete Fourier transform of ``length`` along ``axis``.

    The last axis of the input holds a real number, or its real and imaginary part; so
    does that of the output, which is complex but for ``inverse`` with ``onesided``.
    What is longer is cut, what is shorter gets zeros.

    Attributes:
        inverse: The inverse, divided by ``length``.
        onesided: Of a real signal only the half of the spectrum that tells the other.
    """

    length: Dim
    axis: int
    inverse: bool = False
    onesided: bool = False

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank - 1)
        real = self.onesided and not self.inverse
        if isinstance(x.shape[-1], int) and x.shape[-1] not in (1, 2 - real):
            parts = "1 real part" if real else "1 or 2 parts"
            raise self.refuse((x,), f"{parts} along the last axis")
        if isinstance(self.length, int) and self.length < 1:
            raise self.refuse((x,), f"a length from 1 on, not {self.length}")
        shape = list(x.shape)
        shape[self.axis] = floordiv(self.length, 2) + 1 if real else self.length
        shape[-1] = 1 if self.onesided and self.inverse else 2
        return x.with_shape(tuple(shape))

    def reference(self, x: Array) -> Array:
        (length,) = integers(self, (self.length,))
        parts = x if x.dtype in (np.float32, np.float64) else wide(x)
        signal = parts[..., 0]
        if x.shape[-1] == 2:
            signal = signal + np.complex64(1j) * parts[..., 1]
        transforms: dict[tuple[bool, bool], Callable[..., Array]] = {
            (False, False): np.fft.fft,
            (False, True): np.fft.rfft,
            (True, False): np.fft.ifft,
            (True, True): np.fft.irfft,
        }
        with np.errstate(all="ignore"):
            transform = transforms[self.inverse, self.onesided]
            y = transform(signal, n=length, axis=self.axis)
            real = (y.real, y.imag) if np.iscomplexobj(y) else (y,)
            return np.stack(real, axis=-1).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for length in (1, 7, 8, 17):
            for inverse in (False, True):
                yield Sample(Dft(length, 0, inverse), (cases.floats(8, 2),))
                yield Sample(Dft(length, 1, inverse), (cases.floats(2, 5, 1),))
                yield Sample(Dft(length, 0, inverse), (cases.floats(3, 5, 2),))
            yield Sample(Dft(length, 1, onesided=True), (cases.floats(2, 8, 1),))
            yield Sample(Dft(length, 1, True, True), (cases.floats(2, 5, 2),))
        for dtype in ("float64", "float16"):
            yield Sample(Dft(5, 0), (cases.floats(5, 1, dtype=dtype),))
        yield Sample(Dft(4, 0), (np.asarray([[1], [np.nan], [2], [3]], "f4"),))


class MelWeights(Op, name="mel_weights"):
    """Triangles, equally wide in mel, over the frequencies of a spectrum.

    Inputs, all scalars: number of triangles, length of the transform, samples a second,
    lowest and highest frequency.  Output: a row for every frequency, a column for every
    triangle, whose peak is 1.
    """

    rows: Dim
    columns: Dim
    to: str = "f32"

    def infer(self, *given: TensorType) -> TensorType:
        if len(given) != 5 or any(type_.shape != () for type_ in given):
            raise self.refuse(given, "five scalars")
        want(self, given[:3], INTEGERS)
        want(self, given[3:], FLOATS)
        try:
            dtype = DType(self.to)
        except ValueError as error:
            raise DTypeError(f"mel_weights: {self.to!r} names no type") from error
        return TensorType(dtype, (self.rows, self.columns))

    def reference(
        self, count: Array, length: Array, rate: Array, low: Array, high: Array
    ) -> Array:
        rows, columns = integers(self, (self.rows, self.columns))
        if (rows, columns) != (int(length) // 2 + 1, int(count)) or rate <= 0:
            raise ShapeError(
                f"mel_weights: got {int(count)} triangles over {int(length)} points at"
                f" {int(rate)} Hz; want [{rows}, {columns}] and a rate above 0"
            )
        with np.errstate(all="ignore"):
            # In mel the frequencies lie evenly; each falls into a row.
            ends = np.log10(1 + np.asarray([low, high], np.float64) / 700) * 2595
            step = (ends[1] - ends[0]) / (columns + 2)
            hertz = 700 * (10 ** ((ends[0] + np.arange(columns + 2) * step) / 2595) - 1)
            weights = _triangles(rows, (int(length) + 1) * hertz // int(rate))
        return weights.astype(DType(self.to).numpy)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for count, length, rate in ((8, 16, 8192), (40, 400, 16000), (1, 1, 8000)):
            numbers = (np.asarray(count), np.asarray(length), np.asarray(rate))
            edges = (np.asarray(20.0, "f4"), np.asarray(rate / 2, "f4"))
            for to in ("f32", "f64"):
                op = MelWeights(length // 2 + 1, count, to)
                yield Sample(op, (*numbers, *edges))


def _triangles(rows: int, places: Array) -> Array:
    """A column for every three neighbours: where it begins, peaks and ends."""
    begin, peak, end = places[:-2], places[1:-1], places[2:]
    at = np.arange(rows)[:, None]
    rising, falling = (at - begin) / (peak - begin), (end - at) / (end - peak)
    inside = (at >= begin) & (at < end)
    slopes = np.where(inside, np.where(at < peak, rising, falling), 0.0)
    return np.where(at == peak, 1.0, slopes)
