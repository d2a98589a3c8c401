"""Schedules for people: when each is due, what was missed, who holds it, and how a run that was due ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trueup.cli.terminal import clock, counted, cut, number, paint, say, width
from trueup.model.duration import duration_text

if TYPE_CHECKING:
    from trueup.engine.report import Status
    from trueup.engine.scheduler import Performed
    from trueup.engine.schedules import ScheduleStatus


def lines(status: Status) -> Iterator[str]:
    """A line for each schedule of the pair."""
    for each in status.schedules:
        yield f"{each.what} {each.rule}: {_state(each, status.now_us)}{_counts(each)}"


def _state(each: ScheduleStatus, now_us: int) -> str:
    if each.paused_by is not None:
        return f"paused by {each.paused_by}{': ' if each.reason else ''}{each.reason}"
    if each.due_us is None:
        return "waits for trueup serve"
    if each.under_way and each.started_us is not None:
        return f"under way for {duration_text(max(0, now_us - each.started_us))}"
    if each.overdue:
        return f"overdue for {duration_text(now_us - each.due_us)}{_failing(each)}"
    if each.failures:
        return f"due{_failing(each)}"
    return "due now" if each.due_us <= now_us else f"due {clock(each.due_us)}"


def _failing(each: ScheduleStatus) -> str:
    if not each.failures:
        return ""
    again = "" if each.retry_us is None else f", tries again {clock(each.retry_us)}"
    return f", failed {counted(each.failures, 'time')}{again}"


def _counts(each: ScheduleStatus) -> str:
    parts = [f"{number(count)} {word}" for word, count in (("missed", each.missed), ("refused", each.refused)) if count]
    return f"   {', '.join(parts)}" if parts else ""


def show(found: Sequence[Status]) -> None:
    """The schedules of these pairs, a line each."""
    size = max(len(each.pair) for each in found)
    shown = 0
    for status in found:
        for each, line in zip(status.schedules, lines(status), strict=True):
            text = cut(f"{status.pair:<{size}}  {line}", width())
            say(paint(text, "yellow") if each.overdue or each.failures else text)
            shown += 1
    if not shown:
        say('no pair has a schedule: declare one, such as sweep="10m" or compare="0 3 * * *"')


def as_json(found: Sequence[Status]) -> list[dict[str, Any]]:
    """The schedules as plain JSON values."""
    return [{"pair": status.pair, **asdict(each)} for status in found for each in status.schedules]


def ended(performed: Performed) -> str:
    """How a run that was due ended, in one line."""
    name = f"{performed.pair}: {performed.what}"
    late = f", {duration_text(performed.late_us)} late" if performed.late_us >= 1_000_000 else ""
    if performed.passed:
        late += f", stands for {number(performed.passed)} missed times"
    if performed.how == "failed":
        return f"{name} failed{late}: {performed.error}"
    if performed.how == "refused":
        return f"{name} waits: another run of the pair is under way"
    if performed.how == "stopped":
        return f"{name} stopped; the next scheduler goes on with it"
    return f"{name} in {duration_text(performed.took_us)}{late}{_found(performed)}"


def _found(performed: Performed) -> str:
    if performed.report is None:
        return ""
    counts = performed.report.counts
    found = [("changed", counts["changed"]), ("to repair", counts["repair"]), ("to review", counts["review"])]
    said = ", ".join(f"{number(count)} {word}" for word, count in found if count)
    return f": {said}" if said else ""


def ended_json(performed: Performed) -> dict[str, Any]:
    """The same as plain JSON values."""
    report = performed.report
    return {
        "pair": performed.pair,
        "what": performed.what,
        "how": performed.how,
        "run": None if report is None else report.number,
        "late_us": performed.late_us,
        "took_us": performed.took_us,
        "passed": performed.passed,
        "error": performed.error,
    }
