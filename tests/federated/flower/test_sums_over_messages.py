"""Secure sums over messages: the numbers of plain rounds, whoever drops out when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict
from tests.federated.conftest import World
from tests.federated.flower.conftest import Over

import edgewise as ew
from edgewise_federated import FederatedHistory, Privacy
from edgewise_federated.flower.loopback import Fault
from edgewise_federated.flower.messages import ORDER
from edgewise_federated.flower.phases import KEYS, REVEAL, SHARES
from edgewise_federated.secure.messages import OWN, Reveal
from edgewise_federated.secure.vault import Vault

HIDDEN = {"secure_aggregation": True, "clients_per_round": 8}
GAP = 5e-3  # of a loss; sums are of whole numbers


def near(one: FederatedHistory, other: FederatedHistory) -> bool:
    pairs = zip(one.rounds, other.rounds, strict=True)
    return all(abs(a.loss - b.loss) < GAP for a, b in pairs)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"strategy": "fedadam", "personal": "last:1", "local_epochs": 2},
        {"privacy": Privacy(clip=1.0, noise_multiplier=0.01), "clients_per_round": 6},
    ],
)
def test_hidden_rounds_have_the_numbers_of_plain_ones(
    world: World, behind: Over, settings: dict[str, Any]
) -> None:
    given = {"clients_per_round": 8} | settings
    hidden = behind(**{**HIDDEN, **settings})
    assert near(world.run(**given), hidden)
    assert near(world.run(**{**HIDDEN, **settings}), hidden)


def test_what_leaves_a_device_is_noise(behind: Over) -> None:
    words: list[np.ndarray] = []

    def look(request: Message, reply: Message) -> Message:
        if request.metadata.message_type == ORDER:
            (change,) = reply.content.array_records["arrays"].values()
            assert change.dtype == "uint32"
            words.append(np.frombuffer(change.data, "<u4"))
        return reply

    behind(look, **HIDDEN)
    sent = np.concatenate(words) / 2.0**32
    assert abs(sent.mean() - 0.5) < 0.03
    assert abs(sent.std() - 12**-0.5) < 0.03


def dropping(kind: str, nodes: set[int]) -> Fault:
    """Nodes that raise at a step."""

    def fault(request: Message, reply: Message) -> Message:
        node = request.metadata.dst_node_id
        if request.metadata.message_type == kind and node in nodes:
            return Message(Error(0, "gone"), reply_to=request)
        return reply

    return fault


@pytest.mark.parametrize("kind", [KEYS, SHARES, ORDER, REVEAL])
def test_who_drops_out_at_a_step_is_left_out(
    world: World, behind: Over, kind: str
) -> None:
    """At the last one its words are in the sum, and the others open it."""
    gone = {3, 6}
    hidden = behind(dropping(kind, gone), **HIDDEN)

    def vanish(number: int, client: int, update: Any) -> Any:
        return None if client + 1 in gone and kind != REVEAL else update

    plain = world.run(vanish, clients_per_round=8)
    assert near(plain, hidden)
    lost = 0 if kind == REVEAL else 2
    assert [one.failures for one in hidden.rounds] == [lost] * 3


@pytest.mark.parametrize("kind", [KEYS, SHARES, ORDER, REVEAL])
def test_too_few_who_stay_are_an_error(behind: Over, kind: str) -> None:
    with pytest.raises(ew.FederatedError, match=r"secure aggregation|gave an update"):
        behind(dropping(kind, {2, 3, 4, 5, 6, 7}), quorum=0.0, **HIDDEN)


def changed(kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Fault:
    """Node 4 answers a step with something else."""

    def fault(request: Message, reply: Message) -> Message:
        if request.metadata.message_type != kind or request.metadata.dst_node_id != 4:
            return reply
        facts = change(dict(reply.content.config_records["phase"]))
        return Message(RecordDict({"phase": ConfigRecord(facts)}), reply_to=request)

    return fault


def lie(facts: dict[str, Any]) -> dict[str, Any]:
    """Shares that are of the right form, and of another number."""
    boxes = [Reveal.from_bytes(box) for box in facts["boxes"]]
    wrong = [Reveal(box.kind, box.value ^ 1).to_bytes() for box in boxes]
    assert all(box.kind == OWN for box in boxes)
    return facts | {"boxes": wrong}


@pytest.mark.parametrize(
    ("kind", "change", "lost"),
    [
        (KEYS, lambda facts: {"keys": facts["keys"][:-1]}, 1),
        (KEYS, lambda facts: {}, 1),
        (SHARES, lambda facts: {"parties": [1], "boxes": [b"?"]}, 1),
        (SHARES, lambda facts: {"parties": [1, 2], "boxes": [b"?"]}, 1),
        (REVEAL, lambda facts: {"parties": [1], "boxes": [b"?"]}, 0),
        (REVEAL, lie, 0),
    ],
)
def test_damaged_steps_are_drop_outs(
    world: World, behind: Over, kind: str, change: Any, lost: int
) -> None:
    hidden = behind(changed(kind, change), rounds=2, **HIDDEN)
    assert [one.failures for one in hidden.rounds] == [lost] * 2
    if not lost:
        assert near(world.run(clients_per_round=8, rounds=2), hidden)


def test_a_box_that_was_changed_on_its_way_stops_its_reader(behind: Over) -> None:
    """The server passes boxes on, and can neither read nor change them."""

    def spoil(facts: dict[str, Any]) -> dict[str, Any]:
        boxes = [bytes([box[0] ^ 1]) + box[1:] for box in facts["boxes"][:1]]
        return facts | {"boxes": boxes + facts["boxes"][1:]}

    history = behind(changed(SHARES, spoil), rounds=1, **HIDDEN)
    assert history.rounds[0].failures == 1


def test_a_server_in_the_middle_is_found_out(
    behind: Over, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys that a device did not sign are refused by all who know it."""
    behind(rounds=1, **HIDDEN)

    def forge(facts: dict[str, Any]) -> dict[str, Any]:
        keys = Vault(tmp_path / "middle").keys("run", 1, 3)
        return facts | {"keys": keys}

    with pytest.raises(ew.FederatedError, match="parties are there"):
        behind(changed(KEYS, forge), rounds=1, **HIDDEN)
    assert "party 3: its keys are not signed by it" in caplog.text


