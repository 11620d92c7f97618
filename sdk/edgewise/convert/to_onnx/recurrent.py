"""Recurrent layers."""

from __future__ import annotations

from typing import Any

from edgewise.convert.to_onnx.arrange import whole
from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.weights import gates
from edgewise.convert.to_onnx.writer import At
from edgewise.ops.gates import GATES
from edgewise.ops.recurrence import DIRECTIONS
from edgewise.ops.recurrent import Gru, Lstm, Rnn
from edgewise.types import DType


@writes(Gru, Lstm, Rnn)
def recurrent(at: At) -> Written:
    """``X, W, R, B, sequence_lens, initial states, peepholes``."""
    op, states = at.op, at.op.states
    width, ways = op.gates * op.hidden, len(DIRECTIONS[op.direction])
    weights = [gates(at, at.value(index), width, ways) for index in (1, 2)]
    rest = 4 + states
    peephole = [at.name(rest)] if states == 2 else []
    lengths = at.given(rest + len(peephole))
    names = [
        at.name(0),
        *weights,
        at.name(3),
        "" if lengths is None else whole(at, lengths, DType.I32),
        *(at.name(4 + j) for j in range(states)),
        *peephole,
    ]
    kind = {Gru: "GRU", Lstm: "LSTM", Rnn: "RNN"}[type(op)]
    found: tuple[str, ...] = at.emit_all(kind, 1 + states, *names, **_form(op))
    return found


def _form(op: Any) -> dict[str, Any]:
    more: dict[str, Any] = {"hidden_size": op.hidden, "direction": op.direction}
    if op.clip:
        more["clip"] = op.clip
    if isinstance(op, Gru):
        more["linear_before_reset"] = int(op.linear_before_reset)
    if isinstance(op, Lstm):
        more["input_forget"] = int(op.input_forget)
    names = op.gate_names
    if op.activations or isinstance(op, Rnn):
        more["activations"] = [_onnx_name(name) for name in names]
    for key, given, kind in (("alpha", op.alphas, 1), ("beta", op.betas, 2)):
        # Only those that have such a parameter take one from the list.
        pairs = zip(names, given, strict=True) if given else ()
        kept = [value for name, value in pairs if GATES[name][kind] is not None]
        if kept:
            more[f"activation_{key}"] = kept
    return more


def _onnx_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
