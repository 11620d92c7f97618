"""A model: what users hold between converting, saving, loading and running."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from edgewise.border import TensorInfo, inputs_of, outputs_of
from edgewise.errors import ConfigError, EdgewiseError, InternalError
from edgewise.format.read import check, read
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.summary import summary
from edgewise.types import TensorType

if TYPE_CHECKING:  # for the type of what conversion gives
    import onnx

    from edgewise.quant.report import QuantizationReport

__all__ = ["Model", "TensorInfo", "check", "load"]

INFER = "infer"


@runtime_checkable
class Packing(Protocol):
    """An op that can be undone."""

    def unpack(self, stored: Array, logical: TensorType) -> Array:
        """The logical array whose packed form is ``stored``."""


class Model:
    """A converted model.

    Attributes:
        module: Its functions and variables; never changed in place.
        path: The file it was loaded from, whose map its arrays are views of; ``None``
            for one that was made in memory.
    """

    __slots__ = ("module", "path")

    def __init__(self, module: Module, path: str | None = None) -> None:
        self.module, self.path = module, path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """``edgewise.load``."""
        return cls(read(path), os.fspath(path))

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What a run takes."""
        return inputs_of(self._infer)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What a run gives."""
        return outputs_of(self._infer)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.ew`` file: whole, or not at all.

        Raises:
            EdgewiseError: The file cannot be written.
        """
        # Only those who save pay for importing flatbuffers.
        from edgewise.format.write import write  # noqa: PLC0415

        write(self.module, path)

    def parameters(self) -> dict[str, Array]:
        """The parameters under their names and in the shapes of the source model.

        Arrays that are stored as the source had them are read-only views.
        """
        return self._of_role(Role.PARAMETER)

    def statistics(self) -> dict[str, Array]:
        """Running means and variances of batch norms under their names."""
        return self._of_role(Role.STATISTIC)

    def _of_role(self, role: Role) -> dict[str, Array]:
        return {
            key: logical_array(info, stored_array(info))
            for key, info in self.module.variables.items()
            if info.role is role
        }

    def to_onnx(self) -> onnx.ModelProto:
        """The model back in ONNX, for any other engine.

        Parameters are as they are now, under their names and in the shapes of the
        source model; images have their channels second again.

        Raises:
            UnsupportedOpError: ONNX lacks an op of the model, or a form of it.
        """
        # Those who convert have onnx; those who run do not.
        from edgewise.convert.to_onnx import to_onnx  # noqa: PLC0415

        return to_onnx(self)

    @property
    def quantization(self) -> QuantizationReport | None:
        """What ``edgewise.quantize`` did to it; None for a model it did not make."""
        # Models that are not quantised need not know how that is told.
        from edgewise.quant.report import KEY, QuantizationReport  # noqa: PLC0415

        text = self.module.metadata.get(KEY)
        return None if text is None else QuantizationReport.of(text)

    def summary(self, sizes: Mapping[str, int] | None = None) -> str:
        """A table of ops with output shapes, parameters and multiply-adds.

        Args:
            sizes: What open sizes are in the run whose multiply-adds are counted; 1
                where one is missing.  ``-`` stands where the model does not run so.
        """
        return summary(self._infer, self.module.variables, sizes)

    @property
    def _infer(self) -> Graph:
        graph = self.module.functions.get(INFER)
        if graph is None:
            raise EdgewiseError(f"{self.path or 'the model'}: no function {INFER!r}")
        return graph


def load(path: str | os.PathLike[str]) -> Model:
    """The model in an ``.ew`` file, verified and mapped; weights are not copied.

    Raises:
        ModelFormatError: The file cannot be read, is damaged, or is too new.
    """
    return Model.load(path)


def want_model(model: object) -> None:
    """Raise ``ConfigError`` where something else stands for a model."""
    if not isinstance(model, Model):
        raise ConfigError(
            f"model: got {type(model).__name__}; want what edgewise.load or "
            "edgewise.convert gives"
        )


def logical_array(info: VariableInfo, stored: Array) -> Array:
    """What a variable's stored form stands for, in the shape of the source model."""
    if info.packing is None:
        return stored
    if not isinstance(info.packing, Packing):
        raise InternalError(f"{info.packing} of {info.key!r} cannot be undone")
    return info.packing.unpack(stored, info.logical)


def stored_array(info: VariableInfo) -> Array:
    """The stored form of a variable that has one."""
    if info.initial is None:
        raise InternalError(f"parameter {info.key!r} has no values")
    return info.initial
