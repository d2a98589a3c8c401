"""Evidence in SQL: one chain, to which rows are only ever added, but for what is cut off at its beginning.

Concurrency: whoever appends holds the row of the chain, the last that its transaction takes, until that ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

from trueup.model.decision import MADE
from trueup.model.evidence import CUT, DECISION, RUN, Entry, Fact, Head, append, cut_fact
from trueup.model.run import OPEN
from trueup.ports import Clock
from trueup.stores.sql.storage import ROWS_MAX, Session, Storage, marks

_ENTRY: Final = "number, kind, pair, about, at_us, body, previous, digest"
_CHAIN: Final = "evidence"
# Runs and decisions from before the store kept evidence have none, and are not missed.
_UNRECORDED: Final = f"""
    SELECT '{RUN}', r.pair, CAST(r.number AS TEXT) FROM trueup_run r
    WHERE r.ended <> '{OPEN}' AND r.number > (SELECT coalesce(max(runs_before), 0) FROM trueup_chain)
    AND NOT EXISTS (SELECT 1 FROM trueup_evidence e WHERE e.kind = '{RUN}' AND e.about = CAST(r.number AS TEXT))
    UNION ALL
    SELECT '{DECISION}', c.pair, d.id FROM trueup_decision d JOIN trueup_case c ON c.number = d.about
    WHERE d.state IN ({", ".join(f"'{each.value}'" for each in sorted(MADE))})
    AND d.number > (SELECT coalesce(max(decisions_before), 0) FROM trueup_chain)
    AND NOT EXISTS (SELECT 1 FROM trueup_evidence e WHERE e.kind = '{DECISION}' AND e.about = d.id)
"""
# Of what is cut, nothing may be taken to have no entry.
_CUT_RUNS: Final = f"""
    SELECT coalesce(max(r.number), 0) FROM trueup_run r JOIN trueup_evidence e
    ON e.kind = '{RUN}' AND e.about = CAST(r.number AS TEXT) AND e.number <= ?
"""
_CUT_DECISIONS: Final = f"""
    SELECT coalesce(max(d.number), 0) FROM trueup_decision d JOIN trueup_evidence e
    ON e.kind = '{DECISION}' AND e.about = d.id AND e.number <= ?
"""
_KEY: Final = "redaction"


class SqlEvidence:
    """The chain of a database. clock: by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def put_on_record(self, fact: Fact) -> Entry:
        """Appends an entry, or answers the one that puts this very fact on record already."""
        return self._storage.write(lambda session: recorded(session, self._storage, self._clock, fact))

    def entries(
        self, pairs: Sequence[str] | None = None, *, after: int = 0, limit: int | None = None, newest: bool = False
    ) -> list[Entry]:
        """Entries in order, behind the number `after`; newest: the last ones first."""
        of_pairs = "" if pairs is None else f"AND pair IN ({marks(pairs) or 'NULL'})"
        statement = (
            f"SELECT {_ENTRY} FROM trueup_evidence WHERE number > ? {of_pairs} "
            f"ORDER BY number {'DESC' if newest else 'ASC'} LIMIT ?"
        )
        asked = (after, *(pairs or ()), ROWS_MAX if limit is None else limit)
        found: list[Any] = self._storage.read(lambda session: session.execute(statement, asked).fetchall())
        return [_entry(values) for values in found]

    def entry(self, number: int) -> Entry | None:
        """The entry of this number, or None."""
        return self._storage.read(lambda session: _found(session, "number = ?", (number,)))

    def fact(self, kind: str, about: str) -> Entry | None:
        """The entry about this run or decision, or None."""
        return self._storage.read(lambda session: _found(session, "kind = ? AND about = ?", (kind, about)))

    def head(self) -> Head:
        """What the store itself holds for the end of the chain."""
        return self._storage.read(lambda session: _head(session, "") or Head())

    def unrecorded(self) -> list[tuple[str, str, str]]:
        """(kind, pair, about) of runs that ended and decisions that were made without an entry."""
        found: list[Any] = self._storage.read(lambda session: session.execute(_UNRECORDED).fetchall())
        return [(str(kind), str(pair), str(about)) for kind, pair, about in found]

    def cut_evidence(self, before_us: int) -> Entry | None:
        """Removes the entries up to the first of that time or later; answers the one that stands for them."""

        def cut(session: Session) -> Entry | None:
            _held(session, self._storage)
            left = "SELECT min(number) FROM trueup_evidence WHERE at_us >= ?"
            first = session.execute(left, (before_us,)).fetchone()[0]
            going = "SELECT kind, at_us, number, digest FROM trueup_evidence WHERE number < ? ORDER BY number"
            found = session.execute(going, (ROWS_MAX if first is None else first,)).fetchall()
            if not found:
                return None
            last = Head(int(found[-1][2]), str(found[-1][3]))
            former = _found(session, "kind = ? ORDER BY number DESC LIMIT 1", (CUT,))
            fact = cut_fact(former, [(str(kind), int(at_us)) for kind, at_us, *_ in found], last, before_us)
            for column, newest in (("runs_before", _CUT_RUNS), ("decisions_before", _CUT_DECISIONS)):
                number = int(session.execute(newest, (last.number,)).fetchone()[0])
                moved = f"UPDATE trueup_chain SET {column} = ? WHERE name = ? AND {column} < ?"
                session.execute(moved, (number, _CHAIN, number))
            entry = recorded(session, self._storage, self._clock, fact)
            session.execute("DELETE FROM trueup_evidence WHERE number <= ?", (last.number,))
            return entry

        return self._storage.write(cut)

    def redaction_key(self) -> str:
        """64 hex digits, made when it is first asked for."""

        def made(session: Session) -> str:
            insert = "INSERT INTO trueup_secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
            session.execute(insert, (_KEY, secrets.token_hex(32)))
            return _secret(session) or ""

        return self._storage.read(_secret) or self._storage.write(made)


