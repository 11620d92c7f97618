"""The border to Flower: the package ``flwr`` is imported below here and nowhere else.

Flower reports its use and asks for updates unless it is told not to before it is
imported; what the environment says already stays.
"""

from __future__ import annotations

import os

from edgewise_federated.flower.version import want_flower

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}

want_flower()
for _name, _value in QUIET.items():
    os.environ.setdefault(_name, _value)
