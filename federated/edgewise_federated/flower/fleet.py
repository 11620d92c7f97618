"""A whole fleet on one machine: a SuperLink and nodes, each a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from edgewise.errors import FederatedError
from edgewise.tools.inputs import save_arrays
from edgewise_federated.client import Data
from edgewise_federated.deployment import Deployment, arrays_of
from edgewise_federated.flower.certificates import (
    Certificates,
    make_certificates,
    make_node_keys,
    public_of,
)
from edgewise_federated.flower.export import export
from edgewise_federated.flower.kept import Folder
from edgewise_federated.flower.processes import Family, Started
from edgewise_federated.flower.serving import Serving
from edgewise_federated.flower.superlink import Settings, free_port
from edgewise_federated.history import Round

HERE = "127.0.0.1"


class LocalFleet:
    """Processes that train one model, each from its own file.

    Args:
        family: Whose processes they become.
        folder: Where all files go.
        deployment: What they train, and how.
        parts: Examples of each node.
        tls: Whether with certificates and keys of nodes.
    """

    def __init__(
        self,
        family: Family,
        folder: Path,
        deployment: Deployment,
        parts: Sequence[Data],
        *,
        tls: bool,
    ) -> None:
        self._family, self._folder = family, folder
        self._app = folder / "app"
        export(self._app, deployment, "nowhere")
        self._data = _written(folder / "data", deployment, parts)
        certificates = folder / "certificates"
        self._files: Certificates | None = None
        self._keys: tuple[Path, ...] = ()
        if tls:
            self._files = make_certificates(certificates, ())
            names = [str(index) for index in range(len(parts))]
            self._keys = make_node_keys(certificates, names)
        self._nodes: list[Started] = []
        self.kept = Folder(folder / "server")

    def rounds(self) -> Iterator[Round]:
        """Rounds as they are done; the nodes are stopped after the last.

        Raises:
            FederatedError: A process ended, or the run failed.
        """
        settings = Settings(self.kept.home, HERE, free_port(), HERE, self._files)
        serving = Serving(self._family, settings, self.kept)
        serving.admit([public_of(key) for key in self._keys])
        for index in range(len(self._data)):
            self._nodes.append(self._start(index, settings, serving.environment))
        try:
            yield from serving.rounds(self._app)
        except FederatedError as error:
            said = {one.name: one.last_lines(1) for one in self._nodes}
            logs = [f"; {name}: {lines}" for name, lines in said.items() if lines]
            raise FederatedError(f"{error}{''.join(logs)}") from error

    def peaks(self) -> tuple[int, ...]:
        """Bytes that each node took at most so far."""
        return tuple(node.peak() for node in self._nodes)

    def stop(self) -> None:
        """Let the nodes go, while there is a server to say good-bye to."""
        self._family.stop(self._nodes)

    def _start(
        self, index: int, settings: Settings, environment: Mapping[str, str]
    ) -> Started:
        line = [sys.executable, "-m", "edgewise", "federate", "node", str(self._app)]
        line += ["--superlink", settings.address, "--data", str(self._data[index])]
        line += ["--state", str(self._folder / f"state-{index}")]
        line += ["--number", str(index)]
        if self._files is not None:
            line += ["--ca", str(self._files.authority)]
            line += ["--key", str(self._keys[index])]
        log = self._folder / f"{index}.log"
        return self._family.start(f"node {index}", line, environment, log)


def _written(
    folder: Path, deployment: Deployment, parts: Sequence[Data]
) -> tuple[Path, ...]:
    """The examples of each node, in a file of its own."""
    folder.mkdir()
    paths = tuple(folder / f"{index}.npz" for index in range(len(parts)))
    for path, part in zip(paths, parts, strict=True):
        save_arrays(path, arrays_of(part, deployment.model))
    return paths
