"""A SuperLink with our app on it: up, nodes let in, rounds as they are done."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from edgewise.errors import FederatedError
from edgewise_federated.flower.control import Control
from edgewise_federated.flower.export import stand_in
from edgewise_federated.flower.kept import Folder
from edgewise_federated.flower.processes import Family
from edgewise_federated.flower.superlink import Settings, SuperLink
from edgewise_federated.history import Round

LOOK = 0.3  # seconds between two looks at what is done
ENDED, DONE = "finished", "completed"  # as Flower calls it


class Serving:
    """A SuperLink that runs one app.

    Args:
        family: Whose process it becomes.
        settings: How it runs.
        folder: What is kept.
    """

    def __init__(self, family: Family, settings: Settings, folder: Folder) -> None:
        self._family, self._folder = family, folder
        self.superlink = SuperLink(family, settings)
        self.superlink.wait()

    @property
    def environment(self) -> dict[str, str]:
        """What processes see that belong to it."""
        return self.superlink.environment

    def admit(self, keys: Sequence[Path]) -> None:
        """Let the nodes with these public keys in.

        Raises:
            ConfigError: A file holds no key.
            FederatedError: A key was refused.
        """
        with self.superlink.control() as control:
            for key in keys:
                control.register(key)

    def rounds(self, app: Path) -> Iterator[Round]:
        """Run an app, and give its rounds as they are done.

        Args:
            app: Folder that ``export`` wrote.

        Raises:
            FederatedError: The app failed, or a process of the family ended.
        """
        place = self._folder.home / "app"
        shutil.rmtree(place, ignore_errors=True)  # of a server that was here before
        stand_in(place, app, checkpoint_dir=str(self._folder.path.absolute()))
        try:
            yield from self._run(place)
        except FederatedError:
            self._family.want_all()  # says more where a process is why
            raise

    def _run(self, app: Path) -> Iterator[Round]:
        told = len(self._folder.rounds())
        with self.superlink.control() as control:
            run = control.start(app)
            try:
                for one in self._watched(control, run):
                    if one.number > told:
                        told = one.number
                        yield one
            finally:
                with suppress(FederatedError):  # the SuperLink may be what failed
                    if control.state(run).status != ENDED:
                        control.stop(run)

    def _watched(self, control: Control, run: int) -> Iterator[Round]:
        """All rounds, again and again, until the run has ended."""
        while True:
            self._family.want_all()
            state = control.state(run)
            yield from self._folder.rounds()
            if state.status == ENDED:
                break
            time.sleep(LOOK)
        if state.how != DONE:
            raise FederatedError(f"the run ended: {state.how}: {state.details}")
