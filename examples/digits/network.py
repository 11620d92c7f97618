"""A small convolutional network in plain numpy: layers, their gradients, Adam.

Every layer is a function that gives its output and the way back: a function from the
gradient of the output to the gradients of what went in.  Images are ``[N, H, W, C]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float32]
Parameters: TypeAlias = dict[str, Array]

EPS = np.float32(1e-5)
WIDTHS = (16, 32, 48)  # channels after each convolution
CLASSES = 10


def convolution(
    x: Array, w: Array
) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """3x3 windows of ``x``, zeros beyond the border, times ``w[3, 3, C, O]``."""
    n, height, width, _ = x.shape
    weights = w.reshape(-1, w.shape[3])
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(n * height * width, -1)
    y = (columns @ weights).reshape(n, height, width, -1)

    def backward(dy: Array) -> tuple[Array, Array]:
        rows = dy.reshape(-1, w.shape[3])
        dcolumns = (rows @ weights.T).reshape(n, height, width, 3, 3, -1)
        dpadded = np.zeros_like(padded)
        for r in range(3):
            for s in range(3):
                dpadded[:, r : r + height, s : s + width] += dcolumns[:, :, :, r, s]
        return dpadded[:, 1:-1, 1:-1], (columns.T @ rows).reshape(w.shape)

    return y, backward


def normalisation(
    x: Array, gamma: Array, beta: Array, mean: Array, var: Array
) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Batch normalisation with the statistics given (Ioffe and Szegedy, 2015)."""
    inverse = 1 / np.sqrt(var + EPS)
    z = (x - mean) * inverse

    def backward(dy: Array) -> tuple[Array, Array, Array]:
        axes = (0, 1, 2)
        dgamma, dbeta = (dy * z).sum(axes), dy.sum(axes)
        count = np.float32(dy.size // dy.shape[3])
        dx = gamma * inverse * (dy - dbeta / count - z * dgamma / count)
        return dx, dgamma, dbeta

    return gamma * z + beta, backward


def rectifier(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """``x`` where it is positive, else 0."""
    return np.maximum(x, 0), lambda dy: dy * (x > 0)


def pooling(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """The largest of every 2x2 window."""
    n, height, width, c = x.shape
    windows = x.reshape(n, height // 2, 2, width // 2, 2, c).transpose(0, 1, 3, 5, 2, 4)
    flat = windows.reshape(*windows.shape[:4], 4)
    best = flat.argmax(-1)[..., None]

    def backward(dy: Array) -> Array:
        dflat = np.zeros_like(flat)
        np.put_along_axis(dflat, best, dy[..., None], -1)
        return dflat.reshape(windows.shape).transpose(0, 1, 4, 2, 5, 3).reshape(x.shape)

    return np.take_along_axis(flat, best, -1)[..., 0], backward


def initial(rng: np.random.Generator) -> tuple[Parameters, Parameters]:
    """Fresh parameters (He et al., 2015) and running statistics."""
    parameters: Parameters = {}
    statistics: Parameters = {}
    fan = 1
    for index, width in enumerate(WIDTHS):
        w = rng.standard_normal((3, 3, fan, width)) * np.sqrt(2 / (9 * fan))
        parameters[f"conv{index}.weight"] = w.astype(np.float32)
        parameters[f"norm{index}.gamma"] = np.ones(width, np.float32)
        parameters[f"norm{index}.beta"] = np.zeros(width, np.float32)
        statistics[f"norm{index}.mean"] = np.zeros(width, np.float32)
        statistics[f"norm{index}.var"] = np.ones(width, np.float32)
        fan = width
    head = rng.standard_normal((fan, CLASSES)) * np.sqrt(1 / fan)
    parameters["head.weight"] = head.astype(np.float32)
    parameters["head.bias"] = np.zeros(CLASSES, np.float32)
    return parameters, statistics


def _moments(
    x: Array, key: str, statistics: Parameters, *, training: bool
) -> tuple[Array, Array]:
    """Mean and variance of this batch, or the running ones, which follow them."""
    if not training:
        return statistics[f"{key}.mean"], statistics[f"{key}.var"]
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    unbiased = x.size / x.shape[3] / (x.size / x.shape[3] - 1)
    for name, fresh in (("mean", mean), ("var", var * unbiased)):
        statistics[f"{key}.{name}"] += np.float32(0.1) * (
            fresh - statistics[f"{key}.{name}"]
        )
    return mean, var


def block(
    x: Array,
    p: Mapping[str, Array],
    statistics: Parameters,
    index: int,
    *,
    training: bool,
) -> tuple[Array, Callable[[Array, Parameters], Array]]:
    """Convolution, normalisation, rectifier and, but for the first block, pooling.

    The way back also files the gradients of the block's parameters.
    """
    norm = f"norm{index}"
    x, conv_back = convolution(x, p[f"conv{index}.weight"])
    mean, var = _moments(x, norm, statistics, training=training)
    x, norm_back = normalisation(x, p[f"{norm}.gamma"], p[f"{norm}.beta"], mean, var)
    x, relu_back = rectifier(x)
    x, pool_back = pooling(x) if index else (x, lambda dy: dy)

    def backward(dy: Array, grads: Parameters) -> Array:
        dy, dgamma, dbeta = norm_back(relu_back(pool_back(dy)))
        grads[f"{norm}.gamma"], grads[f"{norm}.beta"] = dgamma, dbeta
        dx, grads[f"conv{index}.weight"] = conv_back(dy)
        return dx

    return x, backward


def forward(
    x: Array, p: Mapping[str, Array], statistics: Parameters, *, training: bool
) -> tuple[Array, Callable[[Array], Parameters]]:
    """Logits of images, and the way back to the gradients of all parameters."""
    tape = []
    for index in range(len(WIDTHS)):
        x, back = block(x, p, statistics, index, training=training)
        tape.append(back)
    shape = x.shape
    features = x.mean((1, 2))

    def backward(dy: Array) -> Parameters:
        grads: Parameters = {"head.weight": features.T @ dy, "head.bias": dy.sum(0)}
        spread = (dy @ p["head.weight"].T)[:, None, None] / (shape[1] * shape[2])
        dx: Array = np.broadcast_to(spread, shape).astype(np.float32)
        for back in reversed(tape):
            dx = back(dx, grads)
        return grads

    return features @ p["head.weight"] + p["head.bias"], backward