def begun(tmp_path: Path, count: int = 3) -> tuple[list[Vault], dict[int, bytes]]:
    vaults = [Vault(tmp_path / str(i)) for i in range(count)]
    return vaults, {i: vault.keys("run", 1, i) for i, vault in enumerate(vaults)}


def test_a_round_goes_on_in_other_processes(tmp_path: Path) -> None:
    """Each step by a vault that knows what is on disk, and nothing else."""
    from edgewise_federated.secure import Collector, Keys

    vaults, keys = begun(tmp_path)
    names = {i: str(i) for i in keys}
    known = {i: vault.identity() for i, vault in enumerate(vaults)}

    def again(i: int) -> Vault:
        return Vault(tmp_path / str(i))

    boxes = {i: again(i).shares("run", 1, 2, keys, names, known) for i in keys}
    words = {i: np.arange(5, dtype=np.uint32) * (i + 1) for i in keys}
    sent = {
        i: again(i).masks("run", 1, {j: boxes[j][i] for j in keys if j != i})(words[i])
        for i in (0, 1)
    }
    reveals = {i: again(i).reveal("run", 1, sent) for i in sent}
    total = sent[0] + sent[1]
    public = {i: Keys.from_bytes(data) for i, data in keys.items()}
    opened = Collector(2).unmask(total, public, sent, reveals)
    np.testing.assert_array_equal(opened, words[0] + words[1])
    with pytest.raises(ew.FederatedError, match="takes no part in it, or has done so"):
        again(0).reveal("run", 1, sent)
    assert not (tmp_path / "0" / "round.json").exists()


def test_a_vault_masks_once(tmp_path: Path) -> None:
    vaults, keys = begun(tmp_path)
    names, known = {i: str(i) for i in keys}, {}
    known = {i: vault.identity() for i, vault in enumerate(vaults)}
    boxes = {i: v.shares("run", 1, 2, keys, names, known) for i, v in enumerate(vaults)}
    mine = {j: boxes[j][0] for j in (1, 2)}
    words = np.zeros(4, np.uint32)
    vaults[0].masks("run", 1, mine)(words)
    with pytest.raises(ew.FederatedError, match="has masked its words already"):
        Vault(tmp_path / "0").masks("run", 1, mine)(words)


@pytest.mark.parametrize(
    ("threshold", "count", "text"),
    [(1, 3, "more than half"), (4, 3, "more than half"), (2, 2, "want 3 devices")],
)
def test_a_vault_takes_part_where_sums_hide_alone(
    tmp_path: Path, threshold: int, count: int, text: str
) -> None:
    vaults, keys = begun(tmp_path, count)
    names = {i: str(i) for i in keys}
    known = {i: vault.identity() for i, vault in enumerate(vaults)}
    with pytest.raises(ew.FederatedError, match=text):
        vaults[0].shares("run", 1, threshold, keys, names, known)


def test_keys_of_all_nodes_may_be_given(tmp_path: Path) -> None:
    vaults, keys = begun(tmp_path)
    names = {i: str(i) for i in keys}
    identities = {i: vault.identity() for i, vault in enumerate(vaults)}
    right = {str(i): key for i, key in identities.items()}
    for known, text in (
        ({k: v for k, v in right.items() if k != "2"}, "nobody knows: 2"),
        (right | {"2": right["1"]}, "party 2: its keys are not signed"),
    ):
        with pytest.raises(ew.FederatedError, match=text):
            Vault(tmp_path / "0", known).shares("run", 1, 2, keys, names, identities)
    Vault(tmp_path / "0", right).shares("run", 1, 2, keys, names, identities)


def test_another_round_is_refused(tmp_path: Path) -> None:
    vaults, _ = begun(tmp_path)
    for run, number in (("other", 1), ("run", 2)):
        with pytest.raises(ew.FederatedError, match="this device is in another"):
            vaults[0].reveal(run, number, [0, 1])


def test_nobody_else_reads_a_vault(tmp_path: Path) -> None:
    begun(tmp_path)
    assert (tmp_path / "0").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("name", ["identity", "round.json", "known.json"])
def test_a_damaged_vault_says_so(tmp_path: Path, name: str) -> None:
    vaults, keys = begun(tmp_path)
    names = {i: str(i) for i in keys}
    known = {i: vault.identity() for i, vault in enumerate(vaults)}
    (tmp_path / "0" / name).write_text('"zz')

    def use() -> None:
        vaults[0].identity()
        vaults[0].shares("run", 1, 2, keys, names, known)

    with pytest.raises(ew.CheckpointError, match=name):
        use()
