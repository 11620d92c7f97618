"""Forty watches learn to read gestures together; what a gesture means stays personal.

    python examples/federated/shortcuts.py

A digit drawn on a small, noisy pad opens an app, and every owner has chosen six digits
and what they open.  No model for all can be right; a watch alone has 24 gestures to
learn from.  What reads gestures is shared, what gives them a meaning is not.  Takes
half a minute.  Needs numpy, onnx, scikit-learn and edgewise.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

import edgewise as ew
from edgewise_federated import FederatedConfig, simulate
from edgewise_trainer import Trainer, optimizers

Inputs = npt.NDArray[np.float32]
Apps = npt.NDArray[np.int64]
Data = tuple[Inputs, Apps]

WATCHES, SHORTCUTS, EACH = 40, 6, 4  # gestures of each kind on a watch
HELD_OUT = 360
NOISE = 0.3  # of a pad, where ink is 1
ROUNDS, EPOCHS, RATE = 40, 3, 0.1


class Watch(NamedTuple):
    """What its owner drew, and will draw."""

    train: Data
    test: Data


def watches(seed: int = 0) -> list[Watch]:
    """Gestures on pads that add noise, and the apps that their owners chose."""
    rng, data = np.random.default_rng(seed), load_digits()
    order = rng.permutation(len(data.data))
    x, digit = data.data[order] / data.data.max(), data.target[order]

    def seen(rows: npt.NDArray[np.intp], chosen: list[int]) -> Data:
        noisy = x[rows] + rng.normal(0, NOISE, (len(rows), x.shape[1]))
        apps = [chosen.index(gesture) for gesture in digit[rows]]
        return noisy.astype(np.float32), np.asarray(apps, np.int64)

    found = []
    for _ in range(WATCHES):
        chosen = [int(gesture) for gesture in rng.permutation(10)[:SHORTCUTS]]
        mine = HELD_OUT + rng.permutation(len(x) - HELD_OUT)
        drawn = [mine[digit[mine] == gesture][:EACH] for gesture in chosen]
        held = np.flatnonzero(np.isin(digit[:HELD_OUT], chosen))
        found.append(Watch(seen(np.concatenate(drawn), chosen), seen(held, chosen)))
    return found


def network(seed: int = 0) -> onnx.ModelProto:
    """64-64-48-6: two layers that read a gesture, and a head that names an app."""
    rng, sizes = np.random.default_rng(seed), (64, 64, 48, SHORTCUTS)
    nodes, weights, value = [], [], "gesture"
    for layer, (width, count) in enumerate(itertools.pairwise(sizes)):
        w, b, y = f"w{layer}", f"b{layer}", f"y{layer}"
        scale = np.sqrt(2 / width)
        for name, array in (
            (w, rng.normal(0, scale, (count, width))),
            (b, np.zeros(count)),
        ):
            weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        nodes.append(helper.make_node("Gemm", [value, w, b], [y], transB=1))
        if layer < len(sizes) - 2:
            nodes.append(helper.make_node("Relu", [y], [f"{y}.relu"]))
        value = nodes[-1].output[0]
    x = helper.make_tensor_value_info("gesture", TensorProto.FLOAT, ["N", sizes[0]])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", SHORTCUTS])
    graph = helper.make_graph(nodes, "shortcuts", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def accuracy(model: ew.Model, data: Data) -> float:
    """The share of gestures that open the right app."""
    with ew.Session(model) as session:
        return float((session(data[0]).argmax(1) == data[1]).mean())


def alone(model: ew.Model, fleet: list[Watch]) -> list[float]:
    """Every watch learns from its own gestures, as often as it would with others."""
    trainer, first = Trainer(model, optimizer=optimizers.SGD(RATE)), model.parameters()
    found = []
    for watch in fleet:
        trainer.restart(first)
        trainer.fit(watch.train, epochs=ROUNDS * EPOCHS // 2, batch_size=8)
        found.append(accuracy(trainer.export(), watch.test))
    return found


def together(
    model: ew.Model, fleet: list[Watch], personal: str | None
) -> tuple[list[float], int]:
    """Half of them in each round; accuracy on each, and what one sends in a round."""
    config = FederatedConfig(
        rounds=ROUNDS,
        clients_per_round=WATCHES // 2,
        local_epochs=EPOCHS,
        batch_size=8,
        personal=personal,
    )
    parts = [watch.train for watch in fleet]
    history = simulate(model, parts, config, optimizer=optimizers.SGD(RATE))
    found = [
        accuracy(history.model_of(index), watch.test)
        for index, watch in enumerate(fleet)
    ]
    return found, history.rounds[-1].upload_bytes // config.clients_per_round


def told(name: str, found: list[float], sent: int = 0) -> None:
    """One line of the comparison."""
    print(f"{name:<32} {np.mean(found):7.1%} {min(found):7.1%} {sent:8,}")


def main() -> None:
    """Alone, one model for all, and a head of its own for each."""
    model, fleet = ew.convert(network()), watches()
    print(f"{'':<32} {'mean':>7} {'worst':>7} {'bytes up':>8}")
    told("each watch alone", alone(model, fleet))
    told("one model for all", *together(model, fleet, None))
    told("a shared body, a head of its own", *together(model, fleet, "last:1"))


if __name__ == "__main__":
    main()
