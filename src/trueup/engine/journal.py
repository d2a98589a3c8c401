"""What is logged of records, runs and cases: a line for each, with the ids by which the rest of its story is found.

What is usual for a record is said at `debug`, what is not, and how runs go, at `info`: warnings are about systems and
processes. No line holds a value. Keys lose the parts that their pair redacts, and what foreign code raised is told by
its type alone; `trueup explain` tells the rest to a person who asks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from trueup.engine.hidden import shown_key
from trueup.engine.report import Report
from trueup.errors import own_words
from trueup.model.case import Case
from trueup.model.decision import Decision, DecisionState
from trueup.model.plan import PlanItem
from trueup.model.row import Claim, Finish
from trueup.pair import Pair
from trueup.ports import Archive, Clock

_log = logging.getLogger(__name__)

# By how a job ended: its event, and what the line says.
_ENDS: Final[Mapping[str, tuple[Mapping[str, str], str]]] = {
    "done": ({"event": "job_done"}, "is done"),
    "verified": ({"event": "job_verified"}, "was looked at again"),
    "retry": ({"event": "job_retried"}, "is tried again"),
    "waits": ({"event": "job_waits"}, "waits for another record"),
    "parked": ({"event": "job_parked"}, "is parked"),
}


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────


def jobs_ended(pair: Pair, finishes: Sequence[Finish], accepted: Sequence[bool]) -> None:
    """How the jobs of a batch ended; accepted: whether the fence still held. Costs nothing where nobody listens."""
    if not _log.isEnabledFor(logging.INFO):
        return
    jobs_lost(pair, (each.claim for each, held in zip(finishes, accepted, strict=True) if not held))
    for each, held in zip(finishes, accepted, strict=True):
        level = logging.INFO if each.result == "parked" or (each.result == "retry" and each.charge) else logging.DEBUG
        if not held or not _log.isEnabledFor(level):
            continue
        about, said = _ENDS[each.result]
        facts: dict[str, Any] = {**about, **_job(pair, each.claim)}
        if why := _why(pair, each):
            facts["why"] = why
            said = f"{said}: {why}"
        if each.result in ("retry", "waits"):
            facts["delay_us"] = each.delay_us
        _log.log(level, "pair %s: %s %s", pair.name, facts["key"], said, extra=facts)


def jobs_lost(pair: Pair, claims: Iterable[Claim]) -> None:
    """These leases ended before their jobs did: other workers have the records, or will."""
    for claim in claims if _log.isEnabledFor(logging.INFO) else ():
        facts = _job(pair, claim)
        said = "its lease ran out, and another worker takes it over"
        _log.info("pair %s: %s: %s", pair.name, facts["key"], said, extra={"event": "job_lost", **facts})


def _job(pair: Pair, claim: Claim) -> dict[str, Any]:
    change = claim.change
    return {
        "pair": pair.name, "key": shown_key(pair, change.key), "action": change.action, "origin": str(change.origin),
        "attempt": claim.row.tries, "trace": change.trace,
    }  # fmt: skip


def _why(pair: Pair, ended: Finish) -> str:
    """What kept a job from being done; of what foreign code raised its type, and nothing where the pair redacts."""
    if pair.redact:
        return "rejected" if ended.rejected else ""
    return ended.reason if ended.rejected else own_words(ended.reason)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────


def run_began(report: Report) -> None:
    """A run begins, or goes on where one that died or was stopped had come to."""
    _log.info(
        "pair %s: %s %s", report.pair, _run(report), "goes on" if report.resumed else "begins",
        extra={"event": "run_began", "pair": report.pair, "what": report.what, "run": report.number or None},
    )  # fmt: skip


def run_ended(report: Report, how: str, took_us: int) -> None:
    """A run ended: `done`, `failed`, `stopped`, or `refused` because another is under way."""
    _log.info(
        "pair %s: %s ended: %s", report.pair, _run(report), how,
        extra={
            "event": "run_ended", "pair": report.pair, "what": report.what, "run": report.number or None, "how": how,
            "took_us": took_us,
        },
    )  # fmt: skip


def _run(report: Report) -> str:
    """A run in words; a dry run has no number, nor has one that was refused."""
    return f"run {report.number} ({report.what})" if report.number else f"its {report.what}"


@contextmanager
def timed(report: Report, phase: str, clock: Clock) -> Iterator[None]:
    """A phase of a run: adds what it takes to the report, and says when it has ended, however it does."""
    started_us = clock.now_us()
    try:
        yield
    finally:
        took_us = clock.now_us() - started_us
        report.seconds[phase] = report.seconds.get(phase, 0.0) + took_us / 1e6
        _log.info(
            "pair %s: %s: %s took %.3f s", report.pair, _run(report), phase, took_us / 1e6,
            extra={
                "event": "phase_ended", "pair": report.pair, "run": report.number or None, "phase": phase,
                "took_us": took_us,
            },
        )  # fmt: skip


def repairs_offered(pair: Pair, run: int, items: Iterable[PlanItem]) -> None:
    """A run, or a person who approved its plan, had these records repaired: workers do it."""
    for item in items if _log.isEnabledFor(logging.INFO) else ():
        key = shown_key(pair, item.key)
        _log.info(
            "pair %s: %s: a repair is offered (%s)", pair.name, key, item.drift,
            extra={
                "event": "repair_offered", "pair": pair.name, "key": key, "run": run, "drift": str(item.drift),
                "action": item.action,
            },
        )  # fmt: skip


# ── cases ────────────────────────────────────────────────────────────────────────────────────────────


def open_cases(pair: Pair, archive: Archive, cases: Sequence[Case]) -> None:
    """Opens these cases of a pair, and says which are new."""
    new = archive.open_cases(cases)
    if not new or not _log.isEnabledFor(logging.INFO):
        return
    for case in {case.key: case for case in cases if case.key in new}.values():
        key = shown_key(pair, case.key)
        _log.info(
            "pair %s: case %d is opened: %s %s", pair.name, new[case.key], case.drift, key,
            extra={
                "event": "case_opened", "pair": pair.name, "key": key, "case": new[case.key], "drift": case.drift,
                "run": case.run or None,
            },
        )  # fmt: skip


def close_cases(pair: Pair, archive: Archive, keys: Sequence[str], how: str) -> None:
    """Closes the open cases about these records, and says which. how: in our words."""
    closed = archive.close_cases(pair.name, keys, how)
    for key, number in closed.items() if _log.isEnabledFor(logging.INFO) else ():
        shown = shown_key(pair, key)
        _log.info(
            "pair %s: case %d (%s) is closed: %s", pair.name, number, shown, how,
            extra={"event": "case_closed", "pair": pair.name, "key": shown, "case": number, "why": how},
        )  # fmt: skip


def case_decided(pair: Pair, case: Case, decision: Decision, state: DecisionState) -> None:
    """What came of a person's decision; whose it was, and why, is in evidence."""
    key = shown_key(pair, case.key)
    _log.info(
        "pair %s: case %d (%s): %s is %s", pair.name, case.number, key, decision.choice, state,
        extra={
            "event": "case_decided", "pair": pair.name, "key": key, "case": case.number,
            "choice": str(decision.choice), "how": str(state),
        },
    )  # fmt: skip
