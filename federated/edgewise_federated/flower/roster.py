"""The part of Flower's Grid by which a strategy sees who is there."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NoReturn

from flwr.serverapp import Grid

from edgewise.errors import FederatedError
from edgewise_federated.crew import Crew

STILL_S = 0.5  # after which a crew's clock that stands still says that nobody comes


class Roster(Grid):
    """Devices to choose from: a strategy in our loop decides, and the loop asks.

    Args:
        crew: The devices; device ``i`` is node ``i + 1``.
        patience_s: How long a strategy may wait for more of them.
    """

    def __init__(self, crew: Crew, patience_s: float) -> None:
        self._crew, self._patience = crew, patience_s
        self._since = time.monotonic(), crew.now()

    def get_node_ids(self) -> Iterable[int]:
        """The nodes; strategies that find them too few ask again, without end.

        Raises:
            FederatedError: They were too few for too long.
        """
        nodes = [device + 1 for device in self._crew.present(0)]
        waited = time.monotonic() - self._since[0]
        passed = self._crew.now() - self._since[1]
        if passed > self._patience or (passed == 0 and waited > STILL_S):
            raise FederatedError(
                f"{len(nodes)} devices are there, and the strategy waits for more: see"
                " its min_available_nodes and min_train_nodes"
            )
        return nodes

    def _refuse(self, *args: Any, **given: Any) -> NoReturn:
        del args, given
        raise FederatedError(
            "the strategy sends messages by itself; want one that leaves that to the"
            " loop, as all of flwr.serverapp.strategy do"
        )

    run = property(_refuse)
    set_run = create_message = _refuse
    push_messages = pull_messages = send_and_receive = _refuse
