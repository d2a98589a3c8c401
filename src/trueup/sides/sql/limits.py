"""How much a side may ask of its database: connections at a time, seconds for a statement, share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from trueup.errors import ConfigError

CONNECTIONS: Final = 2
# A side's pool has room for so many, and for those of scans.
CONNECTIONS_MAX: Final = 12
# A statement is given at least so long: some servers take nothing finer.
_TIMEOUT_MIN_S: Final = 0.001
# Nobody is served by a rest of hours after one long statement.
_REST_MAX_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a side's declaration allows.

    connections: statements of one comparison at a time, where several connections can see one instant.
    timeout_s: after so many seconds the server ends a statement; None for the server's own limit.
    throttle: the share of the time, above 0 and at most 1, in which a connection may work; after each answer it
    rests for the remainder. Raises ConfigError for what can't be meant.
    """

    connections: int = CONNECTIONS
    timeout_s: float | None = None
    throttle: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.connections <= CONNECTIONS_MAX:
            raise ConfigError(
                f"connections can't be {self.connections}.", hint=f"It is a number from 1 to {CONNECTIONS_MAX}."
            )
        if self.timeout_s is not None and not _TIMEOUT_MIN_S <= self.timeout_s < float("inf"):
            raise ConfigError(f"timeout_s can't be {self.timeout_s:g}.", hint="It is a number of seconds, such as 60.")
        if self.throttle is not None and not 0 < self.throttle <= 1:
            raise ConfigError(
                f"throttle can't be {self.throttle:g}.",
                hint="It is a share of the time: 0.25 lets a connection work a quarter of it.",
            )

    @property
    def timeout_ms(self) -> int | None:
        """The same in milliseconds."""
        return None if self.timeout_s is None else max(1, round(self.timeout_s * 1000))

    @property
    def gentle(self) -> bool:
        """Whether connections have to rest."""
        return self.throttle is not None and self.throttle < 1

    @contextmanager
    def working(self, rest: Callable[[float], object] = time.sleep) -> Iterator[None]:
        """One piece of a connection's work, and the rest after it. rest: waits so many seconds."""
        started = time.monotonic()
        yield
        if self.throttle is not None and self.gentle:
            worked_s = time.monotonic() - started
            rest(min(worked_s * (1 / self.throttle - 1), _REST_MAX_S))


UNLIMITED: Final = Limits()
