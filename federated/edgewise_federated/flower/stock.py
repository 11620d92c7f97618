"""What a device answers to servers that run one of Flower's strategies by themselves.

They send models by names and want one array record and one metric record back.
"""

from __future__ import annotations

import numpy as np
from flwr.app import Array as Wire
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.norms import numbers
from edgewise_federated.order import Order
from edgewise_federated.resident import Resident, Told
from edgewise_federated.update import Layout


def arrays_of(model: Model) -> ArrayRecord:
    """The numbers of a model, as one of Flower's strategies begins with them."""
    return _record(numbers(model))


def trained(
    resident: Resident, node: int, message: Message, run: str, epochs: int
) -> Message:
    """The reply to ``train``: a whole model without what is personal, and its metrics.

    Raises:
        FederatedError: The model is another, or the device shows sums alone.
    """
    (name, record), *_ = message.content.array_records.items()
    asked = {
        key: value
        for config in message.content.config_records.values()
        for key, value in config.items()
    }
    number, mu = asked.get("server-round", 0), asked.get("proximal-mu", 0.0)
    if not isinstance(number, int) or not isinstance(mu, int | float):
        raise FederatedError(f"got server-round={number!r}, proximal-mu={mu!r}")
    values = numbers_of(record, resident.layout)
    order = Order(number, values, epochs, float(mu))
    told = Told(run, node, number - 1)
    answer = resident.plain(node, order, told)
    changed = (values + resident.whole(node, answer)).astype(np.float32)
    metrics = MetricRecord(
        {
            "num-examples": answer.examples,
            "loss": answer.loss,
            "train_loss": answer.loss,
        }
    )
    content = RecordDict(
        {name: _record(resident.layout.named(changed)), "metrics": metrics}
    )
    return Message(content, reply_to=message)


def evaluated(resident: Resident, node: int, message: Message) -> Message:
    """The reply to ``evaluate``: scores of a model on the data of a device."""
    (record, *_) = message.content.array_records.values()
    values = numbers_of(record, resident.layout)
    scores, examples = resident.evaluate(node, values)
    metrics = MetricRecord({"num-examples": examples, **scores})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)


def numbers_of(record: ArrayRecord, layout: Layout) -> Array:
    """What of a record travels, flat.

    Raises:
        FederatedError: It is of another model.
    """
    try:
        named = {name: record[name].numpy() for name in layout.shapes}
    except (KeyError, TypeError, ValueError) as error:
        raise FederatedError(f"the arrays are of another model: {error}") from error
    layout.check(named)
    return layout.flat(named).astype(np.float32)


def _record(arrays: dict[str, Array]) -> ArrayRecord:
    return ArrayRecord({k: Wire(np.ascontiguousarray(a)) for k, a in arrays.items()})
