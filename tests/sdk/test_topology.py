"""Cores as the files of a machine tell of them; the machines are made up here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from edgewise.errors import ConfigError
from edgewise.runtime.topology import Topology, read

CPU = "sys/devices/system/cpu"


def machine(root: Path, files: Mapping[str, object]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return root


def cores(
    numbers: range, *, capacity: int = 0, frequency: int = 0, cluster: int | None = None
) -> dict[str, object]:
    files: dict[str, object] = {}
    for cpu in numbers:
        folder = f"{CPU}/cpu{cpu}"
        if capacity:
            files[f"{folder}/cpu_capacity"] = capacity
        if frequency:
            files[f"{folder}/cpufreq/cpuinfo_max_freq"] = frequency
        if cluster is not None:
            files[f"{folder}/topology/cluster_id"] = cluster
        files[f"{folder}/topology/thread_siblings_list"] = cpu
    return files


@pytest.fixture
def raspberry_pi(tmp_path: Path) -> Topology:
    files = {f"{CPU}/online": "0-3", **cores(range(4), frequency=2_400_000)}
    return read(machine(tmp_path, files), range(4))


@pytest.fixture
def rk3588(tmp_path: Path) -> Topology:
    """Four Cortex-A55, then two pairs of Cortex-A76 that differ a little."""
    files = {f"{CPU}/online": "0-7"}
    files |= cores(range(4), capacity=530, cluster=0)
    files |= cores(range(4, 6), capacity=1024, cluster=1)
    files |= cores(range(6, 8), capacity=1000, cluster=2)
    return read(machine(tmp_path, files), range(8))


def test_a_board_with_four_equal_cores_uses_them_all(raspberry_pi: Topology) -> None:
    for choice in ("auto", "big", "little", "all"):
        assert sorted(raspberry_pi.select(choice)) == [0, 1, 2, 3]
    assert raspberry_pi.threads(raspberry_pi.select("auto")) == 4
    assert raspberry_pi.quota is None


def test_big_cores_are_those_of_both_fast_clusters(rk3588: Topology) -> None:
    assert rk3588.select("big") == (4, 5, 6, 7)
    assert rk3588.select("auto") == (4, 5, 6, 7)
    assert rk3588.select("little") == (0, 1, 2, 3)
    assert sorted(rk3588.select("all")) == list(range(8))
    assert [core.cluster for core in rk3588.cores] == [0, 0, 0, 0, 1, 1, 2, 2]


def test_automatic_threads_stay_off_the_little_cores(rk3588: Topology) -> None:
    assert rk3588.threads(rk3588.select("auto")) == 4


def test_chosen_cpus_are_taken_as_they_are(rk3588: Topology) -> None:
    assert rk3588.select((6, 0)) == (6, 0)


@pytest.mark.parametrize("cpus", [(8,), (0, 99)])
def test_a_cpu_that_is_not_there_is_refused_by_number(
    rk3588: Topology, cpus: tuple[int, ...]
) -> None:
    with pytest.raises(ConfigError, match=str(cpus[-1])):
        rk3588.select(cpus)


def test_cores_that_are_offline_or_forbidden_are_not_seen(tmp_path: Path) -> None:
    root = machine(tmp_path, {f"{CPU}/online": "0,2-5", **cores(range(6))})
    seen = read(root, {1, 2, 3, 9})
    assert [core.cpu for core in seen.cores] == [2, 3]


def test_hyperthreads_count_as_one_core(tmp_path: Path) -> None:
    files: dict[str, object] = {f"{CPU}/online": "0-3"}
    for cpu in range(4):
        siblings = f"{cpu % 2},{cpu % 2 + 2}"
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = siblings
    seen = read(machine(tmp_path, files), range(4))
    assert seen.threads(seen.select("auto")) == 2
    assert sorted(seen.select("all")) == [0, 1, 2, 3]


def test_a_quota_of_one_and_a_half_cpus_gives_one_thread(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/work/load",
        "sys/fs/cgroup/cpu.max": "max 100000",
        "sys/fs/cgroup/work/cpu.max": "150000 100000",
        "sys/fs/cgroup/work/load/cpu.max": "400000 100000",
        **cores(range(4)),
    }
    seen = read(machine(tmp_path, files), range(4))
    assert seen.quota == 1.5
    assert seen.threads(seen.select("auto")) == 1


def test_a_quota_of_the_older_control_groups_is_read_too(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/box\n3:memory:/box",
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": 300_000,
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": 100_000,
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": -1,
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": 100_000,
        **cores(range(4)),
    }
    seen = read(machine(tmp_path, files), range(4))
    assert seen.quota == 3.0
    assert seen.threads(seen.select("auto")) == 3


def test_a_quota_below_one_cpu_still_gives_a_thread(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "20000 100000"}
    seen = read(machine(tmp_path, files), {0, 1})
    assert seen.threads(seen.select("auto")) == 1


def test_a_system_that_shows_nothing_has_equal_cores(tmp_path: Path) -> None:
    seen = read(tmp_path, {3, 5})
    assert seen.select("auto") == (3, 5)
    assert seen.threads((3, 5)) == 2


def test_this_machine_can_be_read() -> None:
    seen = read()
    assert seen.threads(seen.select("auto")) >= 1
