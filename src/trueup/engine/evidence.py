"""What is put on record about a run and about a decision, so that somebody who was not there can judge it.

No secrets, and of fields that the pair redacts no values: a hash stands for each.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import Any, Final, TypeGuard

from trueup.engine.hidden import Hidden, hidden_roots, key_name, keyed, redaction_key
from trueup.engine.options import RunOptions
from trueup.engine.records import Records
from trueup.engine.report import Report
from trueup.engine.totals import roots_in, totals_in
from trueup.errors import TrueupError
from trueup.model.case import HELD, Case
from trueup.model.decision import Decision, DecisionState
from trueup.model.drift import Drift
from trueup.model.evidence import DECISION, RUN, Fact, canonical
from trueup.model.plan import PlanItem
from trueup.model.record import Rule
from trueup.model.run import Run
from trueup.pair import Pair
from trueup.ports import Archive, Side, TraceableSide, provides

# Records of a plan that stand in its entry with their values; a digest covers them all.
ITEMS_MAX: Final = 10_000
# Questions that stand in the entry of a comparison of everything.
CASES_MAX: Final = 1_000
INPUTS: Final = "inputs"
READ: Final = "read"
# What is declared, but says neither what is compared nor what is done about it; `ping` is an address with a token.
_OPERATION: Final = frozenset(
    {"authority", "replica", "schedules", "system", "lease_us", "concurrency", "tries_max", "health", "defects", "ping"}
)


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────


def inputs_of(pair: Pair) -> dict[str, Any]:
    """What both sides would read now, by side; raises what they raise."""
    sides = {"authority": pair.authority, "replica": pair.replica}
    return {role: inputs_of_side(side) for role, side in sides.items() if _traceable(side)}


def inputs_of_side(side: Side) -> dict[str, Any]:
    """What a side would read now; empty where it can't tell."""
    found = plain(side.inputs()) if _traceable(side) else {}
    return {name: each for name, each in found.items() if each not in (None, [])}


def note_inputs(memo: dict[str, Any], pair: Pair, options: RunOptions) -> None:
    """Notes in a run's memo what a comparison is about to read, once."""
    if pair.replica is not None and options.only != "sweep" and INPUTS not in memo:
        memo[INPUTS] = inputs_of(pair)


def fact_of_run(records: Records, run: Run, report: Report, options: RunOptions, archive: Archive) -> Fact:
    """What is put on record when a run closes."""
    pair, memo, key = records.pair, run.memo, redaction_key(records.pair, archive)
    hidden = Hidden(pair, key)
    read = memo.get(READ) or {}
    roots = hidden_roots(roots_in(read), key)
    windows = [[name, from_us, to_us] for from_us, to_us, name in (memo.get("windows") or {}).get("compare", ())]
    body = {
        "run": run.number, "what": run.what, "started_us": run.started_us, "ended_us": run.ended_us,
        "ended": run.ended, "error": run.error, "resumed": report.resumed, "phases": list(run.done),
        "scope": {"asked": plain(options), "windows": windows}, "cutoff_us": run.cutoff_us,
        "program": {"name": "trueup", "version": program_version()},
        "rules": rules_of(records), "inputs": memo.get(INPUTS) or {},
        "counts": {name: count for name, count in run.counts.items() if count},
        "totals": totals_in(read), "roots": roots, "redaction": key_name(key),
        "plan": _plan(report.plan, key),
        "items": [_item(item, hidden) for item in report.plan[:ITEMS_MAX]],
        "items_left_out": max(0, len(report.plan) - ITEMS_MAX),
        "waiting": _waiting(archive, pair, report.plan, hidden) if roots else [],
    }  # fmt: skip
    return Fact(RUN, pair.name, str(run.number), canonical(body))


def _waiting(archive: Archive, pair: Pair, plan: Sequence[PlanItem], hidden: Hidden) -> list[dict[str, Any]]:
    """Questions that wait for a person beside those about the plan, such as what a worker found."""
    planned = {item.key for item in plan}
    return [
        {
            "case": case.number, "drift": case.drift, "opened_us": case.opened_us,
            "key": hidden.key(case.key) if case.is_record else None,
        }
        for case in archive.cases(pair.name, limit=CASES_MAX)
        if case.key not in planned and case.key != HELD
    ]  # fmt: skip


def said_of(error: Exception, pair: Pair) -> str:
    """An error as it may be put on record: messages of trueup hold no values, but they may hold keys."""
    name = type(error).__name__
    return f"{name}: {error.message}" if isinstance(error, TrueupError) and not pair.redact else name


def rules_of(records: Records) -> dict[str, Any]:
    """By which rules a pair is compared and repaired, and a digest that is another one as soon as they are."""
    pair = records.pair
    declared = {
        each.name: plain(getattr(pair, each.name)) for each in dataclasses.fields(pair) if each.name not in _OPERATION
    }
    declared["authority"] = _side(pair.authority)
    declared["replica"] = None if pair.replica is None else _side(pair.replica)
    declared["verdicts"] = {str(drift): str(pair.verdict(drift)) for drift in Drift}
    # A plan is made at the first use, which may be what failed.
    plan = vars(records).get("plan")
    compared = [] if plan is None else [[each.name, str(each.kind), _said(each.rule)] for each in plan.left.fields]
    digest = hashlib.sha256(canonical(declared).encode()).hexdigest()
    return {"digest": digest, "declared": declared, "compared": compared}


