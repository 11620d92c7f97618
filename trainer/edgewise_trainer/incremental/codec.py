"""Examples as bytes: real inputs at eight bits with a scale of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from edgewise.errors import ConfigError, ShapeError
from edgewise.ir.op import Array

Codes = npt.NDArray[np.void]
LEVELS = 255
_NUMBERS = {np.dtype(code).name for code in "?bBhHiIlLqQefd"}
WIDE = {"int64": "<i4", "uint64": "<u4", "float64": "<f4"}  # stored by half


class Part(NamedTuple):
    """One array of an example, without the axis of examples."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, name: str, array: Array) -> Self:
        """The part that ``array`` holds of every example."""
        return cls(name, array.dtype.name, array.shape[1:])

    @property
    def is_coded(self) -> bool:
        """Whether it is real: then it has eight bits, a least value and a step."""
        return np.dtype(self.dtype).kind == "f"

    @property
    def exact(self) -> str:
        """The type in which whole numbers and targets are stored."""
        return WIDE.get(self.dtype, self.dtype)


@dataclass(frozen=True, slots=True)
class Codec:
    """Writes examples as records of one size, and reads them again.

    Attributes:
        inputs: What goes into the model.
        target: What the loss wants; stored as it is.
    """

    inputs: tuple[Part, ...]
    target: Part

    @classmethod
    def of(cls, inputs: Mapping[str, Array], target: Array) -> Self:
        """The codec for examples like these."""
        arrays = {name: np.asarray(array) for name, array in inputs.items()}
        parts = tuple(Part.of(name, array) for name, array in arrays.items())
        made = cls(parts, Part.of("target", target))
        whole = all(a.ndim and len(a) == len(target) for a in arrays.values())
        if not whole or not all(map(_stored, (*parts, made.target))):
            raise ShapeError(f"replay: got {made}; want numbers, as many as targets")
        return made

    @property
    def record(self) -> np.dtype[Any]:
        """One example, without gaps."""
        fields: list[tuple[str, Any, tuple[int, ...]]] = []
        for number, part in enumerate(self.inputs):
            if part.is_coded:
                fields += [(f"least{number}", "<f4", ()), (f"step{number}", "<f4", ())]
            kind = "u1" if part.is_coded else part.exact
            fields.append((f"x{number}", kind, part.shape))
        fields.append(("target", self.target.exact, self.target.shape))
        return np.dtype(fields)

    def encode(self, inputs: Mapping[str, Array], target: Array) -> Codes:
        """A record for every example.

        Raises:
            ShapeError: They are not like those that were stored before.
            ConfigError: A number is not finite, or is too large for 32 bits.
        """
        self.want_like(inputs, target)
        rows = np.zeros(len(target), self.record)
        for number, part in enumerate(self.inputs):
            array = np.asarray(inputs[part.name])
            if part.is_coded:
                _quantize(rows, number, part.name, array)
            else:
                rows[f"x{number}"] = _exact(part, array)
        rows["target"] = _exact(self.target, target)
        return rows

    def want_like(self, inputs: Mapping[str, Array], target: Array) -> None:
        """Raise ``ShapeError`` unless examples are like those that were stored."""
        found = Codec.of(inputs, target)
        if found != self:
            raise ShapeError(f"replay: got examples of {found}; it holds {self}")

    def decode(self, rows: Codes) -> tuple[dict[str, Array], Array]:
        """Inputs and targets of records; real inputs to half a step."""
        inputs = {}
        for number, part in enumerate(self.inputs):
            stored = rows[f"x{number}"]
            if part.is_coded:
                ones = (-1, *(1,) * len(part.shape))
                # In double precision: 255 steps may be more than a float holds.
                step = rows[f"step{number}"].reshape(ones).astype(np.float64)
                stored = stored * step + rows[f"least{number}"].reshape(ones)
            inputs[part.name] = np.asarray(stored, part.dtype)
        return inputs, np.asarray(rows["target"], self.target.dtype)

    def text(self) -> str:
        """For a file; ``parsed`` reads it."""
        return json.dumps([*self.inputs, self.target])

    @classmethod
    def parsed(cls, text: str) -> Self:
        """What ``text`` wrote.

        Raises:
            ValueError: It is something else.
        """
        if not isinstance(text, str):
            raise ValueError("examples are not described")  # noqa: TRY004 - of a file
        try:
            parts = [
                Part(str(name), np.dtype(kind).name, tuple(map(int, shape)))
                for name, kind, shape in json.loads(text)
            ]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError(f"examples are not described by {text[:80]!r}") from error
        if not all(map(_stored, parts)) or len(parts) < 2:
            raise ValueError(f"no examples of numbers are described by {text[:80]!r}")
        return cls(tuple(parts[:-1]), parts[-1])

    def __str__(self) -> str:
        """Names, types and shapes."""
        return ", ".join(f"{p.name}: {p.dtype}{list(p.shape)}" for p in self.inputs)


def _stored(part: Part) -> bool:
    """Whether an array is such as records hold."""
    return part.dtype in _NUMBERS and min(part.shape, default=0) >= 0


def _quantize(rows: Codes, number: int, name: str, array: Array) -> None:
    """Write a real input: ``least + step * code``, with both of each example."""
    flat = array.reshape(len(array), -1).astype(np.float64)
    if not np.isfinite(flat).all():
        raise ConfigError(f"replay: {name!r} holds numbers that are not finite")
    if not flat.size:
        return
    if np.abs(flat).max() > np.finfo(np.float32).max:
        raise ConfigError(f"replay: {name!r} holds numbers beyond 32 bits")
    least, most = flat.min(axis=1), flat.max(axis=1)
    step = np.where(most > least, (most - least) / LEVELS, 1.0)
    codes = np.rint((flat - least[:, None]) / step[:, None])
    rows[f"least{number}"], rows[f"step{number}"] = least, step
    rows[f"x{number}"] = np.clip(codes, 0, LEVELS).reshape(array.shape)


def _exact(part: Part, array: Array) -> Array:
    stored = array.astype(part.exact)
    if (
        part.exact != part.dtype
        and stored.dtype.kind in "iu"
        and (stored != array).any()
    ):
        raise ConfigError(f"replay: {part.name!r} holds numbers beyond 32 bits")
    return stored
