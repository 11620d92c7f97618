"""Looking at the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgewise.errors import KernelLibraryError
from edgewise.runtime import library, topology
from edgewise.tools import doctor


def test_this_machine_is_well() -> None:
    found = doctor.examine()
    assert found.problems == ()
    assert Path(found.kernels.path).exists()
    assert found.topology.cores
    assert found.versions["numpy"]


def test_a_library_that_cannot_be_loaded_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise KernelLibraryError("no kernels here")

    monkeypatch.setattr(library, "load", fail)
    found = doctor.examine()
    assert found.problems == ("no kernels here",)
    assert found.figures()["kernels"]["path"] == ""
    assert ("kernels", "none") in found.rows()


def test_a_missing_package_is_named_with_its_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "OPTIONAL", {"no_such_package": "do a thing"})
    found = doctor.examine()
    assert found.missing == {"no_such_package": "do a thing"}
    assert ("no_such_package", "missing, to do a thing") in found.rows()


def test_clusters_are_shown_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cores = tuple(
        topology.Core(cpu, speed, cpu, cluster)
        for cpu, speed, cluster in ((0, 400, 0), (1, 400, 0), (2, 1024, 1))
    )
    machine = topology.Topology(cores, 2.0)
    monkeypatch.setattr(topology, "read", lambda: machine)
    rows = dict(doctor.examine().rows())
    assert rows["cores"] == "3, quota 2"
    assert rows["cluster 0"] == "CPUs 0, 1, relative speed 400"
    assert rows["cluster 1"] == "CPUs 2, relative speed 1024"
