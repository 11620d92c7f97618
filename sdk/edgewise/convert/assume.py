"""What an import takes for granted, and the run checks: branches, mostly.

Of branches that differ in rank, one is taken for granted.

Which one shows in what comes behind: the model is imported with the first choices under
which it can be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import onnx

from edgewise.convert.order import node_name
from edgewise.errors import (
    DTypeError,
    ModelFormatError,
    ShapeError,
    UnsupportedOpError,
)

logger = logging.getLogger(__name__)

MAX_TRIES = 16  # imports of one model
_MISFITS = (DTypeError, ModelFormatError, ShapeError, UnsupportedOpError)
_T = TypeVar("_T")


class _Choice(NamedTuple):
    """What an If is taken to do: the likely, and whether that is its then_branch."""

    node: onnx.NodeProto
    likely: bool
    then: bool


class Assumptions:
    """The branches that one import takes for granted.

    Args:
        given: Whether the first nodes that ask take their likely branch; the rest do.
    """

    def __init__(self, given: tuple[bool, ...] = ()) -> None:
        self._given = given
        # The message is kept as well: its identity is good for as long as it lives.
        self._made: dict[int, _Choice] = {}
        self._claims: dict[str, None] = {}

    def choice(self, node: onnx.NodeProto, *, likely: bool) -> bool:
        """Whether an If takes its then_branch: the same whenever it is imported."""
        if id(node) not in self._made:
            index = len(self._made)
            first = self._given[index] if index < len(self._given) else True
            self._made[id(node)] = _Choice(node, first, likely is first)
        return self._made[id(node)].then

    def claim(self, sentence: str) -> None:
        """Note what else is taken for granted, of which there is no choice."""
        self._claims[sentence] = None

    def following(self) -> tuple[bool, ...] | None:
        """The choices to try next: the last that may change; ``None`` without one."""
        made = [choice.likely for choice in self._made.values()]
        while made and not made[-1]:
            made.pop()
        return (*made[:-1], False) if made else None

    def tell(self) -> None:
        """Warn of what the model can no longer do."""
        for node, _, then in self._made.values():
            logger.warning(
                "If %r is taken to choose its %s, since its branches differ in their"
                " number of axes; a run in which it does not ends with an error",
                node_name(node),
                "then_branch" if then else "else_branch",
            )
        for claim in self._claims:
            logger.warning(
                "converted such that %s; a run in which that does not hold ends with an"
                " error",
                claim,
            )


def first_that_fits(run: Callable[[Assumptions], _T]) -> _T:
    """What an import gives under the first assumptions that it can be done with.

    Raises:
        EdgewiseError: It cannot be done; what stood in the way at first.
    """
    assumed = Assumptions()
    try:
        result = run(assumed)
    except _MISFITS:
        for _ in range(MAX_TRIES - 1):
            following = assumed.following()
            if following is None:
                raise
            assumed = Assumptions(following)
            try:
                result = run(assumed)
            except _MISFITS as error:
                logger.debug("with the choices %s: %s", following, error)
                continue
            break
        else:
            raise
    assumed.tell()
    return result