def recorded(session: Session, storage: Storage, clock: Clock | None, fact: Fact) -> Entry:
    """The entry that puts a fact on record, appended within a transaction unless it is there already."""
    head = _held(session, storage)
    known = _found(session, "kind = ? AND about = ?", (fact.kind, fact.about))
    if known is not None:
        return known
    # A chain that somebody tampered with goes on all the same: that shows, and must not hold up any run.
    last = int(session.execute("SELECT coalesce(max(number), 0) FROM trueup_evidence").fetchone()[0])
    entry = append(Head(max(head.number, last), head.digest), fact, storage.now_us(session, clock))
    session.execute(f"INSERT INTO trueup_evidence ({_ENTRY}) VALUES ({marks(_ENTRY.split())})", _kept(entry))
    moved = "UPDATE trueup_chain SET number = ?, digest = ? WHERE name = ?"
    session.execute(moved, (entry.number, entry.digest, _CHAIN))
    return entry


def _held(session: Session, storage: Storage) -> Head:
    """The end of the chain, to which nobody else may append before the transaction ends."""
    head = _head(session, storage.for_update)
    if head is None:
        insert = f"INSERT INTO trueup_chain (name, number, digest) VALUES ({marks('123')}) ON CONFLICT DO NOTHING"
        session.execute(insert, (_CHAIN, 0, Head().digest))
        head = _head(session, storage.for_update) or Head()
    return head


def _secret(session: Session) -> str | None:
    found = session.execute("SELECT value FROM trueup_secret WHERE name = ?", (_KEY,)).fetchone()
    return None if found is None else str(found[0])


def _head(session: Session, for_update: str) -> Head | None:
    statement = f"SELECT number, digest FROM trueup_chain WHERE name = ? {for_update}"
    found = session.execute(statement, (_CHAIN,)).fetchone()
    return None if found is None else Head(int(found[0]), str(found[1]))


def _found(session: Session, condition: str, parameters: Sequence[Any]) -> Entry | None:
    found = session.execute(f"SELECT {_ENTRY} FROM trueup_evidence WHERE {condition}", parameters).fetchone()
    return None if found is None else _entry(found)


def _kept(entry: Entry) -> tuple[Any, ...]:
    fact = entry.fact
    return (
        entry.number, fact.kind, fact.pair, fact.about, entry.at_us, fact.body, entry.previous, entry.digest,
    )  # fmt: skip


def _entry(values: Sequence[Any]) -> Entry:
    number, kind, pair, about, at_us, body, previous, digest = values
    return Entry(number, Fact(kind, pair, about, body), at_us, previous, digest)
