"""Which native functions serve the ways back through recurrent layers."""

from __future__ import annotations

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Scratch,
    Temp,
    Word,
    kernel,
)
from edgewise.kernels.catalog.calls import given, has, integer, only_f32, optional, word
from edgewise.kernels.catalog.recurrent import ACTIVATIONS, BATCH


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def _way_back(
    call: Call,
    symbol: str,
    slots: tuple[int, int, int, int],
    outputs: tuple[int, int, int, int, int],
    option: int = 0,
    more: tuple[Word, ...] = (),
) -> Binding | None:
    """The turned weights, then all steps.

    Args:
        call: The call.
        symbol: What goes back.
        slots: Inputs y, dy, dh and, if there are any, lengths.
        outputs: Gradients of given and of the state's part, before, fed, dh0.
        option: Of the cell.
        more: Words of the cell.
    """
    op = call.op
    *back, lengths = slots
    if getattr(op, "activations", ()) or getattr(op, "clip", 0.0) or has(call, lengths):
        return None
    steps, ways, batch, width = given(call, 0).dims
    hidden = integer(call, "hidden")
    backwards = int(word(call, "direction") == "reverse")
    panels, blocks = -(-width // 16), -(-hidden // 16)
    turned = max(64 * width * blocks * ways, 64)
    cells = _aligned(4 * steps * ways * batch * hidden)
    line = _aligned(4 * hidden)
    scratch = BATCH * (64 * max(panels, blocks) + 2 * line)
    words: tuple[Word, ...] = (
        *(In(0), In(1), optional(call, 2), optional(call, 3), *map(In, back)),
        *(steps, batch, hidden, ways, backwards, Scratch(), scratch, Temp(0)),
        *(*map(Out, outputs), option, *more),
    )
    turn = (In(1), Temp(0), hidden, width, ways)
    tasks = max(1, ways * -(-batch // BATCH))
    launches = (
        Launch("recurrent_turn_f32", turn, max(1, ways * blocks)),
        Launch(symbol, words, tasks),
    )
    return Binding(launches, (turned, max(cells, 64)), scratch)


@kernel("gru_grad", "recurrent_turn_f32", "gru_grad_f32")
@only_f32
def bind_gru_grad(call: Call) -> Binding | None:
    """Where the reset gate follows the product."""
    if not integer(call, "linear_before_reset"):
        return None
    return _way_back(call, "gru_grad_f32", (4, 5, 6, 7), (0, 1, 2, 3, 4))


@kernel("lstm_grad", "recurrent_turn_f32", "lstm_grad_f32")
@only_f32
def bind_lstm_grad(call: Call) -> Binding | None:
    """Without peepholes."""
    if integer(call, "input_forget") or has(call, 5):
        return None
    cell: tuple[Word, ...] = (optional(call, 4), In(9), Out(3), Out(4), Temp(1))
    outputs = (0, 0, 1, 1, 2)
    return _way_back(call, "lstm_grad_f32", (6, 7, 8, 10), outputs, 0, cell)


@kernel("rnn_grad", "recurrent_turn_f32", "rnn_grad_f32")
@only_f32
def bind_rnn_grad(call: Call) -> Binding | None:
    """Whose result tells the slope."""
    activation = ACTIVATIONS.get(word(call, "activation"))
    if activation is None:
        return None
    outputs = (0, 0, 1, 1, 2)
    return _way_back(call, "rnn_grad_f32", (4, 5, 6, 7), outputs, activation)
