"""What evidence says when it is read as a whole: is it as it was written, and what became of each drift?

Nothing here looks at the sides or at the ledger: what can't be told from the entries alone is not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from trueup.engine.evidence import plan_digest
from trueup.model.evidence import DECISION, RUN, Entry, Finding, Head, Verified, verify
from trueup.model.run import CHANGED, DONE
from trueup.ports import Archive

PAGE: Final = 500
Ending = Literal["agreed", "accepted", "decided", "open", "again"]


@dataclass(slots=True)
class Proof:
    """Whether evidence is as it was written, and whether it is complete.

    unrecorded: (kind, pair, about) of what happened without an entry. plans: plans that were checked against theirs.
    """

    chain: Verified
    unrecorded: list[tuple[str, str, str]] = field(default_factory=list)
    plans: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong and nothing is missing."""
        return self.chain.intact and not self.unrecorded


def prove(archive: Archive, anchors: Sequence[Head] = ()) -> Proof:
    """Looks at the whole chain of a store, at what is missing in it, and at the plans that are still kept."""
    plans: list[Entry] = []
    kept = archive.head()
    entries = _noting(all_entries(archive, until=kept.number), plans)
    proof = Proof(verify(entries, kept, anchors), archive.unrecorded())
    for entry in plans:
        items = archive.items(int(entry.fact.about))
        proof.plans += bool(items)
        if items and plan_digest(items) != entry.fact.read()["plan"]["digest"]:
            said = f"the plan of run {entry.fact.about} is no longer as entry {entry.number} has it"
            proof.chain.findings.append(Finding(entry.number, "altered", said))
    return proof


def all_entries(archive: Archive, pairs: Sequence[str] | None = None, until: int | None = None) -> Iterator[Entry]:
    """Every entry in order, a page at a time. until: not those that were appended meanwhile."""
    last = 0
    while page := archive.entries(pairs, after=last, limit=PAGE):
        yield from (each for each in page if until is None or each.number <= max(until, 0) or not _is_new(each, until))
        last = page[-1].number


def _is_new(entry: Entry, until: int) -> bool:
    return entry.number > until


def _noting(entries: Iterator[Entry], plans: list[Entry]) -> Iterator[Entry]:
    for entry in entries:
        if entry.fact.kind == RUN and '"plan":' in entry.fact.body and '"records":0}' not in entry.fact.body:
            plans.append(entry)
        yield entry
