"""What the archive, dead letters and other small tables ask of a database, whichever it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from trueup.ports import Clock
from trueup.stores.base import batches_of

ROWS_MAX: Final = 2**62
_BATCH: Final = 500
_T = TypeVar("_T")


class Session(Protocol):
    """One transaction. Placeholders are `?`, values are None, numbers, texts and bytes."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Any:
        """A cursor with `fetchone`, `fetchall` and `rowcount`."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """The statement for each of the rows, in order."""


class Storage(Protocol):
    """A database that holds our tables.

    for_update, skip_locked: what ends a SELECT whose rows nobody else may change before the transaction ends; with
    the second it passes over rows that another transaction has.
    """

    for_update: str
    skip_locked: str

    def read(self, work: Callable[[Any], _T]) -> _T:
        """What `work` answers, given a session; every statement sees the latest commit."""

    def write(self, work: Callable[[Any], _T], *, repeatable: bool = True, durable: bool = True) -> _T:
        """The same in one transaction; repeatable: it does no harm if it is done twice.

        durable: it is on disk when this returns; without, a crash of the machine (not of a program) may lose it.
        """

    def inserted(self, session: Any, statement: str, parameters: Sequence[Any]) -> int:
        """The `number` that an INSERT gave its row."""

    def now_us(self, session: Any, clock: Clock | None) -> int:
        """The time by this clock, or by the storage's own."""

    def close(self) -> None:
        """Gives back connections."""


def marks(values: Sequence[Any]) -> str:
    """A placeholder for each of the values."""
    return ", ".join("?" * len(values))


def batches(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """As many at once as a statement takes placeholders."""
    return batches_of(values, _BATCH)


def as_json(value: Mapping[str, Any] | Sequence[Any] | None) -> str | None:
    """As it is kept in a column of text."""
    if value is None:
        return None
    plain = dict(value) if isinstance(value, Mapping) else list(value)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def storable(text: str) -> str:
    """The text without what no database takes: NUL, and halves of characters."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
