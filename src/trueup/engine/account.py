"""What evidence says when it is read as a whole: is it as it was written, and what became of each drift?

Nothing here looks at the sides or at the ledger: what can't be told from the entries alone is not told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from trueup.engine.anchoring import Kept
from trueup.engine.evidence import plan_digest
from trueup.engine.hidden import key_of
from trueup.engine.repaired import GONE, PARKED
from trueup.model.evidence import DECISION, JOBS, RUN, Entry, Finding, Head, Verified, ends_as, verify
from trueup.model.moment import moment_text
from trueup.model.record import key_text
from trueup.model.run import CHANGED, DONE
from trueup.ports import Archive

PAGE: Final = 500
HELD: Final = "held"


# ── is it as it was written? ─────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Proof:
    """Whether evidence is as it was written, and whether it is complete.

    unrecorded: (kind, pair, about) of what happened without an entry. plans: plans that were compared with theirs.
    places: where anchors are kept, and what each of these places answered.
    """

    chain: Verified
    unrecorded: list[tuple[str, str, str]] = field(default_factory=list)
    plans: int = 0
    places: Sequence[Kept] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong and nothing is missing."""
        return self.chain.intact and not self.unrecorded


def prove(archive: Archive, anchors: Sequence[Head] = (), places: Sequence[Kept] = ()) -> Proof:
    """Looks at the whole chain of a store, at what has no entry, and at the plans that are still kept.

    anchors, places: what was kept elsewhere.
    """
    planned: dict[int, tuple[int, str, bool]] = {}

    def noted() -> Iterator[Entry]:
        for entry in all_entries(archive):
            if entry.fact.kind == RUN and (digest := _planned(entry)):
                planned[int(entry.fact.about)] = entry.number, *digest
            yield entry

    before = archive.head()
    chain = verify(noted(), anchors=[*anchors, *(head for each in places for head in each.heads)])
    # Meanwhile others may have appended.
    after = archive.head()
    if not before.number < chain.head.number < after.number:
        chain.findings += ends_as(chain.head, after if after == chain.head else before)
    for each in places:
        if each.lost is not None:
            said = f"{each.place} does not keep the anchor of entry {each.lost.number} any more, which it was given"
            chain.findings.append(Finding(each.lost.number, "missing", said))
    proof = Proof(chain, archive.unrecorded(), places=places)
    for run, (number, digest, redacted) in planned.items():
        items = archive.items(run)
        proof.plans += bool(items)
        if items and plan_digest(items, key_of({"redaction": redacted}, archive)) != digest:
            chain.findings.append(Finding(number, "altered", f"the plan of run {run} is not as entry {number} has it"))
    return proof


def all_entries(archive: Archive, pairs: Sequence[str] | None = None) -> Iterator[Entry]:
    """Every entry in order, read a page at a time."""
    last = 0
    while page := archive.entries(pairs, after=last, limit=PAGE):
        yield from page
        last = page[-1].number


def _planned(entry: Entry) -> tuple[str, bool] | None:
    """The digest of the plan of a run, and whether it is keyed; None where it has none, or can't be read any more."""
    try:
        body = entry.fact.read()
        plan = body.get("plan") or {}
        return (str(plan["digest"]), bool(body.get("redaction"))) if plan.get("records") else None
    except (ValueError, AttributeError, KeyError, TypeError):
        return None


# ── what became of each drift? ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one drift of a run, as far as later entries tell.

    ended: `agreed` (a later comparison of everything found it equal), `accepted`, `decided`, `dropped`, `overtaken`,
    `again` (a later run found it once more), `repaired` (the job was done), `given` (a job was given, and nothing later
    tells) or `open`. said: in words. entry: that tells so; 0 where it is the run's own.
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
        self._jobs = {
            (body["run"], _key(job)): (entry, job)
            for entry, body in mine
            if entry.fact.kind == JOBS
            for job in body["items"]
        }

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
            if outcome.ended in ("open", "given")
        ]

    @property
    def waiting(self) -> list[tuple[RunAccount, dict[str, Any]]]:
        """Questions that waited at the last comparison of everything, beside its differences, undecided since."""
        whole = [run for run in self.runs if run.body.get("roots")]
        if not whole:
            return []
        decided = {
            body["case"]
            for entry, body in self.decisions
            if entry.number > whole[-1].entry.number and body["ended"] == DONE
        }
        return [(whole[-1], each) for each in whole[-1].body.get("waiting", ()) if each["case"] not in decided]

    def _outcome(self, item: dict[str, Any], at: int, runs: list[RunAccount], found: list[set[str]]) -> Outcome:
        key, state, entry = _key(item), item["state"], runs[at].entry
        if state == "accepted":
            return Outcome("accepted", "a person had accepted this difference")
        for later, body in self.decisions:
            if later.number > entry.number and body["ended"] == DONE and _key(body) == key:
                said = f"{body['choice']} by {body['person']}: {body['reason']}"
                return Outcome("accepted" if body["choice"] == "accept" else "decided", said, later.number)
        plan = self._about_plan(runs[at], state)
        before = "" if plan is None else f"{plan.said}; then "
        for run, keys in zip(runs[at + 1 :], found[at + 1 :], strict=True):
            if key in keys:
                return Outcome("again", f"{before}run {run.body['run']} found it once more", run.entry.number)
            if _looked_at_everything(run.body):
                said = f"{before}run {run.body['run']} compared everything and found it equal"
                return Outcome("agreed", said, run.entry.number)
        if plan is not None:
            return plan
        if state in ("dropped", "overtaken"):
            return Outcome(state, "it moved, and was left to a later run" if state == "overtaken" else "not wanted")
        if state == "offered":
            return self._repaired(*self._jobs.get((runs[at].body["run"], key), (None, {})))
        return Outcome("open", "held until a person approves the plan" if state == "held" else "waits for a person")

    def _about_plan(self, run: RunAccount, state: str) -> Outcome | None:
        """What a person decided about the plan that held this; not whether the record was still as it was shown."""
        for later, body in self.decisions if state == HELD else ():
            if body["drift"] == HELD and body["run"] == run.body["run"] and body["ended"] == DONE:
                said = f"{body['choice']} by {body['person']}: {body['reason']} ({body['note']})"
                return Outcome("decided", said, later.number)
        return None

    @staticmethod
    def _repaired(entry: Entry | None, job: dict[str, Any]) -> Outcome:
        if entry is None or job["ended"] == GONE:
            return Outcome("given", "a repair was given to a worker; nothing later tells what became of it")
        if job["ended"] == PARKED:
            return Outcome("open", "its repair is parked: it needs a person", entry.number)
        return Outcome("repaired", f"the repair was done {moment_text(job['at_us'])}", entry.number)


def _key(item: dict[str, Any]) -> str:
    return key_text(str(part) for part in item["key"])


def _looked_at_everything(body: dict[str, Any]) -> bool:
    asked = (body.get("scope") or {}).get("asked") or {}
    whole = body.get("roots") and not (body.get("scope") or {}).get("windows") and asked.get("only") != CHANGED
    return bool(whole) and body["ended"] == DONE and not body["items_left_out"]
