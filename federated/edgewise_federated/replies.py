"""Every reply is looked at before anything is made of it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew
from edgewise_federated.order import Reply
from edgewise_federated.update import Update

logger = logging.getLogger(__name__)

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
        except Exception as error:  # noqa: BLE001 - whatever it does, the run goes on
            return self.failed(number, reply, str(error))
        return reply._replace(update=found)

    @staticmethod
    def failed(number: int, reply: Reply, why: str) -> Reply:
        """The reply of a device that failed; the log says why."""
        logger.warning("round %d, device %d: %s", number, reply.device, why)
        return reply._replace(update=None, failure=why)
