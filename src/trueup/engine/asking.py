"""How a question to a person is put: what was seen, since when, and how it came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from trueup.engine.records import Records
from trueup.model.case import Case
from trueup.model.drift import Drift
from trueup.model.plan import PlanItem
from trueup.model.row import Row

CAUSES: Final[Mapping[Drift, str]] = {
    Drift.MISSING: "the replica never had it: an event was lost",
    Drift.REMOVED: "it was removed at the replica",
    Drift.ORPHANED: "the authority deleted it, and the replica still has what was written there",
    Drift.FOREIGN: "the replica has it, the authority does not, and it was not written by trueup",
    Drift.BEHIND: "the authority moved and the replica did not: an event was lost",
    Drift.EDITED: "it was edited at the replica",
    Drift.UNLIKE: "handler or mapping do not make the sides equal",
    Drift.CONFLICT: "both sides moved",
    Drift.UNKNOWN: "the sides differ, and were never seen to agree",
    Drift.DUPLICATE: "its key stands more than once on a side",
    Drift.FLAPPING: "it was repaired time and again, and drifted again",
}


def case_of(records: Records, item: PlanItem, now_us: int, *, row: Row | None, run: int = 0, found: str = "") -> Case:
    """The question about one drift. row: what the ledger knows of the record. found: where, if not by a run."""
    return Case(
        pair=records.pair.name,
        key=item.key,
        drift=str(item.drift),
        opened_us=now_us,
        authority=item.authority,
        replica=item.replica,
        fields=item.fields if item.authority is not None and item.replica is not None else (),
        ancestor=None if row is None else row.done_digest,
        run=run,
        cause="; ".join(_cause(item, row, found)),
        authority_digest=item.authority_digest,
        replica_digest=item.replica_digest,
        authority_version=item.version,
        changed_us=item.version if records.dated else None,
        agreed_us=None if row is None else row.done_at,
        revision=item.revision,
    )


def _cause(item: PlanItem, row: Row | None, found: str) -> Iterator[str]:
    yield CAUSES[item.drift]
    if found:
        yield f"found {found}"
    if row is None:
        return
    if row.repairs:
        yield f"repaired {row.repairs} times in a row before"
    if row.tries:
        yield f"attempt {row.tries} of a job"
    if row.last_error:
        yield f"the last attempt failed: {row.last_error}"
