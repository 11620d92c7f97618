"""Steps of optimizers over float32, element by element: results may lie in place."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, as_f32, f32, helper
from edgewise.kernels.native.memory import load_part, store_part
from edgewise.kernels.native.vector import LANES, fma, splat, sqrt


@helper
def _decayed(grad, parameter, decay):
    """The gradient with the decay of its parameter, where there is one."""
    if decay != 0:
        return fma(parameter, splat(as_f32(decay)), grad)
    return grad


def sgd_update_f32(args, begin, end, worker):
    """Descent, with momentum or without.

    Words: parameter, gradient, rate, velocity or 0; then where the new parameter and
    velocity go, elements, elements a task; momentum and decay as bits, nesterov.
    """
    size, block, decay = args[6], args[7], args[9]
    rate, momentum = splat(f32(args[2])[0]), splat(as_f32(args[8]))
    for i in range(begin * block, min(end * block, size), LANES):
        at, rest = 4 * i, size - i
        parameter = load_part(args[0] + at, rest)
        grad = _decayed(load_part(args[1] + at, rest), parameter, decay)
        step = grad
        if args[3] != 0:
            step = fma(load_part(args[3] + at, rest), momentum, grad)
            store_part(args[5] + at, step, rest)
            if args[10] != 0:
                step = fma(step, momentum, grad)
        store_part(args[4] + at, parameter - step * rate, rest)
    return OK


def adam_update_f32(args, begin, end, worker):
    """Adam, or AdamW.

    Words: parameter, gradient, rate, root, kept or 0, mean, square; then where the
    new parameter, mean and square go, elements, elements a task; betas, what is left of
    each, eps and decay as bits.
    """
    size, block, decay = args[10], args[11], args[17]
    rate, root, kept = splat(f32(args[2])[0]), splat(f32(args[3])[0]), splat(1.0)
    if args[4] != 0:
        kept = splat(f32(args[4])[0])
    first, second = splat(as_f32(args[12])), splat(as_f32(args[13]))
    more, rest_of_square = splat(as_f32(args[14])), splat(as_f32(args[15]))
    eps = splat(as_f32(args[16]))
    for i in range(begin * block, min(end * block, size), LANES):
        at, rest = 4 * i, size - i
        parameter = load_part(args[0] + at, rest)
        grad = _decayed(load_part(args[1] + at, rest), parameter, decay)
        mean = fma(load_part(args[5] + at, rest), first, grad * more)
        square = load_part(args[6] + at, rest)
        square = fma(square, second, grad * grad * rest_of_square)
        store_part(args[8] + at, mean, rest)
        store_part(args[9] + at, square, rest)
        step = mean / (sqrt(square) / root + eps)
        store_part(args[7] + at, parameter * kept - step * rate, rest)
    return OK


EXPORTS = {"sgd_update_f32": sgd_update_f32, "adam_update_f32": adam_update_f32}
