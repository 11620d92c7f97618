"""What quantisation is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgewise.errors import ConfigError
from edgewise.wanted import want_kinds, want_number

WEIGHTS = ("int8", "int4", "float16", "float32")
ACTIVATIONS = ("int8", "int16", "float16", "float32")
WHOLE = ("int8", "int16")  # activations over which layers run
GROUPS = (32, 64, 128)
METHODS = ("minmax", "moving_average", "percentile", "entropy", "mse", "admm")
SWITCHES = (
    "per_channel",
    "reduce_range",
    "equalize",
    "bias_correction",
    "learn_steps",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeConfig:
    """How a model is quantised.

    Attributes:
        weights: What weights are stored as: int8, int4, float16 or float32.
        activations: What layers read: int8, int16, float16 or float32.
        method: How ranges of activations are found: minmax, moving_average (of the
            ends of batches), percentile (99.99), entropy (Kullback and Leibler), mse,
            admm (Leng et al., 2018).
        per_channel: Whether each output channel of a weight has a scale of its own.
        symmetric: Whether zero of activations lies in the middle of their range; None:
            where it fits best.
        reduce_range: Whether int8 weights are so small that four products of them fit
            16 bits: at more than twice the rate on x86 processors that have no VNNI,
            and exact there.
        equalize: Whether ranges of channels are evened out between layers that follow
            one another (Nagel et al., 2019).
        bias_correction: Whether biases take back what weights lose on average.
        max_drop: How much lower than the source model ``evaluate`` may score; layers
            that cost the most stay in float32 until it does. None: no guard.
        evaluate: Scores a model; more is better.
        order: Names of weights, the most sensitive first: in this order the guard lets
            layers stay real, those that are not named last. None: it ranks them itself.
        group: How many weights of an output share a scale where activations stay
            float32 and weights are int8 or int4: 32, 64 or 128.
        learn_steps: Whether a trainer learns the steps of weights and images (Esser et
            al., 2020) rather than follow what it sees.
        keep: Patterns (as of fnmatch) of the names of weights that stay float32.
    """

    weights: str = "int8"
    activations: str = "int8"
    method: str = "minmax"
    per_channel: bool = True
    symmetric: bool | None = None
    reduce_range: bool = True
    equalize: bool = False
    bias_correction: bool = False
    max_drop: float | None = None
    evaluate: Callable[[Any], float] | None = None
    order: tuple[str, ...] | None = None
    group: int = 32
    learn_steps: bool = False
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        _among("weights", self.weights, WEIGHTS)
        _among("activations", self.activations, ACTIVATIONS)
        _among("method", self.method, METHODS)
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name}={getattr(self, name)!r}: want True or False")
        if not isinstance(self.symmetric, bool | None):
            raise ConfigError(f"symmetric={self.symmetric!r}: want True, False or None")
        want_kinds("keep", self.keep, str, "patterns of names, as ('head.*',)")
        if self.order is not None:
            want_kinds("order", self.order, str, "names of weights, in a tuple")
        self._check_guard()
        self._together()
        if type(self.group) is not int or self.group not in GROUPS:
            raise ConfigError(f"group={self.group!r}: want 32, 64 or 128")

    def _check_guard(self) -> None:
        drop, evaluate = self.max_drop, self.evaluate
        if (drop is None) != (evaluate is None):
            raise ConfigError("max_drop and evaluate: want both, or neither")
        if drop is not None:
            want_number("max_drop", drop, "0 or more", lambda x: x >= 0)
        if evaluate is not None and not callable(evaluate):
            raise ConfigError(f"evaluate={evaluate!r}: want a function of a model")

    def _together(self) -> None:
        """Refuse pairs of types that no kernels are for."""
        pair = f"weights={self.weights!r}, activations={self.activations!r}"
        if self.activations == "float16":
            raise ConfigError(
                f"{pair}: no kernels run over float16 activations; want activations "
                "int8, int16 or float32"
            )
        if self.activations in WHOLE and self.weights != "int8":
            raise ConfigError(
                f"{pair}: {self.activations} activations want int8 weights; other "
                "weights want float32 activations"
            )
        if self.activations == "float32" and (self.equalize or self.bias_correction):
            raise ConfigError(
                f"{pair}: equalize and bias_correction want int8 or int16 activations"
            )
        if self.activations == self.weights == "float32":
            raise ConfigError(f"{pair}: want fewer bits in one of them")


def _among(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{name}={value!r}: want one of {', '.join(known)}")
