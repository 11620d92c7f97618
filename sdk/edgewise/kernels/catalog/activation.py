"""Which native functions serve activations and softmax."""

from __future__ import annotations

from functools import partial

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    blocks,
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    all_f32,
    flat,
    integer,
    only_f32,
    real,
    spread,
)
from edgewise.kernels.catalog.strides import around

# Op to the attributes that its kernel takes.
ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "relu": (),
    "leaky_relu": ("slope",),
    "elu": ("alpha",),
    "selu": ("alpha", "gamma"),
    "celu": ("alpha",),
    "sigmoid": (),
    "hard_sigmoid": ("alpha", "beta"),
    "hard_swish": (),
    "silu": (),
    "tanh": (),
    "softplus": (),
    "softsign": (),
    "mish": (),
    "thresholded_relu": ("alpha",),
}
ROW_BLOCK = 2048  # elements a task of softmax: about two microseconds


def _activation(op: str, names: tuple[str, ...], call: Call) -> Binding:
    words = [f32_word(real(call, name)) for name in names]
    return flat(call, f"{op}_f32", *(*words, 0, 0)[:2])


def _register() -> None:
    for op, names in ACTIVATIONS.items():
        kernel(op, f"{op}_f32")(only_f32(partial(_activation, op, names)))


@kernel("prelu", "prelu_f32")
def bind_prelu(call: Call) -> Binding | None:
    """The slope is broadcast like any operand."""
    return spread(call, "prelu_f32") if all_f32(call) else None


@kernel("gelu", "gelu_f32", "gelu_tanh_f32")
def bind_gelu(call: Call) -> Binding | None:
    """Both forms."""
    form = "gelu_tanh_f32" if integer(call, "approximate") else "gelu_f32"
    return flat(call, form) if all_f32(call) else None


def _softmax(logarithm: int, call: Call) -> Binding:
    outer, size, inner = around(call.outputs[0].dims, integer(call, "axis"))
    if inner == 1:
        rows = max(1, ROW_BLOCK // max(size, 1))
        words = (In(0), Out(0), outer, rows, size, logarithm)
        return Binding((Launch("softmax_f32", words, blocks(outer, rows)),))
    chunks = blocks(inner, 16)
    items = outer * chunks if inner else 0
    per_task = max(1, ROW_BLOCK // (16 * max(size, 1)))
    columns = (In(0), Out(0), items, per_task, size, inner, chunks, logarithm)
    return Binding((Launch("softmax_columns_f32", columns, blocks(items, per_task)),))


for _logarithm, _op in enumerate(("softmax", "log_softmax")):
    kernel(_op, "softmax_f32", "softmax_columns_f32")(
        only_f32(partial(_softmax, _logarithm))
    )
_register()
