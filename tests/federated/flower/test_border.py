"""What stands between this project and Flower: versions, private names, silence."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from edgewise.errors import FederatedError
from edgewise_federated.flower import version
from edgewise_federated.flower.identity import identify


def test_the_package_is_light_without_flower() -> None:
    code = (
        "import sys, edgewise_federated as f; f.FederatedConfig();"
        "assert not {'flwr', 'cryptography', 'httpx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_flower_is_told_to_be_quiet_before_it_is_imported() -> None:
    code = (
        "import sys, edgewise_federated.flower;"
        "assert 'flwr' not in sys.modules;"
        "from flwr.supercore import telemetry, update_check;"
        "assert telemetry.FLWR_TELEMETRY_ENABLED == '0';"
        "import os; assert os.environ['FLWR_DISABLE_UPDATE_CHECK'] == '1'"
    )
    names = ("FLWR_TELEMETRY_ENABLED", "FLWR_DISABLE_UPDATE_CHECK")
    left = {k: v for k, v in os.environ.items() if k not in names}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=left)


def test_who_asks_for_telemetry_has_it() -> None:
    code = (
        "import os, edgewise_federated.flower;"
        "assert os.environ['FLWR_TELEMETRY_ENABLED'] == '1'"
    )
    given = os.environ | {"FLWR_TELEMETRY_ENABLED": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=given)


@pytest.mark.parametrize("found", ["1.41.0", "1.43.0", "2.0.0"])
def test_another_flower_is_refused(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version.metadata, "version", lambda name: found)
    with pytest.raises(FederatedError, match=rf"flwr {found}; want flwr>=1.42,<1.43"):
        version.want_flower()


def test_no_flower_is_refused_with_the_way_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        raise version.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(version.metadata, "version", missing)
    with pytest.raises(FederatedError, match=r"pip install 'edgewise\[federated\]'"):
        version.want_flower()


@pytest.mark.parametrize(
    ("module", "name"),
    [("flwr.supercore.task_identity", "Gone"), ("flwr.gone", "TaskIdentity")],
)
def test_a_private_name_that_is_gone_is_an_error_that_says_so(
    module: str, name: str
) -> None:
    with pytest.raises(FederatedError, match=rf"no {module}.{name}.*>=1.42,<1.43"):
        version.private(module, name)


def test_messages_can_be_made_where_flower_did_not_start_the_process() -> None:
    from flwr.app import Message, RecordDict

    identify()
    message = Message(RecordDict(), 7, "train")
    assert message.metadata.dst_node_id == 7
