"""Examples from files, for the commands that train."""

from __future__ import annotations

from pathlib import Path

from edgewise.errors import ConfigError, ShapeError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.tools.inputs import load_inputs
from edgewise_trainer.data import counted


def load_examples(
    path: Path, model: Model, target: str
) -> tuple[dict[str, Array], Array]:
    """Inputs by name and targets of an ``.npz`` file.

    The array beside the targets is the input of a model that has one, whatever its
    name.

    Args:
        path: The file.
        model: Whose inputs they are.
        target: Name of the targets in the file.

    Raises:
        ConfigError: Something is missing in the file.
        ShapeError: There are no examples, or not as many inputs as targets.
    """
    arrays = load_inputs(path)
    targets = arrays.pop(target, None)
    if targets is None:
        raise ConfigError(
            f"{path}: holds {', '.join(sorted(arrays))}; want targets called "
            f"{target!r}, or their name by --target"
        )
    names = [info.name for info in model.inputs]
    if len(names) == len(arrays) == 1:
        arrays = {names[0]: next(iter(arrays.values()))}
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ConfigError(
            f"{path}: has no array for input {missing[0]!r}; want {', '.join(names)}"
        )
    inputs = {name: arrays[name] for name in names}
    try:
        counted(inputs, targets)
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from error
    return inputs, targets
