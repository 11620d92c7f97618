"""Every reply is looked at before anything is made of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from numbers import Integral

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew
from edgewise_federated.order import Reply
from edgewise_federated.update import Arrays, Layout, Update, want_numbers

logger = logging.getLogger(__name__)
MOST = 1 << 31  # examples of a device

Hook = Callable[[int, int, Update], "Update | None"]


class Gate:
    """Lets updates in that may be used.

    Args:
        config: Of the run.
        crew: Says what each device sends.
        hook: May change, drop or fail updates, for studying failures.
    """

    def __init__(self, config: FederatedConfig, crew: Crew, hook: Hook | None) -> None:
        self._config, self._crew, self._hook = config, crew, hook

    def checked(self, number: int, reply: Reply) -> Reply:
        """The reply with an update that may be used in a round, or with none."""
        if reply.update is None:
            return self.failed(number, reply, reply.failure)
        try:
            hook, update = self._hook, reply.update
            found = update if hook is None else hook(number, reply.device, update)
            if found is None:
                return reply._replace(update=None, failure="vanished")
            sends = self._crew.member(reply.device).sends
            sends.check(found.arrays, self._config.max_norm)
            _check_examples(found.examples)
            if self._config.secure_aggregation:
                _check_words(found.arrays)
            if reply.control is not None:
                _check_control(reply.control, sends)
        except Exception as error:  # noqa: BLE001 - whatever it does, the run goes on
            return self.failed(number, reply, str(error))
        return reply._replace(update=found)

    @staticmethod
    def failed(number: int, reply: Reply, why: str) -> Reply:
        """The reply of a device that failed; the log says why."""
        logger.warning("round %d, device %d: %s", number, reply.device, why)
        return reply._replace(update=None, failure=why)


def _check_examples(count: object) -> None:
    """Raise unless an update can have a weight."""
    if not isinstance(count, Integral) or not 0 < int(count) < MOST:
        raise FederatedError(f"learned from {count!r} examples; want 1 or more")


def _check_words(arrays: Arrays) -> None:
    """Raise unless arrays are words under masks."""
    for name, array in arrays.items():
        if array.dtype != np.uint32:
            raise FederatedError(f"update of {name!r}: got {array.dtype}; want uint32")


def _check_control(control: Array, sends: Layout) -> None:
    """Raise unless it is a control of what a device sends."""
    if control.shape != (sends.trained,):
        raise FederatedError(f"control: got {control.shape}; want ({sends.trained},)")
    want_numbers("control", control)
