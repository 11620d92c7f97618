"""Every error edgewise raises: one line that says what was given, wanted, and where."""

from __future__ import annotations

# Status words a native kernel may return, beside 0 for success.
INDEX_OUT_OF_RANGE = 1
DIVISION_BY_ZERO = 2
SHAPE_MISMATCH = 3
KERNEL_FAULT = 255

STATUS = {
    INDEX_OUT_OF_RANGE: "an index is out of range",
    DIVISION_BY_ZERO: "an integer division by zero",
    SHAPE_MISMATCH: "sizes known only at run time do not fit together",
    KERNEL_FAULT: "the kernel raised an exception of its own (a bug in edgewise)",
}


class EdgewiseError(Exception):
    """Base of all errors; its text is one line for the user."""

    def __str__(self) -> str:
        """The text; names of a file may hold line breaks and codes for screens."""
        text = super().__str__()
        if text.isprintable():
            return text
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class ModelFormatError(EdgewiseError):
    """A model file is damaged, hostile, or of a version we cannot read.

    Attributes:
        path: The file, as given; empty for bytes in memory.
        reason: What is wrong with it.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path, self.reason = str(path), reason
        super().__init__(f"{self.path}: {reason}" if self.path else reason)


class UnsupportedOpError(EdgewiseError):
    """An operator, or a form of it, that edgewise does not have.

    Attributes:
        op: Operator name with its domain and version, as the file says it.
        node: Name of the node, or of its first output where it has none.
        fix: The nearest way out.
    """

    def __init__(self, op: str, node: str, reason: str, fix: str) -> None:
        self.op, self.node, self.fix = op, node, fix
        super().__init__(f"{op} (node {node!r}): {reason}; {fix}")


class ShapeError(EdgewiseError):
    """Tensor shapes do not fit an operator or a model's input."""


class DTypeError(EdgewiseError):
    """Tensor types do not fit an operator or a model's input."""


class ConfigError(EdgewiseError):
    """An option is out of range, unknown, or contradicts another."""


class KernelError(EdgewiseError):
    """A step of a plan stopped with a status.

    Attributes:
        op: Name of the op whose step stopped.
        status: Code from the kernel; see ``STATUS``.
    """

    def __init__(self, op: str, node: str, status: int) -> None:
        self.op, self.node, self.status = op, node, status
        reason = STATUS.get(status, f"status {status}")
        where = f" (node {node!r})" if node else ""
        super().__init__(f"{op}{where} stopped: {reason}")


class KernelLibraryError(EdgewiseError):
    """No kernel library fits this processor, or it cannot be built or loaded."""


class DelegateError(EdgewiseError):
    """A delegate is missing, or refused the part of the graph it was given."""


class TrainabilityError(EdgewiseError):
    """Something on the path to a trained parameter has no gradient."""


class CheckpointError(EdgewiseError):
    """A checkpoint cannot be written, read, or does not fit the model."""


class FederatedError(EdgewiseError):
    """A federated round cannot start or go on."""


class InternalError(EdgewiseError):
    """A bug in edgewise, with what to report."""
