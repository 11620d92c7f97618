"""Orders and answers as Flower's messages: one flat array, and a few numbers.

Each array of a message costs two requests in each direction, so all numbers of a kind
are one. Its ``stype`` names the codec.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from flwr.app import Array as Wire
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from edgewise.errors import EdgewiseError, FederatedError
from edgewise.ir.op import Array
from edgewise_federated import codecs
from edgewise_federated.device import Answer
from edgewise_federated.order import Member, Order, Reply, Sums
from edgewise_federated.resident import Told
from edgewise_federated.update import Layout, Update

FORM = 1  # of what is here: an end of another form is refused
MEMBER, ORDER = "query.member", "train.order"
VALUES, CONTROL, CHANGE = "values", "control", "change"
STYPE, WORDS = "edgewise.", "words"
LARGEST = 2**31 - 1


def order_content(order: Order, told: Told, layout: int) -> RecordDict:
    """An order as the content of a message.

    Args:
        order: What is asked.
        told: What comes with it.
        layout: Hash of the layout of the model.
    """
    arrays = {VALUES: _flat(order.values)}
    if order.control is not None:
        arrays[CONTROL] = _flat(order.control)
    facts: dict[str, Any] = {
        "form": FORM,
        "layout": layout,
        "number": order.number,
        "epochs": order.epochs,
        "mu": float(order.mu),
        "run": told.run,
        "device": told.device,
        "used": told.used,
    }
    if order.clip is not None:
        facts["clip"] = float(order.clip)
    if order.sums is not None:
        facts |= {"weight": order.sums.weight, "total": order.sums.total}
    return RecordDict({"arrays": ArrayRecord(arrays), "order": ConfigRecord(facts)})


def order_of(content: RecordDict, layout: int) -> tuple[Order, Told]:
    """The order in a message.

    Raises:
        FederatedError: There is none, or it is for another model.
    """
    try:
        facts = dict(content.config_records["order"])
        arrays = content.array_records["arrays"]
        want_same(facts, layout)
        sums = None
        if "total" in facts:
            sums = Sums(whole(facts, "weight", 1), whole(facts, "total", 1))
        order = Order(
            whole(facts, "number", 0),
            _numbers(arrays[VALUES]),
            whole(facts, "epochs", 1),
            finite(facts, "mu"),
            _numbers(arrays[CONTROL]) if CONTROL in arrays else None,
            finite(facts, "clip") if "clip" in facts else None,
            sums,
        )
        run, device = str(facts["run"]), whole(facts, "device", 0)
        return order, Told(run, device, whole(facts, "used", 0))
    except (KeyError, ValueError) as error:
        raise FederatedError(f"a damaged order: {error}") from error


def answer_content(answer: Answer, number: int) -> RecordDict:
    """An answer as the content of a message."""
    sent = answer.sent
    if isinstance(sent, codecs.Message):
        name = f"{STYPE}{sent.codec}"
        arrays = {CHANGE: Wire("float32", (sent.size,), name, sent.data)}
    else:
        words = sent.astype("<u4").tobytes()
        arrays = {CHANGE: Wire("uint32", (sent.size,), f"{STYPE}{WORDS}", words)}
    if answer.control is not None:
        arrays[CONTROL] = _flat(answer.control)
    metrics: dict[str, Any] = {
        "number": number,
        "num-examples": answer.examples,
        "loss": answer.loss,
    }
    return RecordDict({"arrays": ArrayRecord(arrays), "metrics": MetricRecord(metrics)})


def reply_of(
    message: Message, device: int, number: int, sends: Layout, hidden: bool
) -> Reply:
    """The reply in a message; a failure where it holds none.

    Args:
        message: What came.
        device: Of whom.
        number: Of the order that it answers.
        sends: The layout of what the device said that it sends.
        hidden: Whether words under masks are expected.
    """
    if message.has_error():
        return Reply(device, number, None, failure=str(message.error.reason))
    try:
        return _reply(message.content, device, number, sends, hidden)
    except (EdgewiseError, KeyError, ValueError, IndexError, TypeError) as error:
        return Reply(device, number, None, failure=f"a damaged reply: {error}")


def _reply(
    content: RecordDict, device: int, number: int, sends: Layout, hidden: bool
) -> Reply:
    arrays = content.array_records["arrays"]
    metrics = dict(content.metric_records["metrics"])
    if whole(metrics, "number", 0) != number:
        raise FederatedError(f"it answers order {metrics['number']}")
    sent = sum(len(array.data) for array in arrays.values())
    update = Update(
        sends.named(_change(arrays[CHANGE], sends, hidden)),
        whole(metrics, "num-examples", 1),
        finite(metrics, "loss"),
        sent,
    )
    control = None
    if CONTROL in arrays:
        control = _numbers(arrays[CONTROL])
        if control.shape != (sends.trained,) or not np.isfinite(control).all():
            raise FederatedError("its control is none")
    return Reply(device, number, update, control, sent)


def _change(wire: Wire, sends: Layout, hidden: bool) -> Array:
    """The numbers of a change; their count is checked before any is made."""
    if wire.shape != (sends.size,) or not wire.stype.startswith(STYPE):
        raise FederatedError(
            f"got {wire.stype!r} of shape {wire.shape}; want {sends.size} numbers"
        )
    name = wire.stype.removeprefix(STYPE)
    if (name == WORDS) != hidden:
        raise FederatedError(
            f"got {name!r} where sums are {'' if hidden else 'not '}hidden"
        )
    if hidden:
        return np.frombuffer(wire.data, "<u4", sends.size).astype(np.uint32)
    rest = sends.size - sends.trained
    return codecs.received(codecs.Message(wire.data, sends.size, name, rest))


def member_content(member: Member, layout: int, identity: bytes) -> RecordDict:
    """What a server is told of a node, as the content of a message."""
    facts = ConfigRecord(
        {
            "form": FORM,
            "layout": layout,
            "examples": member.examples,
            "epochs": member.epochs,
            "sends": list(member.sends.shapes),
            "identity": identity,
        }
    )
    return RecordDict({"member": facts})


def member_of(message: Message, layout: Layout) -> tuple[Member, bytes]:
    """What a node says of itself, and its public identity key.

    Raises:
        FederatedError: It says nothing that could be used.
    """
    if message.has_error():
        raise FederatedError(str(message.error.reason))
    try:
        facts = dict(message.content.config_records["member"])
        want_same(facts, layout.hash)
        sends = facts["sends"]
        if not isinstance(sends, list) or set(sends) - layout.shapes.keys():
            raise FederatedError("it sends what is no part of the model")
        part = layout.only(set(map(str, sends)))
        if not part.trained:
            raise FederatedError("it sends nothing")
        examples, epochs = whole(facts, "examples", 1), whole(facts, "epochs", 1)
        return Member(examples, part, epochs), bytes(facts["identity"])  # type: ignore[arg-type] # a TypeError is caught
    except (KeyError, ValueError, TypeError) as error:
        raise FederatedError(f"it answers what is no member: {error}") from error


def want_same(facts: Mapping[str, Any], layout: int) -> None:
    """Raise unless both ends are of one form and talk about one model.

    Raises:
        FederatedError: They do not.
    """
    if facts.get("form") != FORM:
        raise FederatedError(f"form {facts.get('form')!r} of messages; want {FORM}")
    if facts.get("layout") != layout:
        raise FederatedError(
            "the other end has another model, or shares another part of it"
        )


def whole(facts: Mapping[str, Any], name: str, least: int) -> int:
    """A whole number of a record."""
    value = facts[name]
    if type(value) is not int or not least <= value <= LARGEST:
        raise FederatedError(f"{name}={value!r}: want a whole number from {least} on")
    return value


def finite(facts: Mapping[str, Any], name: str) -> float:
    """A finite number of a record."""
    value = facts[name]
    if type(value) not in (int, float) or not math.isfinite(value):
        raise FederatedError(f"{name}={value!r}: want a finite number")
    return float(value)


def _flat(values: Array) -> Wire:
    data = values.astype("<f4").tobytes()
    return Wire("float32", (values.size,), f"{STYPE}float32", data)


def _numbers(wire: Wire) -> Array:
    """The numbers of what ``_flat`` made."""
    if wire.stype != f"{STYPE}float32" or len(wire.shape) != 1:
        raise FederatedError(f"got an array of {wire.stype!r}, {wire.shape}")
    return np.frombuffer(wire.data, "<f4", wire.shape[0]).astype(np.float32)
