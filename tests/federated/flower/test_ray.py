"""The two apps under Flower's own simulation, on Ray."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

RUN = """
import sys
from tests.federated.conftest import examples, network
import edgewise as ew
from edgewise_federated import FederatedConfig, client_app, server_app
from flwr.simulation import run_simulation

model = ew.convert(network())
config = FederatedConfig(rounds=2, clients_per_round=3, batch_size=10, codec="int8")
data = lambda node: examples(40, node)
client = client_app(model, data, config, state_dir=sys.argv[1])
server = server_app(
    model, config, examples(60, 9), done=lambda h: print([r.failures for r in h.rounds])
)
run_simulation(server, client, 3, backend_config={
    "client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2}
})
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_both_apps_run_on_ray(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "nodes")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "[0, 0]" in done.stdout, done.stderr[-2000:]
    assert len(list((tmp_path / "nodes").glob("*/*/federated.npz"))) == 3
