"""From foreign models to ours."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.convert import slow
from edgewise.convert.config import ConvertConfig
from edgewise.errors import ConfigError, EdgewiseError, InternalError
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.passes.pipeline import PassReport, optimise

try:
    from edgewise.convert.onnx import import_module
    from edgewise.convert.source import Source
except ModuleNotFoundError as error:
    if error.name not in ("onnx", "google"):
        raise
    raise EdgewiseError(
        "converting needs the package onnx: pip install 'edgewise[convert]'"
    ) from error

__all__ = ["Conversion", "convert", "convert_module"]


class Conversion(NamedTuple):
    """A converted module, and how it came about.

    Attributes:
        module: The module after all passes.
        reports: What each pass did, in order.
    """

    module: Module
    reports: tuple[PassReport, ...]


def convert(source: Source, config: ConvertConfig | None = None) -> Model:
    """The ONNX model at a path, in bytes or in a proto, ready to save or run.

    Raises:
        ModelFormatError: The model cannot be read, or breaks ONNX's rules.
        UnsupportedOpError: It uses an operator, or a form of one, that edgewise lacks.
        ConfigError: The configuration does not fit the model.
    """
    return Model(convert_module(source, config).module)


def convert_module(source: Source, config: ConvertConfig | None = None) -> Conversion:
    """Like ``convert``, with a report of every pass."""
    config = ConvertConfig() if config is None else config
    if not isinstance(config, ConvertConfig):
        raise ConfigError(
            f"config: got {type(config).__name__}; want a ConvertConfig, as"
            " ConvertConfig(fold=False)"
        )
    try:
        done = Conversion(*optimise(import_module(source, config), config))
        slow.tell(done.module)
    except EdgewiseError:
        raise
    except MemoryError as error:
        raise EdgewiseError(
            "converting this model needs more memory than there is"
        ) from error
    except Exception as error:  # whatever a file makes us do, one kind of error leaves
        what = f"{type(error).__name__}: {error}"
        raise InternalError(f"converting failed: {what}; please report it") from error
    return done
