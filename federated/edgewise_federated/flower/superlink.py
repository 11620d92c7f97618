"""Flower's server process: started, and watched until it answers."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from edgewise.errors import FederatedError
from edgewise_federated.flower.certificates import Certificates
from edgewise_federated.flower.control import Control
from edgewise_federated.flower.processes import Family, Started

START = 120.0  # seconds in which it has to be up; 3 where nothing else runs
TASKS = "0.3"  # seconds between two looks for work; 1 is Flower's own


class Settings(NamedTuple):
    """How a SuperLink runs.

    Attributes:
        home: Folder of Flower's own files, and of logs.
        host: Where it listens.
        port: And on which port.
        dial: Name or address by which this machine dials it.
        certificates: Of TLS, and with it of keys of nodes; None: neither.
        database: Where nodes and runs are kept; None: in memory.
    """

    home: Path
    host: str
    port: int
    dial: str
    certificates: Certificates | None = None
    database: Path | None = None

    @property
    def address(self) -> str:
        """HOST:PORT, as this machine dials it."""
        host = f"[{self.dial}]" if ":" in self.dial else self.dial
        return f"{host}:{self.port}"


class SuperLink:
    """A SuperLink that runs.

    Args:
        family: Whose process it becomes.
        settings: How.
    """

    def __init__(self, family: Family, settings: Settings) -> None:
        self._settings, self._family = settings, family
        self.environment = _environment(settings.home)
        settings.home.mkdir(parents=True, exist_ok=True)
        line = [self._program("flower-superlink"), *_arguments(settings)]
        log = settings.home / "superlink.log"
        self.process: Started = family.start(
            "the SuperLink", line, self.environment, log
        )

    def wait(self) -> None:
        """Return once it answers.

        Raises:
            FederatedError: It does not, or it ended.
        """
        files = self._settings.certificates
        scheme = "http" if files is None else "https"
        trust: Any = True
        if files is not None:
            trust = ssl.create_default_context(cafile=str(files.authority))
        deadline = time.monotonic() + START
        with httpx.Client(verify=trust, timeout=5.0) as client:
            while time.monotonic() < deadline:
                self._family.want_all()
                try:
                    url = f"{scheme}://{self._settings.address}/health"
                    if client.get(url).status_code == httpx.codes.OK:
                        return
                except httpx.TransportError:
                    time.sleep(0.1)
        raise FederatedError(
            f"the SuperLink did not answer within {START:.0f} s:"
            f" {self.process.last_lines()}"
        )

    def control(self) -> Control:
        """A line by which it is told what to do."""
        files = self._settings.certificates
        return Control(
            self._settings.address, None if files is None else files.authority
        )

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=self.environment["PATH"])
        if found is None:
            raise FederatedError(
                f"{name} is not there: pip install 'edgewise[federated]'"
            )
        return found


def dialled(host: str) -> str:
    """How this machine dials a server that listens on an address of its own."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - asked for


def free_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(home: Path) -> dict[str, str]:
    """What Flower's processes see: files of ours alone, and nothing is reported."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {
        **os.environ,
        "FLWR_HOME": str(home),
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": TASKS,
        "PATH": path,
    }


def _arguments(settings: Settings) -> list[str]:
    line = ["--host", settings.host, "--port", str(settings.port)]
    line.append("--disable-runtime-dependency-installation")
    if settings.database is not None:
        line += ["--database", str(settings.database.absolute())]
    files = settings.certificates
    if files is None:
        return [*line, "--insecure"]
    return [
        *line,
        "--enable-supernode-auth",
        "--ssl-ca-certfile",
        str(files.authority),
        "--ssl-certfile",
        str(files.server),
        "--ssl-keyfile",
        str(files.server_key),
    ]
