"""How a session runs: everything that can be chosen, checked where it is made."""

from __future__ import annotations

from edgewise._env import MAX_THREADS
from edgewise.errors import ConfigError
from edgewise.options import Options

CORES = ("auto", "big", "little", "all")
PRECISIONS = ("float32",)


class SessionConfig(Options):
    """How a session runs; never changes once the session exists.

    Attributes:
        threads: Threads of a run, the calling one included; None: what
            ``EDGEWISE_THREADS`` says, else one for each core of ``cores``.
        cores: Which cores may be used: ``"auto"`` (the fast ones, not pinned),
            ``"big"``, ``"little"``, ``"all"``, or CPU ids. Threads stay on cores that
            were chosen; the calling thread stays where the caller has put it.
        precision: Precision of the arithmetic: ``"float32"``.
        delegates: Delegates in order of preference; the rest runs here.
        winograd: Whether convolutions of 3 x 3 may be done with fewer multiplications.
            Faster, but their weights are held in memory once more, two to four times as
            large; sums differ by some 1e-6 of the largest, and what is infinite or not
            a number spreads to pixels nearby.
        arena_limit: Bytes of working memory a plan may use; None: no limit.
        memory_limit: Bytes that a plan may take with its outputs, or a loop with all
            its results: what sizes that a run finds are held against. None: half of
            the machine's memory.
        max_plans: Plans kept, one for each tuple of input shapes; the one not used for
            longest makes room.
    """

    threads: int | None = None
    cores: str | tuple[int, ...] = "auto"
    precision: str = "float32"
    delegates: tuple[str, ...] = ()
    winograd: bool = True
    arena_limit: int | None = None
    memory_limit: int | None = None
    max_plans: int = 16

    def check(self) -> None:
        """Raise ``ConfigError`` where a value cannot be."""
        _check_whole("threads", self.threads, MAX_THREADS)
        _check_whole("arena_limit", self.arena_limit, None)
        _check_whole("memory_limit", self.memory_limit, None)
        _check_whole("max_plans", self.max_plans, None)
        _check_cores(self.cores)
        if not isinstance(self.winograd, bool):
            raise ConfigError(f"winograd={self.winograd!r}: want True or False")
        if self.precision not in PRECISIONS:
            raise ConfigError(
                f"precision={self.precision!r}: want one of {', '.join(PRECISIONS)}"
            )
        if not isinstance(self.delegates, tuple | list) or not all(
            isinstance(name, str) for name in self.delegates
        ):
            raise ConfigError(f"delegates={self.delegates!r}: want a tuple of names")


def chosen(config: object) -> SessionConfig:
    """What a session was given: ``None`` stands for the defaults.

    Raises:
        ConfigError: It is no configuration.
    """
    if config is None:
        return SessionConfig()
    if not isinstance(config, SessionConfig):
        raise ConfigError(
            f"config: got {type(config).__name__}; want a SessionConfig, as"
            " SessionConfig(threads=2)"
        )
    return config


def _check_whole(name: str, value: object, largest: int | None) -> None:
    if value is None and name != "max_plans":
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 1 or (largest is not None and value > largest):  # type: ignore[operator]  # whole says it is an int
        upper = f"from 1 to {largest}" if largest else "of at least 1"
        raise ConfigError(f"{name}={value!r}: want a whole number {upper}")


def _check_cores(cores: object) -> None:
    if isinstance(cores, str):
        if cores not in CORES:
            raise ConfigError(
                f"cores={cores!r}: want one of {', '.join(CORES)}, or CPU ids"
            )
        return
    ids = cores if isinstance(cores, tuple) else ()
    whole = all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in ids)
    if not ids or not whole or len(set(ids)) != len(ids):
        raise ConfigError(f"cores={cores!r}: want a tuple of different CPU ids")
