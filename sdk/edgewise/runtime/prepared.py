"""Other forms of variables, which kernels want and files do not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edgewise.errors import InternalError
from edgewise.ir.op import Array
from edgewise.kernels.catalog.base import In, Out, Word
from edgewise.plan.plan import Recipe
from edgewise.runtime import memory
from edgewise.runtime.native import STEP_WORDS, Native, closed


class Preparations:
    """Memory made from variables: each form once, for all plans of a session.

    Args:
        variables: Arrays of the variables, which never move.
        native: The kernel library.
        run_steps: Runs native steps.
    """

    def __init__(
        self,
        variables: Mapping[str, Array],
        native: Native,
        run_steps: Callable[[int, int, int], int],
    ) -> None:
        self._variables, self._native, self._run_steps = variables, native, run_steps
        self._made: dict[Recipe, Array] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return sum(array.nbytes for array in self._made.values())

    def get(self, recipe: Recipe) -> Array:
        """The memory of a recipe; it stays where it is."""
        found = self._made.get(recipe)
        if found is None:
            found = memory.empty(recipe.how.size)
            self._fill(recipe, found)
            self._made[recipe] = found
        return found

    def close(self) -> None:
        """Give memory and threads back."""
        self._made.clear()
        self._variables, self._run_steps = {}, closed

    def _fill(self, recipe: Recipe, target: Array) -> None:
        symbol, launch_words, tasks = recipe.how.launch
        source = memory.address(self._variables[recipe.variable])
        words = memory.words(len(launch_words))
        words[:] = [_place(w, source, memory.address(target)) for w in launch_words]
        step = memory.words(STEP_WORDS)
        step[:] = self._native.address(symbol), memory.address(words), tasks, 1
        status = self._run_steps(memory.address(step), 0, 1)
        if status:
            raise InternalError(f"{symbol} gave {status} for {recipe.variable!r}")


def _place(word: Word, source: int, target: int) -> int:
    match word:
        case In():
            return source
        case Out():
            return target
        case int():
            return word
    raise InternalError(f"{word} has no meaning where memory is prepared")
