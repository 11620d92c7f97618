"""What every op is: a class; its fields are attributes, its methods are meaning."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from edgewise.dims import Dim, Expr, bind, symbols
from edgewise.errors import DTypeError, InternalError, ShapeError
from edgewise.named import NamedTuple
from edgewise.types import TensorType, ValueType

if typing.TYPE_CHECKING:  # a real cycle: calling an op makes a node
    from edgewise.ir.graph import Value

# numpy.typing says the same, and takes milliseconds to import.
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
AttributeValue: TypeAlias = int | float | bool | str | enum.Enum | Dim | tuple[Any, ...]


class Registry(Mapping[str, "type[Op]"]):
    """Op classes by name; a family is imported when one of its ops is asked for.

    Attributes:
        homes: The module of each op, also of those that are not imported yet.
    """

    def __init__(self) -> None:
        self.homes: dict[str, str] = {}
        self._classes: dict[str, type[Op]] = {}

    def add(self, cls: type[Op]) -> None:
        """Register a class under its name."""
        if cls.name in self._classes:
            raise InternalError(f"two ops are called {cls.name}")
        self.homes[cls.name] = cls.__module__
        self._classes[cls.name] = cls

    def __getitem__(self, name: str) -> type[Op]:
        if name not in self._classes and name in self.homes:
            importlib.import_module(self.homes[name])
        return self._classes[name]

    def __contains__(self, name: object) -> bool:
        return name in self.homes

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self.homes))

    def __len__(self) -> int:
        return len(self.homes)


OPS = Registry()


class Field(NamedTuple):
    """One attribute of an op: its name, its annotation, its default."""

    name: str
    kind: Any
    default: Any


class Sample(NamedTuple):
    """One case that every check of an op runs over: the op and its input arrays."""

    op: Op
    inputs: tuple[Array | None, ...]


class Cost(NamedTuple):
    """Work of one node: multiply-adds and bytes moved."""

    macs: int
    bytes: int


REQUIRED = object()


class Call(typing.Protocol):
    """Runs functions of the module for the ops that have bodies.

    Attributes:
        limit: Bytes that results of unknown number may take together.
    """

    @property
    def limit(self) -> int: ...  # noqa: D102 - an attribute

    def __call__(self, name: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Outputs of the function ``name``, in order."""


