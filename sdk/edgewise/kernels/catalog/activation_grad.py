"""Which native function serves gradients of activations."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Word,
    blocks,
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import only_f32, real, word
from edgewise.kernels.catalog.strides import BLOCK
from edgewise.ops.epilogue import code


@kernel("activation_grad", "activation_grad_f32")
@only_f32
def activation_grad(call: Call) -> Binding:
    """Element by element."""
    size = math.prod(call.outputs[0].dims)
    parameters = f32_word(real(call, "alpha")), f32_word(real(call, "beta"))
    activation = int(code(word(call, "activation")))
    words: tuple[Word, ...] = (In(0), In(1), Out(0), size, BLOCK, activation)
    tasks = blocks(size, BLOCK)
    return Binding((Launch("activation_grad_f32", (*words, *parameters), tasks),))
