"""What people ask afterwards: how a pair is, and what happened to one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from trueup.engine.clocks import SKEW
from trueup.engine.expecting import compares as newest_compares
from trueup.engine.health import COMPARED, Seen, conditions_of
from trueup.engine.records import Records
from trueup.engine.report import Status, Story
from trueup.engine.schedules import schedules_of
from trueup.engine.systems import systems_of
from trueup.engine.windows import windows_of
from trueup.model.case import DEFECT, CaseFilter
from trueup.model.drift import Drift
from trueup.model.record import key_parts, key_text
from trueup.model.run import CHANGED, DONE, Run
from trueup.model.schedule import COMPARE, SWEEP
from trueup.ports import Archive, Budgets, Ledger

RUNS: Final = 50


def status(records: Records, ledger: Ledger, archive: Archive, budgets: Budgets) -> Status:
    """How a pair is, from the state store alone: no side is asked."""
    name = records.pair.name
    counts, cases, runs = ledger.counts(name), archive.cases(name), archive.runs(name, limit=RUNS)
    adopted = records.pair.replica is None or ledger.settled(name)
    last = runs[0] if runs else None
    parked = counts.get("parked", 0)
    word, command = "in agreement", None
    now_us = ledger.now_us()
    systems = systems_of(records.pair, budgets, counts.get("pending", 0), now_us)
    paused = next((each for each in systems if each.paused), None)
    held = any(each.paused and each.paused_until_us is None for each in systems)
    schedules = schedules_of(records.pair, archive, now_us, held=held)
    if paused is not None:
        word, command = "paused", paused.next_command
    elif not adopted:
        word, command = "not adopted", f"trueup adopt {name}"
    elif cases:
        word = "1 case waits" if len(cases) == 1 else f"{len(cases):,} cases wait"
        command = f"trueup review show {cases[0].number}" if len(cases) == 1 else f"trueup review list {name}"
    elif parked:
        word, command = f"{parked:,} parked", f"trueup retry {name}"
    elif last is None:
        word, command = "never run", f"trueup run {name}"
    elif last.ended == "failed":
        word, command = "last run failed", f"trueup run {name}"
    elif any(each.overdue for each in schedules):
        word, command = "overdue", "trueup serve"
    elif counts.get("pending"):
        word, command = f"{counts['pending']:,} pending", f"trueup run {name}"
    compares = newest_compares(archive, name, COMPARED)
    pulse = archive.pulses([name])[name]
    found = Status(
        pair=name,
        adopted=adopted,
        counts={state: counts.get(state, 0) for state in ("idle", "pending", "parked", "leased")},
        cases=len(cases),
        oldest_case_us=min((case.opened_us for case in cases), default=None),
        oldest_due_us=counts.get("oldest_due_us"),
        last_run=last,
        last_success_us=next((run.ended_us for run in runs if run.ended == "done"), None),
        now_us=now_us,
        word=word,
        next_command=command,
        errors=[f"last run: {last.error}"] if last is not None and last.error else [],
        systems=systems,
        schedules=schedules,
        windows=windows_of(records, archive, now_us),
        last_event_us=pulse.event_us,
        records=_held(compares),
        skew_us=next((run.memo[SKEW] for run in runs if SKEW in run.memo), {}),
        drifts=_drifts(compares),
        successes=_successes(records, archive, runs),
    )
    # Asked only where it says something.
    streaks = archive.streaks(name) if any(case.key.startswith(DEFECT) for case in cases) else ()
    seen = Seen(runs, compares, cases, pulse, archive.presences(), streaks)
    return replace(found, conditions=conditions_of(records.pair, found, seen))


def _held(compares: Sequence[Run]) -> dict[str, int]:
    """How many records each side held at the last of these."""
    if not compares:
        return {}
    counts = compares[0].counts
    return {"authority": counts.get("left", 0), "replica": counts.get("right", 0)}


def _drifts(compares: Sequence[Run]) -> dict[str, int]:
    """How many records drifted at the last of these, by name, zeros included."""
    return {drift.value: compares[0].counts.get(f"drift_{drift}", 0) for drift in Drift} if compares else {}


def _successes(records: Records, archive: Archive, newest: Sequence[Run]) -> dict[str, int]:
    """When a run that did this last ended well, by what it did. Those that are rare may not be among the newest."""
    did: dict[str, tuple[str, ...]] = {SWEEP: ("run", SWEEP)}
    if records.pair.replica is not None:
        did |= {COMPARE: ("run", COMPARE, "adopt"), CHANGED: (CHANGED,)}
    found = {}
    for what, names in did.items():
        ended_us = _ended_well(newest, names)
        if ended_us is None and len(newest) == RUNS:
            ended_us = _ended_well(archive.runs(records.pair.name, limit=COMPARED, what=names), names)
        if ended_us is not None:
            found[what] = ended_us
    return found


def _ended_well(runs: Sequence[Run], names: Sequence[str]) -> int | None:
    return next((run.ended_us for run in runs if run.what in names and run.ended == DONE), None)


def explain(records: Records, ledger: Ledger, archive: Archive, key: str) -> Story:
    """One record's story, and both sides as they are now."""
    name = records.pair.name
    key = key_text(key_parts(key))
    row = ledger.rows(name, [key]).get(key)
    state = records.read_authority([key])[key]
    replica = records.read_replica([key]).get(key)
    return Story(
        pair=name,
        key=key,
        events=ledger.history(name, key),
        state="unknown" if row is None else str(row.state),
        authority=state.values,
        replica=None if replica is None else replica.values,
        differing=records.differing(state, replica) if records.readable else (),
        agree=records.agree(state, replica) if records.readable else None,
        verified_until_us=0 if row is None else row.verified_until,
        last_error=None if row is None else (row.park_reason or row.last_error),
        cases=archive.cases(name, CaseFilter(key=key), open_only=False),
    )
