"""What is wrong now: every condition of a pair, and of the store, from what its status has gathered already.

Nothing is asked of a side here. Each rule answers at most a few conditions; `trueup.model.thresholds` says from when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from trueup import errors
from trueup.engine.clocks import SKEW
from trueup.engine.gate import ASKED
from trueup.engine.report import Status
from trueup.engine.schedules import ScheduleStatus
from trueup.engine.systems import SystemStatus
from trueup.engine.trends import case_key, recurring
from trueup.model.anchor import Anchored
from trueup.model.case import DEFECT, HELD, Case
from trueup.model.condition import STATE, WORKERS, Condition, Severity
from trueup.model.duration import duration_text
from trueup.model.moment import moment_text
from trueup.model.presence import Presence
from trueup.model.pulse import Pulse
from trueup.model.run import FAILED, OPEN, Run
from trueup.model.thresholds import Thresholds
from trueup.model.trend import Streak
from trueup.pair import Pair

WARNING, CRITICAL = Severity.WARNING, Severity.CRITICAL
# Comparisons that say how many records are usual, and from how many on a share means anything.
COMPARED: Final = 20
USUAL_MIN: Final = 20
PINGS_MIN: Final = 3
ANCHORS_MIN: Final = 3
ROWS_MIN: Final = 10_000
_OURS: Final = {name for name, each in vars(errors).items() if isinstance(each, type)}


@dataclass(frozen=True, slots=True)
class Seen:
    """What conditions are derived from, beside the status.

    runs: the newest first. compares: of them and before, the newest that looked at everything. workers: those that
    live and those that died lately. streaks: what drifts run after run, where a case asks about any of it.
    """

    runs: Sequence[Run] = ()
    compares: Sequence[Run] = ()
    cases: Sequence[Case] = ()
    pulse: Pulse = field(default_factory=lambda: Pulse(""))
    workers: Sequence[Presence] = ()
    streaks: Sequence[Streak] = ()


def conditions_of(pair: Pair, status: Status, seen: Seen) -> list[Condition]:
    """What is wrong with a pair, the worst first."""
    found = [
        *_stuck(pair, status, seen),
        *_overdue(pair, status, seen),
        *_trouble(pair, status, seen),
        *_few(pair, seen),
        *_waiting_for_people(pair, status, seen),
        *_defects(pair, seen),
        *_waiting_for_work(pair, status, seen),
        *_systems(pair, status),
        *_silent(pair, status, seen),
        *_clocks(pair, seen),
        *_growth(pair, status, seen),
    ]
    return by_severity(found)


def by_severity(found: Iterable[Condition]) -> list[Condition]:
    """Each once, the worst first."""
    once: dict[str, Condition] = {}
    for each in found:
        known = once.get(each.ident)
        if known is None or (known.severity is WARNING and each.severity is CRITICAL):
            once[each.ident] = each
    return sorted(once.values(), key=lambda each: (each.severity is not CRITICAL, each.name, each.subject))


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────


def _stuck(pair: Pair, status: Status, seen: Seen) -> Iterator[Condition]:
    last = status.last_run
    if last is None or last.ended != OPEN:
        return
    command = f"trueup run {pair.name}"
    silent_us, limits = status.now_us - last.lease_until_us, pair.health
    if last.owner and silent_us > limits.stuck_us:
        since = moment_text(last.lease_until_us)
        cause = f"run {last.number} ({last.what}) has given no sign of life since {since}{_by(last)}"
        yield Condition("stuck", pair.name, CRITICAL, cause, command, last.lease_until_us)
    elif last.owner and silent_us < 0 and status.now_us - last.started_us > limits.run_us:
        cause = f"run {last.number} ({last.what}) has been under way since {moment_text(last.started_us)}{_by(last)}"
        yield Condition("stuck", pair.name, WARNING, cause, f"trueup status {pair.name}", last.started_us)


def _by(run: Run) -> str:
    """Who works on a run, as far as the name of its holder tells."""
    host, _, rest = run.owner.partition(":")
    pid = rest.partition(":")[0]
    return f"; its process is {pid} on {host}" if pid.isdigit() else ""


def _overdue(pair: Pair, status: Status, seen: Seen) -> Iterator[Condition]:
    last = status.last_run
    # A run whose process stands still is stuck, or will be: one trouble, one condition.
    if last is not None and last.ended == OPEN and last.owner and last.lease_until_us < status.now_us:
        return
    late = [(since_us, each) for each in status.schedules if (since_us := _late_since(pair, each, status.now_us))]
    if late:
        since_us, first = min(late, key=lambda item: item[0])
        cause = f"its {first.what} ({first.rule}) was due {moment_text(since_us)} and nobody starts it"
        yield Condition("overdue", pair.name, CRITICAL, cause, "trueup serve --only scheduler", since_us)


def _late_since(pair: Pair, each: ScheduleStatus, now_us: int) -> int | None:
    """Since when a schedule is overdue; None where it is not. One that failed is late from its next try on."""
    if each.due_us is None or not each.may_start:
        return None
    due_us = each.due_us if each.retry_us is None else max(each.due_us, each.retry_us)
    allowed_us = each.overdue_after_us if pair.health.overdue_us is None else pair.health.overdue_us
    return due_us if now_us - due_us > allowed_us else None


def _trouble(pair: Pair, status: Status, seen: Seen) -> Iterator[Condition]:
    """Systems that do not answer, and runs that fail: for a pair one of both."""
    limits, now_us = pair.health, status.now_us
    for system in status.systems:
        since_us = system.since_us if system.troubled and not _asked(system) else None
        if since_us is not None and now_us - since_us > limits.trouble_us:
            cause = f"{system.system} is in trouble: {_clean(system.reason)}"
            yield Condition("unreachable", pair.name, CRITICAL, cause, "trueup doctor", since_us)
            return
    failed = _failed(pair, seen.runs)
    if failed is None:
        return
    run, since_us = failed
    if now_us - since_us <= limits.trouble_us:
        return
    kind, said = _error(run.error or "")
    unreachable = kind == errors.Unreachable.__name__
    name, command = ("unreachable", "trueup doctor") if unreachable else ("failing", f"trueup run {pair.name}")
    yield Condition(name, pair.name, CRITICAL, f"its {run.what} fails: {said}", command, since_us)


def _failed(pair: Pair, runs: Sequence[Run]) -> tuple[Run, int] | None:
    """The newest run that failed and after which none of its kind did better, and since when they fail."""
    ended = [run for run in runs if run.ended != OPEN]
    for at, run in enumerate(ended):
        if run.ended != FAILED or (at and run.what not in pair.schedules):
            continue
        same = [each for each in ended if each.what in (run.what, "run")]
        if same[0] is not run:
            continue
        first = run
        for each in same:
            if each.ended != FAILED:
                break
            first = each
        return run, first.ended_us or first.started_us
    return None


def _error(said: str) -> tuple[str, str]:
    """(type, what may be shown) of what a run that failed says. What is not ours may hold values of records."""
    kind, _, text = said.partition(": ")
    if not text:
        return "", said
    return kind, _clean(text) if kind in _OURS else kind


def _clean(text: str) -> str:
    """A sentence on one line, without its full stop."""
    return " ".join(text.split()).rstrip(".")


def _few(pair: Pair, seen: Seen) -> Iterator[Condition]:
    """Comparisons that read far fewer records of a side than those before; what was few is not usual."""
    for role, counted in (("authority", "left"), ("replica", "right")):
        usual: list[int] = []
        few: Run | None = None
        for run in reversed(seen.compares):
            read, normal = run.counts.get(counted, 0), median(usual) if usual else 0
            if usual and ((normal >= USUAL_MIN and read < normal * pair.health.few) or (not read and normal)):
                few = few or run
            else:
                few = None
                usual.append(read)
        if few is None:
            continue
        read = seen.compares[0].counts.get(counted, 0)
        cause = f"the {role} held {read:,} records at the last comparison, and {round(median(usual)):,} before"
        severity = CRITICAL if not read else WARNING
        command = f"trueup run {pair.name} --only compare"
        yield Condition("few-records", pair.name, severity, cause, command, few.started_us)
        return


# ── what waits ───────────────────────────────────────────────────────────────────────────────────────


def _waiting_for_people(pair: Pair, status: Status, seen: Seen) -> Iterator[Condition]:
    for case in seen.cases:
        if case.key == HELD:
            cause = f"a breaker holds a plan: {_clean(case.cause)}"
            command = f"trueup review show {case.number}"
            yield Condition("held", pair.name, CRITICAL, cause, command, case.opened_us)
    oldest = min(seen.cases, key=lambda case: (case.opened_us, case.number), default=None)
    if oldest is not None and status.now_us - oldest.opened_us > pair.health.drift_us:
        cause = f"{_counted(len(seen.cases), 'case')} for a person, the oldest since {moment_text(oldest.opened_us)}"
        yield Condition(
            "old-drift", pair.name, WARNING, cause, f"trueup review show {oldest.number}", oldest.opened_us
        )  # fmt: skip
    parked = status.counts.get("parked", 0)
    if parked and parked >= pair.health.parked:
        cause = "1 record is parked" if parked == 1 else f"{parked:,} records are parked"
        yield Condition("parked", pair.name, WARNING, cause, f"trueup retry {pair.name}")


def _defects(pair: Pair, seen: Seen) -> Iterator[Condition]:
    """What drifts run after run, as long as its case is open: the one that has for the longest, and how many more."""
    asked = [case for case in seen.cases if case.key.startswith(DEFECT)]
    if not asked:
        return
    known = {case_key(each): each for each in seen.streaks}
    first = min(asked, key=lambda case: (case.opened_us, case.number))
    streak = known.get(first.key)
    place = first.key.removeprefix(DEFECT).split(" ", 1)
    said = f"{place[1]} was {place[0]} in run after run" if streak is None else recurring(streak)
    more = f"; {len(asked) - 1:,} more like it" if len(asked) > 1 else ""
    since_us = first.opened_us if streak is None else streak.since_us
    yield Condition("defect", pair.name, WARNING, f"{said}{more}", f"trueup review show {first.number}", since_us)


def _counted(count: int, one: str) -> str:
    return f"1 {one} waits" if count == 1 else f"{count:,} {one}s wait"


def _waiting_for_work(pair: Pair, status: Status, seen: Seen) -> Iterator[Condition]:
    pending, due_us = status.counts.get("pending", 0), status.oldest_due_us
    if not pending:
        return
    why, command = _why_it_waits(pair, status, seen)
    if pending >= pair.health.backlog:
        before = next((run for run in seen.runs if "wanted" in run.counts), None)
        grown = "" if before is None else f", {before.counts['wanted']:,} at {moment_text(before.started_us)}"
        yield Condition("backlog", pair.name, WARNING, f"{pending:,} records wait{grown}; {why}", command)
    if due_us is not None and status.now_us - due_us > pair.health.pending_us:
        cause = f"{_counted(pending, 'record')}, the oldest since {moment_text(due_us)}; {why}"
        yield Condition("old-pending", pair.name, WARNING, cause, command, due_us)


def _why_it_waits(pair: Pair, status: Status, seen: Seen) -> tuple[str, str]:
    """Why records wait, as far as the state store shows it, and what to type."""
    for system in status.systems:
        if system.paused:
            return f"{system.system} is paused", system.next_command or f"trueup status {pair.name}"
        if used := next((each.limit for each in system.spending if each.used_up), None):
            return f"{used} of {system.system} is used up", f"trueup status {pair.name}"
    if not any(each.stays and each.alive(status.now_us) and pair.name in each.pairs for each in seen.workers):
        return "no worker is alive", "trueup worker"
    return "workers are alive, and slower than what comes", f"trueup status {pair.name}"


# ── systems, events, clocks, the ledger ──────────────────────────────────────────────────────────────


def _asked(system: SystemStatus) -> bool:
    """Whether it is no trouble: the system asked for a pause."""
    return system.reason.endswith(ASKED)


def _systems(pair: Pair, status: Status) -> Iterator[Condition]:
    limits, now_us = pair.health, status.now_us
    for each in status.systems:
        held = each.paused and (not each.troubled or _asked(each))
        if held and each.since_us is not None and now_us - each.since_us > limits.paused_us:
            why = f": {_clean(each.reason)}" if each.reason else ""
            cause = f"{each.system} has been paused since {moment_text(each.since_us)} by {each.paused_by}{why}"
            command = each.next_command or f"trueup resume {each.system}"
            yield Condition("paused", each.system, WARNING, cause, command, each.since_us)
        command = f"trueup status {pair.name}"
        for spending in each.spending:
            if spending.used_up and (spending.frees_in_us or 0) > limits.budget_us:
                free = moment_text(now_us + (spending.frees_in_us or 0))
                cause = f"{spending.limit} of {each.system} is used up until {free}; events wait too"
                yield Condition("budget", each.system, CRITICAL, cause, command)
        if each.lasts_us is not None and each.lasts_us > limits.budget_us:
            cause = f"what waits for {each.system} takes {duration_text(each.lasts_us)} at {each.pace}"
            yield Condition("budget", each.system, WARNING, cause, command)


def _silent(pair: Pair, status: Status, seen: Seen) -> Iterator[Condition]:
    event_us, longest_us = seen.pulse.event_us, pair.health.event_us
    if longest_us is not None and event_us is not None and status.now_us - event_us > longest_us:
        cause = f"the last event came {moment_text(event_us)}"
        yield Condition("no-events", pair.name, WARNING, cause, "trueup letters", event_us)
    if seen.pulse.in_row >= PINGS_MIN:
        cause = f"the last {seen.pulse.in_row:,} pings did not arrive: {_clean(seen.pulse.ping_error)}"
        yield Condition("pings", pair.name, WARNING, cause, "trueup alerts list")


def _clocks(pair: Pair, seen: Seen) -> Iterator[Condition]:
    measured = next((run for run in seen.runs if run.memo.get(SKEW)), None)
    if measured is None:
        return
    role, ahead_us = max(measured.memo[SKEW].items(), key=lambda item: abs(item[1]))
    if abs(ahead_us) > pair.health.clock_us:
        cause = f"the clock of the {role} was {_off(ahead_us)} this program's {moment_text(measured.started_us)}"
        yield Condition("clock", pair.name, WARNING, cause, "timedatectl", measured.started_us)


def _off(ahead_us: int) -> str:
    return f"{duration_text(abs(ahead_us))} {'ahead of' if ahead_us > 0 else 'behind'}"


def _growth(pair: Pair, status: Status, seen: Seen) -> Iterator[Condition]:
    if not seen.compares:
        return
    rows = sum(status.counts.get(state, 0) for state in ("idle", "pending", "parked"))
    records = max(seen.compares[0].counts.get(counted, 0) for counted in ("left", "right"))
    if rows > ROWS_MIN and records and rows > records * pair.health.growth:
        cause = f"the ledger has {rows:,} rows for {records:,} records"
        yield Condition("growth", pair.name, WARNING, cause, "trueup doctor")


def conditions_of_store(
    limits: Thresholds, workers: Sequence[Presence], now_us: int, host_us: int, anchored: Sequence[Anchored] = ()
) -> list[Condition]:
    """What is wrong beside any pair. now_us: by the store's clock; host_us: by this host's, at the same time.

    anchored: what the declared places of anchors were given.
    """
    found = []
    for each in anchored:
        if each.tries >= ANCHORS_MIN:
            cause = f"the last {each.tries:,} anchors for {each.name} did not arrive: {_clean(each.error)}"
            found.append(Condition("anchors", STATE, WARNING, cause, "trueup evidence anchor"))
    dead = [each for each in workers if each.stays and not each.alive(now_us)]
    lately = sorted(
        (each for each in dead if now_us - each.beat_us <= limits.deaths_within_us), key=lambda each: each.beat_us
    )
    if limits.deaths and len(lately) >= limits.deaths:
        hosts = ", ".join(sorted({each.host for each in lately}))
        since_us = lately[0].beat_us
        cause = f"{len(lately)} workers died since {moment_text(since_us)}, on {hosts}"
        found.append(Condition("workers", WORKERS, CRITICAL, cause, "trueup worker", since_us))
    if abs(now_us - host_us) > limits.clock_us:
        cause = f"the clock of the state store is {_off(now_us - host_us)} this host's"
        found.append(Condition("clock", STATE, WARNING, cause, "timedatectl"))
    return found


def condition_of_state(store: str, error: Exception | None, since_us: int | None = None) -> Condition:
    """What is wrong with a state store that can't be used. store: its name. error: None where it gives no answer."""
    if error is None:
        said = "the state store does not answer"
    elif isinstance(error, errors.TrueupError):
        said = _clean(error.message)
    else:
        said = f"the state store can't be looked at ({type(error).__name__})"
    cause = said if said.startswith(store) else f"{store}: {said}"
    return Condition("state", STATE, CRITICAL, cause, "trueup doctor", since_us)
