"""Which of the waiting records are claimed next."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Final, NamedTuple

from trueup.model.change import Origin

LOWEST_SHARE: Final = 10


class Waiting(NamedTuple):
    """A due record, as far as its place in the queue is concerned; smaller is more urgent."""

    priority: int
    ready_at: int
    queued_at: int
    pair: str
    key: str


def lowest_share(limit: int) -> int:
    """How many of `limit` claims belong to the lowest priority that waits, however busy the others are."""
    return limit // LOWEST_SHARE


def most_urgent(waiting: Iterable[Waiting], limit: int, others: int | None = None) -> list[Waiting]:
    """At most `limit` of the due records: by priority, fair between pairs, the longest due first.

    waiting: at least the first `limit` of each pair, and the first `lowest_share(limit)` of each pair's
    lowest priority. others: at most so many that are no events.
    """
    ordered = _in_turn(sorted(set(waiting)))
    if others is not None:
        events = [each for each in ordered if each.priority == Origin.EVENT]
        ordered = events + ordered[len(events) : len(events) + others]
    if len(ordered) <= limit:
        return ordered
    lowest = ordered[-1].priority
    urgent = [each for each in ordered if each.priority != lowest]
    low = [each for each in ordered if each.priority == lowest]
    low = low[: max(lowest_share(limit), limit - len(urgent))]
    return urgent[: limit - len(low)] + low


def _in_turn(ordered: list[Waiting]) -> list[Waiting]:
    """Within a priority the pairs take turns, so that a long queue of one can't hold up the others."""
    turns: dict[tuple[str, int], count[int]] = {}
    placed = [(each.priority, next(turns.setdefault((each.pair, each.priority), count())), each) for each in ordered]
    return [each for _, _, each in sorted(placed)]
