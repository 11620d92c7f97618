"""Training for small numbers: what a ``QuantizeConfig`` changes about a trainer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from edgewise.errors import ConfigError
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.quant.config import QuantizeConfig
from edgewise_trainer import fake, few_bits


class _Kind(Protocol):
    """What a module does for one kind of quantisation; as the functions below."""

    def begun(self, model: Model, config: QuantizeConfig) -> Model: ...

    def rounding(
        self, module: Module, config: QuantizeConfig, trained: Collection[str]
    ) -> Module: ...

    def exported(self, model: Model, config: QuantizeConfig) -> Model: ...


def begun(model: Model, config: QuantizeConfig) -> Model:
    """The model with what training finds beside the parameters among its variables.

    Raises:
        ConfigError: Nothing in it can be quantised so, or training cannot follow that.
    """
    _want_trainable(config)
    return _kind(config).begun(model, config)


def rounding(
    module: Module, config: QuantizeConfig, trained: Collection[str]
) -> Module:
    """The module that rounds as the quantised one does.

    Args:
        module: As ``begun`` gives it.
        config: How it is quantised.
        trained: Names of the parameters that are trained.
    """
    return _kind(config).rounding(module, config, trained)


def exported(model: Model, config: QuantizeConfig) -> Model:
    """The quantised model, by what training found.

    Raises:
        ConfigError: Ranges are not known before the first step.
    """
    return _kind(config).exported(model, config)


def _kind(config: QuantizeConfig) -> _Kind:
    return fake if config.activations == "int8" else few_bits


def _want_trainable(config: QuantizeConfig) -> None:
    if config.weights not in {"int8", "int4"}:
        raise ConfigError(
            f"quantize: got weights={config.weights!r}; a trainer trains for int8 or "
            "int4 of them"
        )
    if config.evaluate is not None or config.equalize or config.bias_correction:
        raise ConfigError(
            "quantize: a trainer makes up for what small numbers lose by itself; want"
            " no evaluate, equalize or bias_correction"
        )
