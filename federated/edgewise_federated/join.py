"""How updates that name what they change become one change of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from edgewise.ir.op import Array
from edgewise_federated.aggregate import Rule
from edgewise_federated.update import Layout, Update


def joined(rule: Rule, layout: Layout, updates: Sequence[Update]) -> Array:
    """Each parameter as a rule joins those that were sent; zero where none was.

    Args:
        rule: Joins changes, one a row, by weights.
        layout: Of the model.
        updates: Each of all parameters, or of some.
    """
    weights = np.asarray([update.examples for update in updates], np.float64)
    senders: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in layout.shapes:
        rows = tuple(i for i, update in enumerate(updates) if name in update.arrays)
        senders[rows].append(name)
    found: dict[str, Array] = {}
    for rows, names in senders.items():
        if rows:
            part = layout.only(names)
            changes = np.stack([part.flat(updates[row].arrays) for row in rows])
            change = rule(changes.astype(np.float64), weights[list(rows)])
            found |= part.named(change)
    return layout.filled(found)