class Op:
    """A pure function of tensors.

    A subclass annotates its attributes (``int``, ``float``, ``bool``, ``str``, ``Dim``,
    an enum, or a ``tuple[X, ...]`` of those; an ``int`` field never holds a symbol, a
    ``Dim`` field may) and defines ``infer``, ``reference`` and ``samples``.  Attributes
    are read here rather than by ``dataclasses``, whose generated code would cost some
    hundreds of milliseconds at import.

    Class Attributes:
        name: Registered name; also the name in files and texts.
        fields: The attributes, in order.
        in_place: Inputs whose memory output 0 may take over: same bytes in, same out,
            each element read before it is written.
        overwrites: For each output, the input whose variable it may overwrite where the
            graph assigns it that output; element by element as above.
        view: Whether output 0 is input 0's memory under another shape.
        random: Whether equal inputs may give other outputs (never merged or folded).
        commutative: Whether the two inputs may be exchanged.
        dynamic: Whether sizes of its outputs may be known only when it has run; its
            declared types then hold fresh symbols, and the graph has it as a binder.
        binds: Whether it is there to give symbols sizes: no pass may replace it.
        objects: Whether it takes sequences and optionals, not tensors alone.
        holds: Whether lists that it gives hold what lists among its inputs held, under
            a type that is no narrower.
        narrow: Whether its reference takes elements of fewer bits than numpy computes
            with as they are; other references get them widened.
        precision: Of its products, where its result does not tell; else empty.
    """

    name: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]] = ()
    in_place: ClassVar[tuple[int, ...]] = ()
    overwrites: ClassVar[tuple[int, ...]] = ()
    view: ClassVar[bool] = False
    random: ClassVar[bool] = False
    commutative: ClassVar[bool] = False
    dynamic: ClassVar[bool] = False
    binds: ClassVar[bool] = False
    objects: ClassVar[bool] = False
    holds: ClassVar[bool] = False
    narrow: ClassVar[bool] = False
    precision: ClassVar[str] = ""
    values: tuple[AttributeValue, ...]

    def __init_subclass__(cls, name: str | None = None) -> None:
        super().__init_subclass__()
        annotations = inspect.get_annotations(cls)
        own = tuple(
            Field(key, kind, cls.__dict__.get(key, REQUIRED))
            for key, kind in annotations.items()
            if "ClassVar" not in str(kind)
        )
        cls.fields = (*cls.fields, *own)
        if name is None:
            return
        for method in ("infer", "reference", "samples"):
            if getattr(cls, method) is getattr(Op, method):
                raise InternalError(f"op {name} does not define {method}")
        cls.name = name
        OPS.add(cls)

    def __init__(self, *args: AttributeValue, **named: AttributeValue) -> None:
        values = list(args)
        for field in self.fields[len(args) :]:
            value = named.pop(field.name, field.default)
            if value is REQUIRED:
                raise InternalError(f"{self.name}: attribute {field.name} is missing")
            values.append(value)
        if named or len(values) > len(self.fields):
            raise InternalError(f"{self.name}: no such attributes: {sorted(named)}")
        for field, value in zip(self.fields, values, strict=True):
            object.__setattr__(self, field.name, value)
        object.__setattr__(self, "values", tuple(values))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((type(self), repr(self.values)))

    def __repr__(self) -> str:
        pairs = zip(self.fields, self.values, strict=True)
        return f"{self.name}({', '.join(f'{f.name}={v!r}' for f, v in pairs)})"

    def __call__(self, *inputs: Value | None, label: str = "") -> Value:
        """A node of this op; its first output."""
        return self.node(*inputs, label=label)[0]

    def node(self, *inputs: Value | None, label: str = "") -> tuple[Value, ...]:
        """A node of this op; all its outputs."""
        from edgewise.ir.graph import Node, Value  # noqa: PLC0415 - a real cycle

        types = self.infer_all(tuple(None if v is None else v.kind for v in inputs))
        node = Node(self, inputs, types, label)
        return tuple(Value(node, index) for index in range(len(types)))

    def replace(self, **changes: AttributeValue) -> Self:
        """The same op with some attributes changed."""
        names = (field.name for field in self.fields)
        return type(self)(**(dict(zip(names, self.values, strict=True)) | changes))

    def bind(self, values: Mapping[str, Dim]) -> Self:
        """The same op with symbols in its attributes replaced."""
        bound = tuple(_bind(value, values) for value in self.values)
        return self if bound == self.values else type(self)(*bound)

    def symbols(self) -> frozenset[str]:
        """Names of the symbols in its attributes."""
        return frozenset().union(*map(_symbols, self.values))

    def infer_all(self, types: tuple[ValueType | None, ...]) -> tuple[ValueType, ...]:
        """Types of all outputs."""
        if not self.objects:
            for given in types:
                if given is not None and not isinstance(given, TensorType):
                    raise DTypeError(f"{self.name}: got {given}; want a tensor")
        for slot, given in enumerate(types):
            if given is None and not _may_lack(type(self).infer, slot):
                raise ShapeError(f"{self.name}: got no input {slot}; want a value")
        try:
            result = self.infer(*types)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next is None:
                raise ShapeError(
                    f"{self.name}: does not take {len(types)} inputs"
                ) from error
            raise
        return result if isinstance(result, tuple) else (result,)

    def refuse(self, got: tuple[object, ...], want: str) -> ShapeError:
        """The error for inputs that do not fit; the caller raises it."""
        return ShapeError(f"{self.name}: got ({', '.join(map(str, got))}); want {want}")

    def infer(self, *types: Any) -> ValueType | tuple[ValueType, ...]:
        """Types of the outputs; an absent input is ``None``, where so annotated."""
        raise NotImplementedError

    def reference(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """The outputs, in plain numpy: what a kernel is checked against."""
        raise NotImplementedError

    def gives(self) -> tuple[str, ...]:
        """Symbols whose sizes its output holds."""
        return ()

    def assumption(self) -> str:
        """What the graph takes for granted and this checks, for messages."""
        return ""

    def bodies(self) -> tuple[str, ...]:
        """Names of the functions of the module that it runs."""
        return ()

    def signature(
        self, types: tuple[ValueType | None, ...]
    ) -> tuple[tuple[ValueType, ...], tuple[ValueType, ...]]:
        """What its bodies take and give, when its inputs have ``types``."""
        raise NotImplementedError

    def execute(self, call: Call, *inputs: Any) -> Any:
        """The outputs; an op that has bodies runs them by ``call``."""
        del call
        return self.reference(*inputs)

    @staticmethod
    def samples() -> Iterator[Sample]:
        """Cases for every check: usual, odd, empty and extreme."""
        raise NotImplementedError

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        """Work on static types of tensors; by default one pass over all memory."""
        moved = sum(t.bytes for t in (*inputs, *outputs) if t is not None)
        return Cost(0, moved)


@functools.cache
def _may_lack(infer: Callable[..., object], slot: int) -> bool:
    """Whether ``infer`` lets an input be ``None``: its annotation says so."""
    slots = list(inspect.signature(infer).parameters.values())[1:]
    if not slots or (slot >= len(slots) and slots[-1].kind is not _REST):
        return True  # more inputs than it takes, which calling it finds
    return "None" in str(slots[min(slot, len(slots) - 1)].annotation)


_REST = inspect.Parameter.VAR_POSITIONAL


def _bind(value: AttributeValue, values: Mapping[str, Dim]) -> AttributeValue:
    if isinstance(value, tuple):
        return tuple(_bind(item, values) for item in value)
    return bind(value, values) if isinstance(value, Expr) else value


def _symbols(value: AttributeValue) -> frozenset[str]:
    if isinstance(value, tuple):
        return frozenset().union(*map(_symbols, value))
    return symbols(value) if isinstance(value, Expr) else frozenset()
