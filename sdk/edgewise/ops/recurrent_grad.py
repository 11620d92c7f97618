"""What training needs of recurrent layers: the way back through their steps.

Products of whole sequences are left to linear layers.  These ops take the input's part
of all gates, ``given[T, D, N, G * H]``, and give the gradients of what goes into the
gates: of the input's part and, where that is another, of the state's part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgewise.ir.op import Array, Sample
from edgewise.ops import cases
from edgewise.ops.checks import want_shape, wide
from edgewise.ops.pack import matrices
from edgewise.ops.recurrence import DIRECTIONS, Recurrent
from edgewise.ops.recurrence_grad import Way, slopes, want_way_back, ways_back
from edgewise.ops.recurrent import Gru, Lstm, Rnn
from edgewise.types import TensorType

Types = tuple[TensorType, ...]


class _OfOneState:
    """The way back through layers whose steps hand on one state: goes before these."""

    def made(self, given: TensorType, y: TensorType, dh: TensorType) -> Types:
        """Types of what ``_way`` gives, all directions together."""
        raise NotImplementedError

    def _way(self, d: int, way: Way, dh: Array) -> tuple[Array, ...]:
        """Gradients along one direction: of each step, then of the first state."""
        raise NotImplementedError

    def infer(
        self,
        given: TensorType,
        r: TensorType,
        bias: TensorType | None,
        h0: TensorType | None,
        y: TensorType,
        dy: TensorType,
        dh: TensorType,
        lengths: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        op: Any = self
        want_way_back(op, given, r, bias, y, h0, dh, lengths=lengths)
        want_shape(op, "dy", dy, *y.shape)
        return self.made(given, y, dh)

    def reference(
        self,
        given: Array,
        r: Array,
        bias: Array | None,
        h0: Array | None,
        y: Array,
        dy: Array,
        dh: Array,
        lengths: Array | None = None,
    ) -> tuple[Array, ...]:
        op: Any = self
        found = [
            self._way(d, way, wide(dh[d]))
            for d, way in enumerate(ways_back(op, given, r, bias, h0, y, dy, lengths))
        ]
        *parts, last = zip(*found, strict=True)
        stacked = (np.stack(part, axis=1) for part in parts)
        return tuple(x.astype(y.dtype) for x in (*stacked, np.stack(last)))


class GruGrad(  # type: ignore[misc]  # other inputs than the layer
    _OfOneState, Gru, name="gru_grad"
):
    """Gradients of a ``gru``: (of given, of the state's part, before, fed, of h0).

    ``before`` are the states that steps began with, ``fed`` what the recurrent weights
    of the hidden gate multiply: those, or those after the reset gate.
    """

    def made(self, given: TensorType, y: TensorType, dh: TensorType) -> Types:
        return given, given, y, y, dh

    def _way(self, d: int, way: Way, dh: Array) -> tuple[Array, ...]:
        (f, g), (df, dg) = self.functions(d), slopes(self, d)
        h, before = self.hidden, way.before
        loop, sums, plain = way.loop, way.sums, self.linear_before_reset
        with np.errstate(all="ignore"):
            state = before @ loop[:, : 2 * h] + way.bias[: 2 * h]
            az, ar = np.split(sums[..., : 2 * h] + state, 2, axis=-1)
            z, reset = f(az), f(ar)
            fed = before if plain else reset * before
            hidden = fed @ loop[:, 2 * h :] + way.bias[2 * h :]
            ah = sums[..., 2 * h :] + (reset * hidden if plain else hidden)
            fresh, sz, sr, sh = g(ah), df(az), df(ar), dg(ah)
            dgiven, dloop = np.zeros_like(sums), np.zeros_like(sums)
            for t in way.order:
                total = dh + way.dy[t]
                own = total * (1 - z[t]) * sh[t]
                through = own * reset[t] if plain else own
                back = through @ loop[:, 2 * h :].T
                ds = (own * hidden[t] if plain else back * before[t]) * sr[t]
                du = total * (before[t] - fresh[t]) * sz[t]
                both = np.concatenate([du, ds], axis=-1)
                back = back if plain else back * reset[t]
                new = total * z[t] + back + both @ loop[:, : 2 * h].T
                dh = np.where(way.active[t], new, dh)
                gates = np.concatenate([both, own], axis=-1)
                dgiven[t] = np.where(way.active[t], gates, 0.0)
                dloop[t] = np.where(
                    way.active[t], np.concatenate([both, through], axis=-1), 0.0
                )
        return dgiven, dloop, before, fed, dh

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sample in Gru.samples():
            if isinstance(sample.op, Gru):
                yield from _samples(GruGrad(*sample.op.values), sample)


class LstmGrad(Lstm, name="lstm_grad"):
    """Gradients of an ``lstm``: (of the gates, before, of h0, c0 and the peepholes).

    Behind y come the gradients of y, h and c, then the lengths, if there are any.
    """

    def infer(  # type: ignore[override]  # other inputs than the layer
        self,
        given: TensorType,
        r: TensorType,
        bias: TensorType | None,
        h0: TensorType | None,
        c0: TensorType | None,
        peephole: TensorType | None,
        y: TensorType,
        *back: TensorType,
    ) -> tuple[TensorType, ...]:
        if not 3 <= len(back) <= 4:
            raise self.refuse((given, r, y, *back), "dy, dh, dc, lengths?")
        (dy, dh, dc), lengths = back[:3], back[3] if len(back) > 3 else None
        want_way_back(self, given, r, bias, y, h0, c0, dh, dc, lengths=lengths)
        want_shape(self, "dy", dy, *y.shape)
        ways = len(DIRECTIONS[self.direction])
        want_shape(self, "peephole", peephole, ways, 3 * self.hidden)
        return given, y, dh, dc, dh.with_shape((ways, 3 * self.hidden))

    def reference(  # type: ignore[override]  # the same
        self,
        given: Array,
        r: Array,
        bias: Array | None,
        h0: Array | None,
        c0: Array | None,
        peephole: Array | None,
        y: Array,
        *back: Array,
    ) -> tuple[Array, ...]:
        (dy, dh, dc), lengths = back[:3], back[3] if len(back) > 3 else None
        start = np.zeros(dc.shape) if c0 is None else wide(c0)
        hole = np.zeros((len(dc), 3 * self.hidden)) if peephole is None else peephole
        found = [
            self._way(d, way, (start[d], wide(hole[d])), wide(dh[d]), wide(dc[d]))
            for d, way in enumerate(ways_back(self, given, r, bias, h0, y, dy, lengths))
        ]
        gates, before, *last = zip(*found, strict=True)
        stacked = (np.stack(part, axis=1) for part in (gates, before))
        *states, holes = map(np.stack, last)
        if peephole is None:  # what is not there has no gradient
            holes = np.zeros_like(holes)
        return tuple(x.astype(y.dtype) for x in (*stacked, *states, holes))

    def _way(
        self, d: int, way: Way, cell: tuple[Array, Array], dh: Array, dc: Array
    ) -> tuple[Array, ...]:
        (f, g, last), (df, dg, dlast) = self.functions(d), slopes(self, d)
        (c0, hole), h = cell, self.hidden
        pi, po, pf = np.split(hole, 3)
        with np.errstate(all="ignore"):
            sums = way.sums + way.before @ way.loop + way.bias
            earlier, now = self._cells(d, way, sums, c0, hole)
            si, so, sf, sc = np.split(sums, 4, axis=-1)
            si, so, sf = si + pi * earlier, so + po * now, sf + pf * earlier
            take, out, new = f(si), f(so), g(sc)
            keep = 1 - take if self.input_forget else f(sf)
            ti, to, tf, tc = df(si), df(so), df(sf), dg(sc)
            seen, tl = last(now), dlast(now)
            grads = np.zeros_like(sums)
            for t in way.order:
                total = dh + way.dy[t]
                do = total * seen[t] * to[t]
                inner = dc + total * out[t] * tl[t] + do * po
                forgot = inner * earlier[t]
                di = inner * new[t] - (forgot if self.input_forget else 0.0)
                di = di * ti[t]
                dk = np.zeros_like(di) if self.input_forget else forgot * tf[t]
                parts = [di, do, dk, inner * take[t] * tc[t]]
                gates = np.concatenate(parts, axis=-1)
                before = inner * keep[t] + di * pi + dk * pf
                on = way.active[t]
                dh = np.where(on, gates @ way.loop.T, dh)
                dc = np.where(on, before, dc)
                grads[t] = np.where(on, gates, 0.0)
            read = np.concatenate([earlier, now, earlier], axis=-1)
            holes = (grads[..., : 3 * h] * read).sum((0, 1))
        return grads, way.before, dh, dc, holes

    def _cells(
        self, d: int, way: Way, sums: Array, c: Array, hole: Array
    ) -> tuple[Array, Array]:
        """The cells before and after each step."""
        f, g, _ = self.functions(d)
        pi, _, pf = np.split(hole, 3)
        earlier, now = (np.zeros((*sums.shape[:2], self.hidden)) for _ in range(2))
        for t in reversed(way.order):
            si, _, sf, sc = np.split(sums[t], 4, axis=-1)
            take = f(si + pi * c)
            keep = 1 - take if self.input_forget else f(sf + pf * c)
            earlier[t] = c
            c = np.where(way.active[t], keep * c + take * g(sc), c)
            now[t] = c
        return earlier, now

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sample in Lstm.samples():
            if isinstance(sample.op, Lstm):
                yield from _samples(LstmGrad(*sample.op.values), sample)


class RnnGrad(  # type: ignore[misc]  # other inputs than the layer
    _OfOneState, Rnn, name="rnn_grad"
):
    """Gradients of an ``rnn``: (of the gates, before, of h0)."""

    def made(self, given: TensorType, y: TensorType, dh: TensorType) -> Types:
        return given, y, dh

    def _way(self, d: int, way: Way, dh: Array) -> tuple[Array, ...]:
        (slope,) = slopes(self, d)
        with np.errstate(all="ignore"):
            steep = slope(way.sums + way.before @ way.loop + way.bias)
            grads = np.zeros_like(steep)
            for t in way.order:
                gates = (dh + way.dy[t]) * steep[t]
                dh = np.where(way.active[t], gates @ way.loop.T, dh)
                grads[t] = np.where(way.active[t], gates, 0.0)
        return grads, way.before, dh

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sample in Rnn.samples():
            if isinstance(sample.op, Rnn):
                yield from _samples(RnnGrad(*sample.op.values), sample)


def _samples(op: Recurrent, sample: Sample) -> Iterator[Sample]:
    """The way back through a sample of the layer."""
    x, w, r, bias, *rest = sample.inputs
    layer = sample.op
    if x is None or w is None or r is None:
        return
    width = op.gates * op.hidden
    given = np.stack([x @ m for m in matrices(w, width)], axis=1)
    if bias is not None:
        given = given + bias[None, :, None, :width]
    made = layer.reference(*sample.inputs)
    y, *last = made if isinstance(made, tuple) else (made,)
    states = op.states + (op.states == 2)  # with the peepholes
    held = [*rest, *[None] * (states + 1 - len(rest))]
    grads = [cases.floats(*v.shape, seed=7 + i) for i, v in enumerate((y, *last))]
    inputs = [given, r, bias, *held[:states], y, *grads]
    lengths = held[states]
    yield Sample(op, (*inputs, *([] if lengths is None else [lengths])))
