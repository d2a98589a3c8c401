"""The plan of a run: every confirmed drift, what is to be done about it, and what became of that."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from trueup.model.drift import Drift, Verdict

Values = Mapping[str, str | None]


class ItemState(enum.StrEnum):
    """planned: decided, nothing done yet. held: a breaker stopped it. offered: a job is to repair it.

    asked: a case is open. accepted: a known difference. overtaken: the record moved since it was judged. dropped: a
    plan that was held and is no longer wanted.
    """

    PLANNED = "planned"
    HELD = "held"
    OFFERED = "offered"
    ASKED = "asked"
    ACCEPTED = "accepted"
    OVERTAKEN = "overtaken"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One confirmed drift of a run.

    action, version, authority_digest: what the authority asks for; `delete` where it lacks the record. authority,
    replica: canonical texts by name, None where a side lacks the record. fields: names of the fields that differ,
    of all compared ones where a side lacks the record.
    revision: the ledger row's when it was judged (0 = no row). removes: whether the repair removes a record.
    """

    key: str
    drift: Drift
    verdict: Verdict
    action: str
    run: int = 0
    state: ItemState = ItemState.PLANNED
    authority: Values | None = None
    replica: Values | None = None
    fields: tuple[str, ...] = ()
    version: int | None = None
    authority_digest: str | None = None
    replica_digest: str | None = None
    revision: int = 0
    removes: bool = False

    def texts(self) -> dict[str, tuple[str | None, str | None]]:
        """The authority's and the replica's text of each field that differs."""
        left, right = self.authority or {}, self.replica or {}
        return {name: (left.get(name), right.get(name)) for name in self.fields}