def plan_digest(items: Sequence[PlanItem], key: bytes) -> str:
    """64 hex digits over all that a plan says of its records, but for what became of them since. key: as above."""
    digest = hashlib.sha256()
    for item in sorted(items, key=lambda each: each.key):
        told = [
            item.key, str(item.drift), str(item.verdict), item.action, item.version, item.authority_digest,
            item.replica_digest, list(item.fields), _texts(item.authority), _texts(item.replica), item.removes,
        ]  # fmt: skip
        framed = canonical({"item": told}).encode()
        digest.update(b"%d:%s" % (len(framed), framed))
    return keyed(key, digest.hexdigest())


def _texts(values: Mapping[str, str | None] | None) -> dict[str, str | None] | None:
    return None if values is None else dict(values)


def _plan(items: Sequence[PlanItem], key: bytes) -> dict[str, Any]:
    counts = Counter((str(i.drift), str(i.verdict), i.removes, str(i.state)) for i in items)
    by = [
        {"drift": drift, "verdict": verdict, "removes": removes, "state": state, "records": count}
        for (drift, verdict, removes, state), count in sorted(counts.items())
    ]
    return {"records": len(items), "digest": plan_digest(items, key), "by": by}


def _item(item: PlanItem, hidden: Hidden) -> dict[str, Any]:
    return {
        "key": hidden.key(item.key), "drift": str(item.drift), "verdict": str(item.verdict), "action": item.action,
        "state": str(item.state), "removes": item.removes, "version": item.version,
        "authority_has": item.authority is not None, "replica_has": item.replica is not None,
        "fields": {
            name: [hidden.value(item.key, name, left), hidden.value(item.key, name, right)]
            for name, (left, right) in item.texts().items()
        },
    }  # fmt: skip


# ── a decision ───────────────────────────────────────────────────────────────────────────────────────


def fact_of_decision(
    pair: Pair,
    case: Case,
    decision: Decision,
    state: DecisionState,
    note: str,
    former: Sequence[Decision],
    key: bytes,
) -> Fact:
    """What is put on record when a decision has acted. former: those about the same case. key: as of runs."""
    hidden = Hidden(pair, key)
    names = case.fields or sorted({*(case.authority or {}), *(case.replica or {})})
    sides = [side or {} for side in (case.authority, case.replica)]
    proposed = [
        {"person": each.person, "reason": each.reason, "at_us": each.at_us}
        for each in former
        if each.state is DecisionState.PROPOSED and each.choice is decision.choice and each.shown == decision.shown
    ]
    body = {
        "case": case.number, "run": case.run, "key": hidden.key(case.key) if case.is_record else [case.key],
        "drift": case.drift, "opened_us": case.opened_us, "agreed_us": case.agreed_us,
        "choice": str(decision.choice), "person": decision.person, "reason": decision.reason,
        "decided_us": decision.at_us, "until_us": decision.until_us, "proposed": proposed,
        "ended": str(state), "note": note, "shown": hidden.digest(decision.shown), "redaction": key_name(key),
        "authority_digest": hidden.digest(case.authority_digest),
        "replica_digest": hidden.digest(case.replica_digest),
        "authority_has": case.authority is not None, "replica_has": case.replica is not None,
        "fields": {
            name: [hidden.value(case.key, name, side.get(name)) for side in sides] for name in names
        } if case.is_record else {},
        "values": {name: hidden.value(case.key, name, text) for name, text in (decision.values or {}).items()},
        "program": {"name": "trueup", "version": program_version()},
    }  # fmt: skip
    return Fact(DECISION, pair.name, decision.id, canonical(body))


# ── values ───────────────────────────────────────────────────────────────────────────────────────────


def plain(value: Any) -> Any:
    """A declared value as evidence holds it: tables, lists, texts, whole numbers, truth values and nulls."""
    match value:
        case None | bool() | str() if not isinstance(value, enum.Enum):
            return value
        case enum.Enum():
            return str(value)
        case int():
            return value
        case float() | Decimal():
            return str(value)
        case Mapping():
            return {str(name): plain(each) for name, each in sorted(value.items(), key=lambda item: str(item[0]))}
        case list() | tuple():
            return [plain(each) for each in value]
        case set() | frozenset():
            return sorted(str(each) for each in value)
        case _ if dataclasses.is_dataclass(value):
            return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return str(value)


def _said(rule: Rule) -> dict[str, Any]:
    return {name: each for name, each in plain(rule).items() if each not in (None, False)}


def _side(side: Side) -> dict[str, Any]:
    told = {"kind": type(side).__name__, "label": side.label, "key": list(side.key), "version": side.version}
    return {**told, **(plain(side.declared()) if _traceable(side) else {})}


def _traceable(side: object) -> TypeGuard[TraceableSide]:
    return provides(side, TraceableSide)


@cache
def program_version() -> str:
    """The version of this program."""
    return version("trueup")
