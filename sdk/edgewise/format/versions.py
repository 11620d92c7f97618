"""Which files this edgewise reads, and what it says of itself in those it writes."""

from __future__ import annotations

FORMAT_VERSION = 1
BINDERS, CONTAINERS, CODED = "binders", "containers", "coded"
FEATURES = frozenset({BINDERS, CONTAINERS, CODED})
EDGEWISE_VERSION = "0.1.0"

# Metadata of ours that has fields of its own in a file.
LINEAGE = {"edgewise.parent": "parent", "edgewise.source": "source"}
