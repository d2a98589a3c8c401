"""What evidence says when it is read as a whole: is it as it was written, and what became of each drift?

Nothing here looks at the sides or at the ledger: what can't be told from the entries alone is not told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from trueup.engine.evidence import plan_digest
from trueup.model.evidence import DECISION, RUN, Entry, Finding, Head, Verified, ends_as, verify
from trueup.model.record import key_text
from trueup.model.run import CHANGED, DONE
from trueup.ports import Archive

PAGE: Final = 500


# ── is it as it was written? ─────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Proof:
    """Whether evidence is as it was written, and whether it is complete.

    unrecorded: (kind, pair, about) of what happened without an entry. plans: plans that were compared with theirs.
    """

    chain: Verified
    unrecorded: list[tuple[str, str, str]] = field(default_factory=list)
    plans: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong and nothing is missing."""
        return self.chain.intact and not self.unrecorded


def prove(archive: Archive, anchors: Sequence[Head] = ()) -> Proof:
    """Looks at the whole chain of a store, at what has no entry, and at the plans that are still kept."""
    planned: dict[int, tuple[int, str]] = {}

    def noted() -> Iterator[Entry]:
        for entry in all_entries(archive):
            if entry.fact.kind == RUN and (digest := _planned(entry)):
                planned[int(entry.fact.about)] = entry.number, digest
            yield entry

    before = archive.head()
    chain = verify(noted(), anchors=anchors)
    # Meanwhile others may have appended.
    after = archive.head()
    if not before.number < chain.head.number < after.number:
        chain.findings += ends_as(chain.head, after if after == chain.head else before)
    proof = Proof(chain, archive.unrecorded())
    for run, (number, digest) in planned.items():
        items = archive.items(run)
        proof.plans += bool(items)
        if items and plan_digest(items) != digest:
            chain.findings.append(Finding(number, "altered", f"the plan of run {run} is not as entry {number} has it"))
    return proof


def all_entries(archive: Archive, pairs: Sequence[str] | None = None) -> Iterator[Entry]:
    """Every entry in order, read a page at a time."""
    last = 0
    while page := archive.entries(pairs, after=last, limit=PAGE):
        yield from page
        last = page[-1].number


def _planned(entry: Entry) -> str | None:
    """The digest of the plan of a run; None where it has none, or can't be read any more."""
    try:
        plan = entry.fact.read().get("plan") or {}
        return str(plan["digest"]) if plan.get("records") else None
    except (ValueError, AttributeError, KeyError, TypeError):
        return None


# ── what became of each drift? ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one drift of a run, as far as later entries tell.

    ended: `agreed` (a later comparison of everything found it equal), `accepted`, `decided`, `dropped`, `overtaken`,
    `again` (a later run found it once more), `repaired` (a job was given, and nothing later tells) or `open`. said: in
    words. entry: that tells so; 0 where it is the run's own.
    """

    ended: str
    said: str
    entry: int = 0


@dataclass(slots=True)
class RunAccount:
    """A run as its entry has it. items: the drifts that stand in it, each with what became of it."""

    entry: Entry
    body: dict[str, Any]
    items: list[tuple[dict[str, Any], Outcome]] = field(default_factory=list)


class Account:
    """The entries of one pair, read together; an entry that is not as it was written tells nothing."""

    def __init__(self, pair: str, entries: Iterable[Entry]) -> None:
        self.pair = pair
        mine = [(entry, entry.fact.read()) for entry in entries if entry.fact.pair == pair and entry.holds]
        self.decisions = [(entry, body) for entry, body in mine if entry.fact.kind == DECISION]
        self._read = [(entry, body) for entry, body in mine if entry.fact.kind == RUN]

    @cached_property
    def runs(self) -> list[RunAccount]:
        """All runs, oldest first."""
        runs = [RunAccount(entry, body) for entry, body in self._read]
        found = [{_key(item) for item in run.body.get("items", ())} for run in runs]
        for at, run in enumerate(runs):
            for item in run.body.get("items", ()):
                run.items.append((item, self._outcome(item, at, runs, found)))
        return runs

    @property
    def open(self) -> list[tuple[RunAccount, dict[str, Any], Outcome]]:
        """Drifts of which nothing is known to have come."""
        return [
            (run, item, outcome)
            for run in self.runs
            for item, outcome in run.items
            if outcome.ended in ("open", "repaired")
        ]

    def _outcome(self, item: dict[str, Any], at: int, runs: list[RunAccount], found: list[set[str]]) -> Outcome:
        key, state, entry = _key(item), item["state"], runs[at].entry
        if state == "accepted":
            return Outcome("accepted", "a person had accepted this difference")
        for later, body in self.decisions:
            if later.number > entry.number and body["ended"] == DONE and _is_about(body, key, runs[at].body["run"]):
                said = f"{body['choice']} by {body['person']}: {body['reason']}"
                return Outcome("accepted" if body["choice"] == "accept" else "decided", said, later.number)
        for run, keys in zip(runs[at + 1 :], found[at + 1 :], strict=True):
            if key in keys:
                return Outcome("again", f"run {run.body['run']} found it once more", run.entry.number)
            if _looked_at_everything(run.body):
                return Outcome(
                    "agreed", f"run {run.body['run']} compared everything and found it equal", run.entry.number
                )
        if state in ("dropped", "overtaken"):
            return Outcome(state, "it moved, and was left to a later run" if state == "overtaken" else "not wanted")
        if state == "offered":
            return Outcome("repaired", "a repair was given to a worker; no later comparison of everything tells")
        return Outcome("open", "held until a person approves the plan" if state == "held" else "waits for a person")


def _key(item: dict[str, Any]) -> str:
    return key_text(str(part) for part in item["key"])


def _is_about(decision: dict[str, Any], key: str, run: int) -> bool:
    about_plan = decision["drift"] == "held" and decision["run"] == run
    return about_plan or _key(decision) == key


def _looked_at_everything(body: dict[str, Any]) -> bool:
    asked = (body.get("scope") or {}).get("asked") or {}
    whole = body.get("roots") and not (body.get("scope") or {}).get("windows") and asked.get("only") != CHANGED
    return bool(whole) and body["ended"] == DONE and not body["items_left_out"]
