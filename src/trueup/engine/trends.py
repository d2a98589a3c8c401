"""Drift over time: what one run found is counted by cause and field, and what recurs is asked about once.

A question about a defect is about the pair: a field drifts run after run, whichever the records. It closes itself when
a run that looks at everything finds none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from trueup.engine import journal
from trueup.engine.hidden import shown_key
from trueup.engine.report import Report
from trueup.model.case import DEFECT, HELD, UNLIKE, Case, CaseFilter
from trueup.model.drift import Drift
from trueup.model.moment import moment_text
from trueup.model.plan import ItemState, PlanItem
from trueup.model.record import key_parts
from trueup.model.redaction import REDACTED
from trueup.model.run import CHANGED, REPORT, Run
from trueup.model.trend import EVERY, EXAMPLES_MAX, RECORD, Bucket, RunDrift, Streak, Tally, streaks
from trueup.pair import Pair
from trueup.ports import Archive

NAME: Final = "defect"
# Before a pair is adopted everything differs, and nobody knows why.
_UNCOUNTED: Final = frozenset({"dry run", REPORT, "adopt"})
# Where to look, by cause, of those in which both sides have the record.
_LOOK: Final[Mapping[str, str]] = {
    Drift.BEHIND: "The authority changed it and the replica did not: look at what sends its events, and at the handler",
    Drift.EDITED: "The replica's differs from what was written: look at who or what edits it there",
    Drift.CONFLICT: "Both sides changed it: look at who writes it at the replica",
    Drift.UNKNOWN: "The sides were never seen to agree on it: look at who else writes it",
    Drift.UNLIKE: "It differs although both sides are as we left them: look at handler and mapping",
    Drift.FLAPPING: "A repair does not hold: look at handler and mapping, and at who writes it back",
}


# ── as a run closes ──────────────────────────────────────────────────────────────────────────────────


def note(pair: Pair, archive: Archive, run: Run, report: Report) -> RunDrift | None:
    """What the run found, to be stored as it closes; None where it tells nothing about drift.

    Opens a case about what is a defect with this run, and closes those of which it found none. May be repeated.
    """
    compared = max(report.counts["left"], report.counts["right"])
    if run.what in _UNCOUNTED or "confirm" not in run.done or not (compared or report.plan):
        return None
    asked = archive.cases(pair.name)
    tallies = tally(pair, report.plan, {each.key for each in asked if each.opened_us < run.started_us})
    whole = compared > 0 and run.what != CHANGED and not run.what.startswith("window ")
    drift = RunDrift(pair.name, run.number, run.started_us, compared, whole, tallies)
    drift = replace(drift, streaks=streaks(archive.streaks(pair.name), drift, pair.defects))
    _ask(pair, archive, run, drift, {each.key for each in asked})
    return drift


def tally(pair: Pair, plan: Iterable[PlanItem], asked: set[str]) -> tuple[Tally, ...]:
    """What a plan holds, by cause and field; what a person accepted does not count.

    asked: keys of cases from before the run. What still waits for an answer did not drift anew.
    """
    records: Counter[tuple[str, str]] = Counter()
    waiting: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[str]] = {}
    for item in plan:
        if item.state is ItemState.ACCEPTED:
            continue
        cause = str(item.drift)
        places = [(cause, RECORD), *((cause, name) for name in _named(item))]
        if _waits(item, asked):
            waiting.update(places)
            continue
        records.update(places)
        for place in places:
            if len(shown := examples.setdefault(place, [])) < EXAMPLES_MAX:
                shown.append(item.key)
    return tuple(
        Tally(*place, records[place], waiting[place], tuple(shown_key(pair, key) for key in examples.get(place, ())))
        for place in sorted({*records, *waiting})
    )


def _named(item: PlanItem) -> Sequence[str]:
    """The fields that drifted; none where a side lacks the record, or where it is not known which copy was seen."""
    return item.fields if item.drift in _LOOK and item.authority is not None and item.replica is not None else ()


def _waits(item: PlanItem, asked: set[str]) -> bool:
    if item.state is ItemState.HELD:
        return HELD in asked
    return item.state is ItemState.ASKED and (UNLIKE if item.drift is Drift.UNLIKE else item.key) in asked


def _ask(pair: Pair, archive: Archive, run: Run, drift: RunDrift, asked: set[str]) -> None:
    rule = pair.defects
    now = [each for each in drift.streaks if rule.asks(each) or (rule.names(each) and case_key(each) in asked)]
    # A streak that did not grow with this run says nothing new.
    cases = [_case(pair, run, each) for each in now if each.run == run.number]
    if cases:
        journal.open_cases(pair, archive, cases)
    if drift.whole:
        found = {case_key(each) for each in drift.tallies}
        gone = [key for key in asked if key.startswith(DEFECT) and key not in found]
        if gone:
            journal.close_cases(pair, archive, sorted(gone), f"run {run.number} found none of it")


def _case(pair: Pair, run: Run, streak: Streak) -> Case:
    opened_us = run.ended_us if run.ended_us is not None else run.started_us
    return Case(
        pair.name, case_key(streak), NAME, opened_us, fields=(streak.field,), run=run.number, cause=said(streak)
    )


def case_key(about: Streak | Tally) -> str:
    """What stands in the place of a key in the case about it."""
    return f"{DEFECT}{about.cause} {about.field}"


def said(streak: Streak) -> str:
    """A defect in two sentences; of the records it names keys only."""
    keys = [key_parts(key) for key in streak.examples]
    shown = [", ".join(str(part) for part in parts) for parts in keys if any(part != REDACTED for part in parts)]
    examples = f", such as {'; '.join(shown)}" if shown else ""
    return f"{recurring(streak)}{examples}. {_LOOK[streak.cause]}"


def recurring(streak: Streak) -> str:
    """What drifts run after run, without keys and without a full stop."""
    return (
        f"{streak.field} is {streak.cause} in {streak.runs:,} runs running, since {moment_text(streak.since_us)}: "
        f"{streak.records:,} of {streak.compared:,} records ({streak.share:.2%}) in the last"
    )


# ── afterwards ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Trend:
    """The drift of one pair over time. buckets: see `trueup.model.trend.Bucket`.

    streaks: what drifts run after run. cases: numbers of the open cases about defects, by (cause, field). now_us: by
    the store's clock.
    """

    pair: str
    buckets: Sequence[Bucket]
    streaks: Sequence[Streak]
    cases: Mapping[tuple[str, str], int]
    now_us: int

    @property
    def every(self) -> list[Bucket]:
        """All runs, whatever they found."""
        return [each for each in self.buckets if each.cause == EVERY]

    def by_place(self) -> dict[tuple[str, str], list[Bucket]]:
        """What was found, by (cause, field): the most frequent cause first, of each its records, then its fields."""
        found: dict[tuple[str, str], list[Bucket]] = {}
        for each in self.buckets:
            if each.cause != EVERY:
                found.setdefault((each.cause, each.field), []).append(each)
        sums = {place: sum(each.records for each in several) for place, several in found.items()}

        def rank(place: tuple[str, str]) -> tuple[int, str, bool, int, str]:
            cause, field = place
            return -sums.get((cause, RECORD), 0), cause, field != RECORD, -sums[place], field

        return {place: found[place] for place in sorted(found, key=rank)}

    def as_json(self) -> dict[str, Any]:
        """The trend as plain JSON values; of all runs `drift`, in order of time."""
        return {
            "pair": self.pair,
            "runs": [_bucket(each) for each in self.every],
            "drift": [
                {"cause": cause, "field": field or None, "records": sum(each.records for each in several),
                 "case": self.cases.get((cause, field)), "buckets": [_bucket(each) for each in several]}
                for (cause, field), several in self.by_place().items()
            ],
            "streaks": [
                {**asdict(each), "share": each.share, "case": self.cases.get((each.cause, each.field))}
                for each in self.streaks
            ],
        }  # fmt: skip


def _bucket(each: Bucket) -> dict[str, Any]:
    return {
        "length": str(each.length), "from_us": each.from_us, "runs": each.runs, "records": each.records,
        "compared": each.compared,
    }  # fmt: skip


def trend_of(archive: Archive, pair: str, now_us: int) -> Trend:
    """The drift of a pair over time, from the state store alone."""
    cases: dict[tuple[str, str], int] = {}
    for case in archive.cases(pair, CaseFilter(drift=NAME)):
        cause, _, field = case.key.removeprefix(DEFECT).partition(" ")
        cases[cause, field] = case.number
    return Trend(pair, archive.trend(pair), archive.streaks(pair), cases, now_us)
