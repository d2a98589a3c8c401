"""What the archive, dead letters and other small tables ask of a database, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from trueup.ports import Clock

_T = TypeVar("_T")


class Session(Protocol):
    """One transaction. Placeholders are `?`, values are None, numbers, texts and bytes."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Any:
        """A cursor with `fetchone`, `fetchall` and `rowcount`."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """The statement for each of the rows, in order."""


class Storage(Protocol):
    """A database that holds our tables."""

    def read(self, work: Callable[[Any], _T]) -> _T:
        """What `work` answers, given a session; every statement sees the latest commit."""

    def write(self, work: Callable[[Any], _T], *, repeatable: bool = True) -> _T:
        """The same in one transaction; repeatable: it does no harm if it is done twice."""

    def inserted(self, session: Any, statement: str, parameters: Sequence[Any]) -> int:
        """The `number` that an INSERT gave its row."""

    def now_us(self, session: Any, clock: Clock | None) -> int:
        """The time by this clock, or by the storage's own."""

    def close(self) -> None:
        """Gives back connections."""
