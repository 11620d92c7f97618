"""Time that costs none: what devices of a simulation are at, and when it is done.

The clock stands still while a device learns, and jumps to the next reply when somebody
asks for it: who is late and who comes first depends on nothing but what was asked.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from edgewise.ir.op import Array
from edgewise_federated.order import Order


class Task(NamedTuple):
    """An order on its way; in the order in which replies arrive.

    Attributes:
        due: When its reply arrives.
        turn: Which of all tasks it is: the first first, of those that arrive at once.
        device: Who does it.
        order: What is asked.
    """

    due: float
    turn: int
    device: int
    order: Order


class Agenda:
    """Tasks under way, and the time.

    Attributes:
        time: Seconds.
    """

    def __init__(self) -> None:
        self.time = 0.0
        self._tasks: list[Task] = []
        self._turn = 0

    def add(self, device: int, order: Order, seconds: float) -> None:
        """A task that takes some seconds from now on."""
        self._turn += 1
        task = Task(self.time + seconds, self._turn, device, order)
        heapq.heappush(self._tasks, task)

    def next(self, until: float) -> Task | None:
        """The task that is done first; None if that is behind ``until``."""
        if not self._tasks:
            return None
        if self._tasks[0].due > until:
            self.time = max(self.time, until)
            return None
        task = heapq.heappop(self._tasks)
        self.time = max(self.time, task.due)
        return task

    def drop(self, devices: Collection[int]) -> None:
        """Tasks of devices are not done any more."""
        self._tasks = [task for task in self._tasks if task.device not in devices]
        heapq.heapify(self._tasks)

    def busy(self) -> dict[int, int]:
        """Devices with a task, and the numbers of their orders."""
        return {task.device: task.order.number for task in self._tasks}

    def memory(self) -> dict[str, Array]:
        """Everything by name; of orders what rounds leave behind: plain ones."""
        models: dict[int, Array] = {}
        rows = []
        for due, turn, device, order in sorted(self._tasks):
            number, values, epochs, mu, *_ = order
            models[id(values)] = values
            which = list(models).index(id(values))
            rows.append((due, turn, device, number, epochs, mu, which))
        found = {"time": np.array([self.time, self._turn]), "tasks": np.array(rows)}
        return found | {f"model/{i}": v for i, v in enumerate(models.values())}

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
        self.time, turn = memory["time"].tolist()
        self._turn = int(turn)
        for due, turn, device, number, epochs, mu, which in memory["tasks"].tolist():
            values = memory[f"model/{int(which)}"]
            order = Order(int(number), values, int(epochs), mu)
            self._tasks.append(Task(due, int(turn), int(device), order))
        heapq.heapify(self._tasks)
