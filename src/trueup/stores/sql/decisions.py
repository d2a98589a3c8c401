"""Decisions about cases, and differences that were accepted, in SQL.

Concurrency: whoever stores or concludes a decision holds the row of its case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from trueup.model.acceptance import Acceptance
from trueup.model.decision import Choice, Decision, DecisionState, judge, no_case
from trueup.model.evidence import Fact
from trueup.ports import Clock
from trueup.stores.sql.cases import stored_case
from trueup.stores.sql.evidence import recorded
from trueup.stores.sql.storage import Session, Storage, as_json, batches, marks, storable

_DECISION: Final = "id, about, choice, person, reason, shown, edited, until_us, state, note, at_us, lease_until"
_STORE: Final = f"""
    INSERT INTO trueup_decision ({_DECISION}) VALUES ({marks(_DECISION.split())}) ON CONFLICT (id) DO NOTHING
"""
_ACCEPTANCE: Final = "pair, key, authority_digest, replica_digest, fields, person, reason, until_us, at_us, about"
_ACCEPT: Final = f"""
    INSERT INTO trueup_acceptance ({_ACCEPTANCE}) VALUES ({marks(_ACCEPTANCE.split())})
    ON CONFLICT (pair, key) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _ACCEPTANCE.split(", ") if name not in ("pair", "key"))}
"""


class SqlDecisions:
    """Decisions in a database. clock: by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def decide(self, decision: Decision, *, two_person: bool, lease_us: int) -> Decision:
        """Stores a decision before it acts, and answers it as stored: `proposed`, or `acting` under a lease."""

        def decide(session: Session) -> Decision:
            case = stored_case(session, decision.case, self._storage.for_update)
            if case is None:
                raise no_case(decision.case)
            now_us = self._storage.now_us(session, self._clock)
            former = _stored(session, decision.case)
            judged = judge(case, former, decision, now_us, lease_us, two_person=two_person)
            for each in judged.replaced:
                statement = "UPDATE trueup_decision SET state = ? WHERE id = ?"
                session.execute(statement, (str(DecisionState.REPLACED), each.id))
            session.execute(_STORE, _kept(judged.decision))
            return judged.decision

        return self._storage.write(decide)

    def keep_decision(self, id_: str, lease_us: int) -> bool:
        """Extends the lease of a decision that acts; False where it does not."""

        def keep(session: Session) -> bool:
            until_us = self._storage.now_us(session, self._clock) + lease_us
            statement = "UPDATE trueup_decision SET lease_until = ? WHERE id = ? AND state = ?"
            return bool(session.execute(statement, (until_us, id_, str(DecisionState.ACTING))).rowcount)

        return self._storage.write(keep)

    def conclude(
        self,
        decision: Decision,
        state: DecisionState,
        note: str = "",
        close: str | None = None,
        fact: Fact | None = None,
    ) -> bool:
        """Says what came of a decision that acts, and closes the case with it; False where it does not act."""

        def conclude(session: Session) -> bool:
            case = stored_case(session, decision.case, self._storage.for_update)
            stored = next((each for each in _stored(session, decision.case) if each.id == decision.id), None)
            if case is None or stored is None or stored.state is not DecisionState.ACTING:
                return stored is not None and stored.state is state
            session.execute(
                "UPDATE trueup_decision SET state = ?, note = ?, lease_until = 0 WHERE id = ?",
                (str(state), storable(note), decision.id),
            )
            if close is not None and case.closed_us is None and case.shown == decision.shown:
                session.execute(
                    "UPDATE trueup_case SET closed_us = ?, closed = ? WHERE number = ?",
                    (self._storage.now_us(session, self._clock), storable(close), case.number),
                )
            if fact is not None:
                recorded(session, self._storage, self._clock, fact)
            return True

        return self._storage.write(conclude)

    def decisions(self, number: int) -> list[Decision]:
        """All decisions about a case, oldest first."""
        return self._storage.read(lambda session: _stored(session, number))

    # ── accepted differences ─────────────────────────────────────────────────────────────────────────

    def accept(self, acceptance: Acceptance) -> None:
        """Stores an accepted difference, in place of any other of the same record."""

        def accept(session: Session) -> None:
            session.execute(_ACCEPT, (
                acceptance.pair, acceptance.key, acceptance.authority_digest, acceptance.replica_digest,
                as_json(acceptance.fields), storable(acceptance.person), storable(acceptance.reason),
                acceptance.until_us, self._storage.now_us(session, self._clock), acceptance.case,
            ))  # fmt: skip

        self._storage.write(accept)

    def acceptances(self, pair: str, keys: Sequence[str] | None = None) -> dict[str, Acceptance]:
        """By key, those of these records, or of the whole pair, that have not expired."""

        def read(session: Session) -> Iterator[Acceptance]:
            now_us = self._storage.now_us(session, self._clock)
            if keys is None:
                yield from _acceptances(session, "pair = ? AND until_us > ?", (pair, now_us))
            for batch in batches(sorted(set(keys or ()))):
                these = f"pair = ? AND key IN ({marks(batch)}) AND until_us > ?"
                yield from _acceptances(session, these, (pair, *batch, now_us))

        return {each.key: each for each in self._storage.read(lambda session: [*read(session)])}

    def expired(self, pair: str) -> list[Acceptance]:
        """Those that have expired, in the order of their keys."""

        def read(session: Session) -> list[Acceptance]:
            now_us = self._storage.now_us(session, self._clock)
            return _acceptances(session, "pair = ? AND until_us <= ?", (pair, now_us))

        return self._storage.read(read)


def _stored(session: Session, case: int) -> list[Decision]:
    statement = f"SELECT {_DECISION} FROM trueup_decision WHERE about = ? ORDER BY number"
    return [_decision(values) for values in session.execute(statement, (case,)).fetchall()]


def _kept(decision: Decision) -> tuple[Any, ...]:
    return (
        decision.id, decision.case, str(decision.choice), storable(decision.person), storable(decision.reason),
        decision.shown, as_json(decision.values), decision.until_us, str(decision.state), storable(decision.note),
        decision.at_us, decision.lease_until_us,
    )  # fmt: skip


def _decision(values: Sequence[Any]) -> Decision:
    id_, case, choice, person, reason, shown, edited, until_us, state, note, at_us, lease_until_us = values
    return Decision(
        case, Choice(choice), person, reason, shown, None if edited is None else json.loads(edited), until_us, id_,
        DecisionState(state), note, at_us, lease_until_us,
    )  # fmt: skip


def _acceptances(session: Session, condition: str, parameters: Sequence[Any]) -> list[Acceptance]:
    statement = f"SELECT {_ACCEPTANCE} FROM trueup_acceptance WHERE {condition} ORDER BY key"
    found = session.execute(statement, parameters).fetchall()
    return [_acceptance(values) for values in found]


def _acceptance(values: Sequence[Any]) -> Acceptance:
    named = dict(zip(_ACCEPTANCE.split(", "), values, strict=True))
    case = named.pop("about")
    return Acceptance(**named | {"fields": tuple(json.loads(named["fields"])), "case": case})
