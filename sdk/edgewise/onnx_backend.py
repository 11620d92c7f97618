"""edgewise behind ONNX's own backend interface, as its test-suite and other tools use.

import onnx, edgewise.onnx_backend as backend
outputs = backend.prepare(onnx.load("model.onnx")).run([image])
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto, helper
from onnx.backend import base

from edgewise.convert import convert
from edgewise.convert.config import ConvertConfig
from edgewise.convert.source import MAIN_DOMAINS, NEWEST_OPSET, Source
from edgewise.errors import ConfigError, DTypeError, EdgewiseError, ShapeError
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session

__all__ = [
    "Backend",
    "BackendRep",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

logger = logging.getLogger(__name__)
Inputs = Sequence[Any] | Mapping[str, Any] | np.ndarray[Any, Any]


class BackendRep(base.BackendRep):  # type: ignore[misc]  # onnx has no types
    """A model that is ready to run.

    Attributes:
        session: What runs it; its plans are kept from run to run.
    """

    def __init__(self, model: Model, config: SessionConfig | None = None) -> None:
        self.session = Session(model, config)
        self._inputs = tuple(item.name for item in model.inputs)
        self._outputs = [item.name for item in model.outputs]

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in the model's order and under their names.

        Args:
            inputs: Arrays in the model's order, or by name; one array where the model
                has one input.  Sequences are lists, absent optionals are None.
            kwargs: None is known.
        """
        _want_none("run", kwargs)
        results = self.session.run(_named(self._inputs, inputs))
        named = base.namedtupledict("Outputs", self._outputs)
        outputs: tuple[Any, ...] = named(*results.values())
        return outputs


class Backend(base.Backend):  # type: ignore[misc]  # onnx has no types
    """Converts ONNX models and runs them on the CPU."""

    @classmethod
    def prepare(cls, model: Source, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """The model, converted and planned.

        Args:
            model: A proto, bytes, or a path.
            device: ``CPU``.
            kwargs: ``convert_config`` and ``session_config``.
        """
        if not cls.supports_device(device):
            raise ConfigError(f"device {device!r}: want 'CPU'")
        convert_config: ConvertConfig | None = kwargs.pop("convert_config", None)
        session_config: SessionConfig | None = kwargs.pop("session_config", None)
        _want_none("prepare", kwargs)
        return BackendRep(convert(model, convert_config), session_config)

    @classmethod
    def run_model(
        cls, model: Source, inputs: Inputs, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """The outputs of one run of ``model``."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Inputs,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one operator.

        Args:
            node: The operator.
            inputs: Its inputs, those left out not among them.
            device: ``CPU``.
            outputs_info: Not needed: the inputs tell what an operator gives.
            kwargs: ``opset_version``, else the newest; and those of ``prepare``.
        """
        del outputs_info
        if not isinstance(node, onnx.NodeProto):
            raise ConfigError(f"got {type(node).__name__}; want an onnx.NodeProto")
        newest = NEWEST_OPSET if node.domain in MAIN_DOMAINS else 1
        opset = _version(kwargs.pop("opset_version", newest))
        feed = _named([name for name in node.input if name], inputs)
        graph = helper.make_graph(
            [node],
            "node",
            [onnx.ValueInfoProto(name=n, type=_type(v)) for n, v in feed.items()],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )
        imports = [helper.make_opsetid(node.domain, opset)]
        model = helper.make_model(graph, opset_imports=imports)
        return cls.run_model(model, feed, device, **kwargs)

    @classmethod
    def is_compatible(cls, model: Source, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether ``prepare`` takes the model: it is converted to find out."""
        try:
            cls.prepare(model, device, **kwargs)
        except EdgewiseError as error:
            logger.info("not compatible: %s", error)
            return False
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can run there."""
        return isinstance(device, str) and device.partition(":")[0] == "CPU"


def _named(names: Sequence[str], inputs: Inputs) -> Mapping[str, Any]:
    """Inputs by name, where they are given in order."""
    if isinstance(inputs, Mapping):
        return inputs
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
        raise DTypeError(
            f"inputs: got {type(inputs).__name__}; want arrays in order, or by name"
        )
    given = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
    if len(given) != len(names):
        raise ShapeError(
            f"got {len(given)} inputs; want {len(names)}: {', '.join(names) or 'none'}"
        )
    return dict(zip(names, given, strict=True))


def _version(given: object) -> int:
    if not isinstance(given, int) or not 0 < given < 1 << 31:
        raise ConfigError(f"opset_version={given!r}: want a whole number from 1 on")
    return given


def _type(value: Any) -> TypeProto:
    """The ONNX type of an input: arrays are tensors, lists are sequences of them."""
    if isinstance(value, list):
        if not value:
            raise ConfigError("an empty sequence does not say what it would hold")
        return helper.make_sequence_type_proto(_type(value[0]))
    array = np.asarray(value)
    try:
        code = helper.np_dtype_to_tensor_dtype(array.dtype)
    except ValueError as error:
        raise DTypeError(
            f"an input has elements of {array.dtype}, which ONNX has no type for"
        ) from error
    return helper.make_tensor_type_proto(code, array.shape)


def _want_none(what: str, rest: Mapping[str, Any]) -> None:
    if rest:
        raise ConfigError(f"{what} does not know the options {', '.join(rest)}")


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
