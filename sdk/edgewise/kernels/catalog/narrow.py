"""Which native functions serve layers over reals with weights of few bits."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import Binding, Call, In, Launch, Out, kernel
from edgewise.kernels.catalog.calls import given, integer, integers, word
from edgewise.kernels.catalog.matmul import ROWS_APART, by_rows
from edgewise.kernels.catalog.windows import by_windows, is_product, splits_of
from edgewise.kernels.catalog.winograd import where_it_pays

KINDS = ("f16", "i8", "i4")
KERNELS = (
    *(f"winograd{size}_weights_{kind}" for size in (2, 4) for kind in KINDS),
    *(
        f"winograd{size}_{part}_f32"
        for size in (2, 4)
        for part in ("inputs", "products")
    ),
)
HALF = KINDS[0]
# Words of an epilogue that only weights of few bits have.
BLOCK, BUFFER = 10, 11
NEAR = 256  # indices of a panel that are widened at a time, or one line


def _block(call: Call, reduced: int) -> int:
    """Indices that share scales: halves have none."""
    whole = word(call, "kind") == HALF
    return max(reduced, 1) if whole else integer(call, "block")


def _reduced(call: Call) -> int:
    """K of a convolution."""
    taps = math.prod(integers(call, "kernel"))
    return taps * (given(call, 0).dims[3] // integer(call, "groups"))


def _with_buffer(binding: Binding, at: int, block: int, room: int) -> Binding:
    """The launch that knows where to widen: at the end of its scratch."""
    if not binding.launches:
        return binding
    words = list(binding.launches[0].words)
    words[at + BLOCK], words[at + BUFFER] = block, binding.scratch - room
    launch = binding.launches[0]._replace(words=tuple(words))
    return binding._replace(launches=(launch,))


@kernel(
    "narrow_linear", *(f"product_{kind}_weights" for kind in KINDS), strided=ROWS_APART
)
def narrow_linear(call: Call) -> Binding | None:
    """As a linear layer, with room for lines of a panel."""
    room, k = 64 * NEAR, given(call, 0).dims[-1]
    made = by_rows(call, f"product_{word(call, 'kind')}_weights", room)
    return made and _with_buffer(made, 10, _block(call, k), room)


@kernel("narrow_conv", *KERNELS, strided=ROWS_APART)
def narrow_winograd(call: Call) -> Binding | None:
    """The weights are widened when they are transformed, before any run."""
    kind = word(call, "kind")
    return where_it_pays(call, kind, _block(call, _reduced(call)))


@kernel(
    "narrow_conv",
    *(f"{form}_{kind}_weights" for form in ("conv", "product") for kind in KINDS),
    strided=ROWS_APART,
)
def narrow_conv(call: Call) -> Binding | None:
    """As a convolution, with room for lines of a panel."""
    block, kind = _block(call, _reduced(call)), word(call, "kind")
    if is_product(call):
        room = 64 * NEAR
        made = by_rows(call, f"product_{kind}_weights", room)
        return made and _with_buffer(made, 10, block, room)
    inputs = given(call, 0).dims[3] // integer(call, "groups")
    room = 64 * max(NEAR, splits_of(call, inputs) * inputs)
    made = by_windows(call, f"conv_{kind}_weights", room)
    return made and _with_buffer(made, 0, block, room)


@kernel("widen_panels", *(f"widen_{kind}" for kind in KINDS))
def widen_panels(call: Call) -> Binding:
    """A task is a panel."""
    count, k, _ = call.outputs[0].dims
    if not count * k:
        return Binding(())
    words = (In(0), Out(0), k, _block(call, k))
    return Binding((Launch(f"widen_{word(call, 'kind')}", words, count),))
