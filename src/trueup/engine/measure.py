"""Measuring: how a project is, as numbers, from its state store alone. No side is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from trueup.engine.report import Status
from trueup.engine.systems import SystemStatus
from trueup.errors import ConfigError, did_you_mean
from trueup.model import metric as m
from trueup.model.condition import Condition
from trueup.model.metric import Count, Merge, Metric
from trueup.model.names import definition_of
from trueup.model.presence import Presence
from trueup.model.run import OPEN

Values = dict[Count, float]
# Whether each pair is counted by itself, clients of one definition are summed up, or nothing is counted.
PAIRS, DEFINITIONS, OFF = "pairs", "definitions", "off"
WAYS: Final = (PAIRS, DEFINITIONS, OFF)
_Sample = tuple[Metric, tuple[str, ...], float]
_BY_NAME: Final[Mapping[str, Metric]] = {each.name: each for each in m.METRICS}
_MERGED: Final[Mapping[Merge, Callable[[float, float], float]]] = {
    Merge.SUM: float.__add__,
    Merge.LEAST: min,
    Merge.MOST: max,
}


def naming_of(way: str) -> Callable[[str], str]:
    """What pairs are called in labels; ConfigError where there is no such way."""
    if way not in WAYS:
        raise ConfigError(f"metrics is {way!r}.", hint=did_you_mean(way, WAYS, "Ways"))
    return _definition if way == DEFINITIONS else str


def _definition(name: str) -> str:
    """Without the client; which of its two systems it is stays: `orders@acme:authority` is `orders:authority`."""
    return definition_of(name) + ":".join(["", *name.partition("@")[2].split(":")[1:]])


def measured(
    statuses: Sequence[Status],
    conditions: Sequence[Condition],
    workers: Sequence[Presence],
    letters: Mapping[str, int],
    tallies: Mapping[Count, float],
    now_us: int,
    naming: Callable[[str], str] = str,
) -> Values:
    """Every number that is known of the project. Labels hold nothing but names that it declares, and fixed words.

    conditions: all of them. letters: by source. tallies: of all processes. now_us: by the store's clock. naming: what a
    pair or system is called in a label; those of one name become one, as `Metric.merge` says.
    """
    values: Values = {}
    pairs = {status.pair for status in statuses}
    for metric, labels, value in (
        *_tallied(tallies, pairs, {*letters, ""}),
        *(each for status in statuses for each in _of_pair(status)),
        *(each for system in _systems(statuses) for each in _of_system(system)),
        *_of_store(conditions, workers, letters, len(pairs), now_us),
    ):
        named = metric.count(*(naming(each) if name in _NAMED else each for name, each in _labelled(metric, labels)))
        known = values.get(named)
        values[named] = float(value) if known is None else _MERGED[metric.merge](known, float(value))
    return values


_NAMED: Final = {"pair", "system", "subject"}


def _labelled(metric: Metric, labels: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(name, value) of labels; what stands behind the declared ones has no name."""
    for at, value in enumerate(labels):
        yield (metric.labels[at] if at < len(metric.labels) else ""), value


def _tallied(tallies: Mapping[Count, float], pairs: Collection[str], sources: Collection[str]) -> Iterator[_Sample]:
    """What was counted, of pairs and sources that are still declared."""
    declared = {"pair": pairs, "source": sources}
    for (name, labels), total in tallies.items():
        metric = _BY_NAME.get(name)
        if metric is not None and labels[0] in declared[metric.labels[0]]:
            yield metric, labels, total


def _of_pair(status: Status) -> Iterator[_Sample]:
    pair, run = status.pair, status.last_run
    for state in ("idle", "pending", "parked"):
        yield m.RECORDS, (pair, state), status.counts.get(state, 0)
    yield m.UNDER_WAY, (pair,), status.counts.get("leased", 0)
    yield m.CASES, (pair,), status.cases
    yield m.ADOPTED, (pair,), status.adopted
    yield m.RUN_UNDER_WAY, (pair,), run is not None and run.ended == OPEN and bool(run.owner)
    for kind, number in status.drifts.items():
        yield m.DRIFT, (pair, kind), number
    for side, number in status.records.items():
        yield m.SIDE_RECORDS, (pair, side), number
    for side, ahead_us in status.skew_us.items():
        yield m.SIDE_CLOCK, (pair, side), ahead_us / 1e6
    for metric, at_us in (
        (m.OLDEST_PENDING, status.oldest_due_us), (m.OLDEST_CASE, status.oldest_case_us),
        (m.LAST_EVENT, status.last_event_us),
    ):  # fmt: skip
        if at_us is not None:
            yield metric, (pair,), at_us / 1e6
    for what, at_us in status.successes.items():
        yield m.LAST_SUCCESS, (pair, what), at_us / 1e6
    for schedule in status.schedules:
        if schedule.due_us is not None:
            yield m.DUE, (pair, schedule.what), schedule.due_us / 1e6
    if status.windows is not None:
        yield m.WINDOWS, (pair,), len(status.windows.waiting)


def _systems(statuses: Sequence[Status]) -> Sequence[SystemStatus]:
    """Each system once, however many pairs call it."""
    return list({system.system: system for status in statuses for system in status.systems}.values())


def _of_system(system: SystemStatus) -> Iterator[_Sample]:
    name = system.system
    yield m.PAUSED, (name,), system.paused
    yield m.TROUBLED, (name,), system.troubled
    yield m.CALLS, (name,), system.under_way
    for spending in system.spending:
        yield m.BUDGET_USED, (name, spending.limit), spending.spent
        yield m.BUDGET_LIMIT, (name, spending.limit), spending.most
    if system.left is not None:
        yield m.BUDGET_LEFT, (name,), system.left


def _of_store(
    conditions: Sequence[Condition],
    workers: Sequence[Presence],
    letters: Mapping[str, int],
    pairs: int,
    now_us: int,
) -> Iterator[_Sample]:
    found: Counter[tuple[Any, ...]] = Counter((each.name, each.severity.value, each.subject) for each in conditions)
    for labels, number in found.items():
        yield m.CONDITION, labels, number
    alive = Counter(each.alive(now_us) for each in workers if each.stays)
    yield m.WORKERS, ("alive",), alive[True]
    yield m.WORKERS, ("silent",), alive[False]
    for source, number in letters.items():
        yield m.LETTERS, (source,), number
    yield m.PAIRS, (), pairs
    yield m.LOOK_AT, (), now_us / 1e6
