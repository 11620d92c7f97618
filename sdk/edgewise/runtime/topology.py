"""Which cores there are, how fast, and how many of them this process may use.

Everything is read from files under a root folder, so that a test can show us another
machine.  Linux only; elsewhere the folders are missing and all cores look alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeAlias

from edgewise.errors import ConfigError
from edgewise.named import NamedTuple

CPUS = "sys/devices/system/cpu"
CGROUPS = "sys/fs/cgroup"
# Cores within this part of the fastest count as big: binned clusters of one kind of
# core differ by some per cent, big and little ones by a factor of two or more.
BIG = 0.75
NO_CLUSTER = 65535  # what the kernel writes where it knows of none

QuotaReader: TypeAlias = Callable[[Path], "float | None"]


class Core(NamedTuple):
    """One logical CPU.

    Attributes:
        cpu: Its number.
        speed: Relative speed: the scheduler's capacity, else the highest frequency in
            kHz, else 0; comparable within one machine.
        unit: The first CPU of the core it belongs to; equal for a core's threads.
        cluster: Cores that share a cluster have equal numbers; -1: no cluster known.
    """

    cpu: int
    speed: int
    unit: int
    cluster: int


class Topology(NamedTuple):
    """The cores that this process may use.

    Attributes:
        cores: Those online and allowed by affinity, by number.
        quota: CPUs' worth of time that the control group allows; None: no limit.
    """

    cores: tuple[Core, ...]
    quota: float | None

    def select(self, cores: str | Collection[int]) -> tuple[int, ...]:
        """CPU numbers of a choice, fastest first.

        Args:
            cores: ``"auto"`` or ``"big"`` (the fast cores), ``"little"`` (the others;
                all where there is one kind), ``"all"``, or CPU numbers.

        Raises:
            ConfigError: A CPU that is not there, offline, or not ours.
        """
        ranked = sorted(self.cores, key=lambda core: (-core.speed, core.cpu))
        if not isinstance(cores, str):
            there = {core.cpu for core in ranked}
            missing = sorted(set(cores) - there)
            if missing:
                raise ConfigError(
                    f"cores={tuple(cores)}: CPUs {missing} are not there or not"
                    f" allowed; want some of {sorted(there)}"
                )
            return tuple(cores)
        least = BIG * ranked[0].speed
        little = [core for core in ranked if core.speed < least]
        if cores == "little" and little:
            ranked = little
        elif cores in ("auto", "big"):
            ranked = [core for core in ranked if core.speed >= least]
        return tuple(core.cpu for core in ranked)

    def threads(self, cpus: Collection[int]) -> int:
        """How many threads pay on these CPUs: one a core, within the quota."""
        units = {core.unit for core in self.cores if core.cpu in cpus}
        count = len(units)
        if self.quota is not None:
            # More threads than whole CPUs of quota are all stopped at once, mid-step.
            count = min(count, int(self.quota))
        return max(count, 1)


def read(root: Path = Path("/"), affinity: Collection[int] | None = None) -> Topology:
    """The topology of this machine, as far as this process sees it.

    Args:
        root: Folder that holds ``sys`` and ``proc``.
        affinity: CPUs this process may run on; None: ask the system.
    """
    if affinity is None:
        affinity = os.sched_getaffinity(0)
    online = _cpu_list(_text(root / CPUS / "online"))
    cpus = sorted(set(online) & set(affinity)) if online else sorted(affinity)
    cores = tuple(_core(root / CPUS / f"cpu{cpu}", cpu) for cpu in cpus)
    return Topology(cores, _quota(root))


def _core(folder: Path, cpu: int) -> Core:
    speed = _number(folder / "cpu_capacity") or _number(
        folder / "cpufreq" / "cpuinfo_max_freq"
    )
    topology = folder / "topology"
    siblings = _cpu_list(_text(topology / "thread_siblings_list"))
    cluster = _number(topology / "cluster_id")
    if cluster is None or cluster == NO_CLUSTER:
        cluster = -1
    return Core(cpu, speed or 0, min(siblings, default=cpu), cluster)


def _quota(root: Path) -> float | None:
    """The tightest CPU quota on the way from this process's group to the top."""
    found = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        hierarchy, controllers, group = line.split(":", 2)
        names = controllers.split(",")
        if hierarchy == "0" and not controllers:
            found += _quotas(root / CGROUPS, group, _quota_v2)
        elif "cpu" in names:
            for mount in (controllers, "cpu"):
                found += _quotas(root / CGROUPS / mount, group, _quota_v1)
    return min(found, default=None)


def _quotas(mount: Path, group: str, read_one: QuotaReader) -> list[float]:
    """Quotas of a group and of all groups above it; one CPU's worth is 1."""
    path = mount / group.lstrip("/")
    folders = [path, *path.parents][: len(path.parts) - len(mount.parts) + 1]
    # Inside a container the group's own path may not be mounted, the top always is.
    return [quota for folder in folders if (quota := read_one(folder)) is not None]


def _quota_v2(folder: Path) -> float | None:
    fields = _text(folder / "cpu.max").split()
    if len(fields) != 2 or fields[0] == "max":
        return None
    return int(fields[0]) / int(fields[1])


def _quota_v1(folder: Path) -> float | None:
    quota = _number(folder / "cpu.cfs_quota_us")
    period = _number(folder / "cpu.cfs_period_us")
    return quota / period if quota and quota > 0 and period else None


def _text(path: Path) -> str:
    """A file's text; empty where there is none: kernels differ in what they show."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.removeprefix("-").isdecimal() else None


def _cpu_list(text: str) -> tuple[int, ...]:
    """CPU numbers of a list such as ``0-3,6``."""
    return tuple(_expand(text.split(","))) if text else ()


def _expand(ranges: Iterable[str]) -> Iterable[int]:
    for part in ranges:
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
