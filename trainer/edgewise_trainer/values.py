"""Values of variables: given anew, in the form in which they are stored."""

from __future__ import annotations

import numpy as np

from edgewise.errors import ConfigError, ShapeError
from edgewise.ir.module import VariableInfo
from edgewise.ir.op import Array


def with_array(info: VariableInfo, array: Array) -> VariableInfo:
    """The variable with another array, stored as it is."""
    packing, logical = info.packing, info.logical
    return VariableInfo(info.key, info.type, info.role, array, logical, packing)


def replaced(info: VariableInfo | None, key: str, value: Array) -> VariableInfo:
    """The variable with another logical array."""
    if info is None:
        raise ConfigError(f"the model has no parameter {key!r}")
    array = np.asarray(value, info.logical.dtype.numpy)
    if array.shape != info.logical.dims:
        got = list(array.shape)
        raise ShapeError(f"parameter {key!r}: got {got}; want {info.logical}")
    if info.packing is not None:
        array = np.asarray(info.packing.reference(array))
    return with_array(info, np.ascontiguousarray(array))
