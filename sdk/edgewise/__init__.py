"""Run any ONNX model on an edge device, and keep it learning there.

Names are imported when they are first used: a process that only runs a model never
loads what converts one.
"""

from __future__ import annotations

import gc
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from edgewise import compress as compress
    from edgewise.border import TensorInfo
    from edgewise.convert import convert
    from edgewise.convert.config import ConvertConfig
    from edgewise.errors import (
        CheckpointError,
        ConfigError,
        DelegateError,
        DTypeError,
        EdgewiseError,
        FederatedError,
        InternalError,
        KernelError,
        KernelLibraryError,
        ModelFormatError,
        ShapeError,
        TrainabilityError,
        UnsupportedOpError,
    )
    from edgewise.model import Model, check, load
    from edgewise.quant.config import QuantizeConfig
    from edgewise.quant.quantize import quantize
    from edgewise.runtime.config import SessionConfig
    from edgewise.runtime.memory import MemoryReport
    from edgewise.runtime.profile import Profile
    from edgewise.runtime.session import Session
    from edgewise.tools.compare import compare

__all__ = [
    "CheckpointError",
    "ConfigError",
    "ConvertConfig",
    "DTypeError",
    "DelegateError",
    "EdgewiseError",
    "FederatedError",
    "InternalError",
    "KernelError",
    "KernelLibraryError",
    "MemoryReport",
    "Model",
    "ModelFormatError",
    "Profile",
    "QuantizeConfig",
    "Session",
    "SessionConfig",
    "ShapeError",
    "TensorInfo",
    "TrainabilityError",
    "UnsupportedOpError",
    "check",
    "compare",
    "convert",
    "load",
    "quantize",
]

_HOMES = {
    "ConvertConfig": "edgewise.convert.config",
    "MemoryReport": "edgewise.runtime.memory",
    "Model": "edgewise.model",
    "Profile": "edgewise.runtime.profile",
    "QuantizeConfig": "edgewise.quant.config",
    "Session": "edgewise.runtime.session",
    "SessionConfig": "edgewise.runtime.config",
    "TensorInfo": "edgewise.border",
    "check": "edgewise.model",
    "compare": "edgewise.tools.compare",
    "convert": "edgewise.convert",
    "load": "edgewise.model",
    "quantize": "edgewise.quant.quantize",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("edgewise.format.versions").EDGEWISE_VERSION
    if name == "compress":  # a package, which no function hides
        return importlib.import_module("edgewise.compress")
    if name not in __all__:
        raise AttributeError(f"module 'edgewise' has no attribute {name!r}")
    # What an import makes stays: looking through it for garbage took a tenth of a cold
    # start.
    collecting = gc.isenabled()
    gc.disable()
    try:
        home = importlib.import_module(_HOMES.get(name, "edgewise.errors"))
    finally:
        if collecting:
            gc.enable()
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return list(__all__)


class _Package(ModuleType):
    """Keeps the import system from putting a submodule where a function belongs.

    ``edgewise.convert`` is what users call; importing the package of that name would
    otherwise bind it there, or not, depending on who imported what before.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
