"""Who watches: what happened is counted, and what one request led to is traced. Neither changes what is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Final, Protocol

from trueup.model.change import Change, Outcome
from trueup.model.metric import Count
from trueup.model.row import Finish


class Observer(Protocol):
    """Is told what happened, after it did, by whichever thread did it. Raises nothing and is soon done."""

    def offered(self, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
        """The ledger judged these changes, in this order."""

    def finished(self, finishes: Sequence[Finish], accepted: Sequence[bool], now_us: int) -> None:
        """These jobs ended, by the store's clock; accepted: whether the fence still held."""

    def ran(self, pair: str, what: str, outcome: str, seconds: Mapping[str, float]) -> None:
        """A run ended (`done`, `failed`, `stopped`, `refused`). seconds: by phase, as far as it came."""

    def received(self, source: str, status: int) -> None:
        """A delivery was answered. source: empty for one that is not declared."""


class Nobody:
    """Does not watch."""

    def offered(self, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
        """Nothing."""

    def finished(self, finishes: Sequence[Finish], accepted: Sequence[bool], now_us: int) -> None:
        """Nothing."""

    def ran(self, pair: str, what: str, outcome: str, seconds: Mapping[str, float]) -> None:
        """Nothing."""

    def received(self, source: str, status: int) -> None:
        """Nothing."""


class Tallies(Protocol):
    """Counts of what all processes of a store did, from its beginning."""

    def tally(self, added: Mapping[Count, float]) -> None:
        """Adds to each of these counts. Where the answer to a commit is lost it may be added twice."""

    def tallies(self) -> dict[Count, float]:
        """Every count that was ever added to."""


Step = AbstractContextManager[str | None]


class Tracing(Protocol):
    """What was done because of one request, as spans of one trace. Raises nothing of its own."""

    def received(self, source: str, traceparent: str | None) -> AbstractContextManager[None]:
        """A delivery is being taken. traceparent: as its sender gave it (W3C Trace Context)."""

    def span(
        self, name: str, pair: str, traces: Iterable[str | None] | None = None
    ) -> AbstractContextManager[str | None]:
        """A step for one or more records; gives the traceparent by which somebody else goes on, None where untraced.

        traces: of the records that it is about, asked for only where it is traced; by default those of the step that
        it is part of.
        """


_NOTHING: Final = nullcontext()


class Untraced:
    """Traces nothing."""

    def received(self, source: str, traceparent: str | None) -> AbstractContextManager[None]:
        """Nothing."""
        return _NOTHING

    def span(
        self, name: str, pair: str, traces: Iterable[str | None] | None = None
    ) -> AbstractContextManager[str | None]:
        """Nothing."""
        return _NOTHING


NOBODY: Final = Nobody()
UNTRACED: Final = Untraced()
# Headers that calls to other systems carry now, so that their part of a trace joins ours.
OUTGOING: Final[ContextVar[Mapping[str, str]]] = ContextVar("trueup_outgoing", default={})  # noqa: B039  never changed
