"""Cases in SQL, and what was said about them; decisions stand in a file of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from trueup.model.case import ANY_CASE, Case, CaseFilter, Comment
from trueup.ports import Clock
from trueup.stores.sql.storage import ROWS_MAX, Session, Storage, as_json, batches, marks, storable

_PAGE: Final = 500
# The column `detail` holds the cause; `extra` is of programs of the past.
_SEEN: Final = (
    "drift, authority, replica, fields, ancestor, run, detail, authority_digest, replica_digest, authority_version, "
    "changed_us, agreed_us, revision"
)
_ASKED: Final = f"pair, key, opened_us, assignee, due_us, {_SEEN}"
_CASE: Final = f"{_ASKED}, number, closed_us, closed"
_OPEN: Final = f"""
    INSERT INTO trueup_case ({_ASKED}, extra) VALUES ({marks(_ASKED.split())}, '{{}}')
    ON CONFLICT (pair, key) WHERE closed_us IS NULL DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _SEEN.split(", "))}
"""


class SqlCases:
    """Cases in a database. clock: by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def open_cases(self, cases: Sequence[Case]) -> dict[str, int]:
        """Opens cases; an open case about the same question is refreshed instead. Answers numbers of the new ones."""

        def open_(session: Session) -> dict[str, int]:
            last = session.execute("SELECT coalesce(max(number), 0) FROM trueup_case").fetchone()[0]
            newer = "SELECT key, number FROM trueup_case WHERE number > ? AND pair = ?"
            # In the order of the keys, so that two programs never wait for each other.
            for case in sorted(cases, key=lambda case: (case.pair, case.key)):
                session.executemany(_OPEN, [_kept(case)])
            return {
                key: number
                for pair in {case.pair for case in cases}
                for key, number in session.execute(newer, (last, pair)).fetchall()
            }

        return self._storage.write(open_)

    def close_cases(self, pair: str, keys: Sequence[str], how: str) -> dict[str, int]:
        """Closes the open cases about these records, with the reason; answers their numbers, by key."""

        def close(session: Session) -> dict[str, int]:
            now_us, closed = self._storage.now_us(session, self._clock), {}
            for some in batches(sorted(set(keys))):
                found = session.execute(
                    f"SELECT key, number FROM trueup_case WHERE pair = ? AND key IN ({marks(some)}) "
                    f"AND closed_us IS NULL ORDER BY key {self._storage.for_update}",
                    (pair, *some),
                ).fetchall()
                statement = "UPDATE trueup_case SET closed_us = ?, closed = ? WHERE number = ?"
                session.executemany(statement, [(now_us, storable(how), number) for _, number in found])
                closed.update(found)
            return closed

        return self._storage.write(close)

    def case(self, number: int) -> Case | None:
        """The case of this number, or None."""
        return self._storage.read(lambda session: stored_case(session, number))

    def cases(
        self,
        pair: str | None = None,
        where: CaseFilter = ANY_CASE,
        *,
        open_only: bool = True,
        after: Case | None = None,
        limit: int | None = None,
    ) -> list[Case]:
        """Cases of a pair, or of all, oldest first, behind the case `after`."""
        wanted = ROWS_MAX if limit is None else limit
        found: list[Case] = []
        while len(found) < wanted and (page := self._page(pair, where, open_only, after)):
            found += [case for case in page if where.fits(case)]
            after = page[-1]
        return found[:wanted]

    def _page(self, pair: str | None, where: CaseFilter, open_only: bool, after: Case | None) -> list[Case]:
        asked: dict[str, Any] = {
            "pair = ?": pair, "drift = ?": where.drift, "key = ?": where.key, "opened_us <= ?": where.opened_until_us,
            "coalesce(assignee, '') = ?": where.assignee,
        }  # fmt: skip
        asked = {condition: value for condition, value in asked.items() if value is not None}
        conditions, parameters = [*asked], [*asked.values()]
        if open_only:
            conditions.append("closed_us IS NULL")
        if after is not None:
            conditions.append("(opened_us, number) > (?, ?)")
            parameters += [after.opened_us, after.number]
        statement = (
            f"SELECT {_CASE} FROM trueup_case {'WHERE ' if conditions else ''}{' AND '.join(conditions)} "
            f"ORDER BY opened_us, number LIMIT {_PAGE}"
        )
        found = self._storage.read(lambda session: session.execute(statement, parameters).fetchall())
        return [_case(values) for values in found]

    def count_cases(self, pair: str | None = None) -> int:
        """How many cases wait for a person."""
        of_pair, asked = ("", ()) if pair is None else ("AND pair = ?", (pair,))
        statement = f"SELECT count(*) FROM trueup_case WHERE closed_us IS NULL {of_pair}"
        return int(self._storage.read(lambda session: session.execute(statement, asked).fetchone()[0]))

    def assign_case(self, number: int, assignee: str | None, due_us: int | None = None) -> bool:
        """Says who looks into a case, and until when; False where there is no such case, or it is closed."""
        statement = "UPDATE trueup_case SET assignee = ?, due_us = ? WHERE number = ? AND closed_us IS NULL"
        name = None if assignee is None else storable(assignee)
        return bool(self._storage.write(lambda session: session.execute(statement, (name, due_us, number)).rowcount))

    def comment(self, number: int, comment: Comment) -> bool:
        """Keeps what a person said about a case; False where there is no such case."""

        def keep(session: Session) -> bool:
            if stored_case(session, number) is None:
                return False
            now_us = self._storage.now_us(session, self._clock)
            session.execute(
                "INSERT INTO trueup_comment (about, person, text, at_us) VALUES (?, ?, ?, ?)",
                (number, storable(comment.person), storable(comment.text), now_us),
            )
            return True

        # Done twice it would be said twice.
        return self._storage.write(keep, repeatable=False)

    def comments(self, number: int) -> list[Comment]:
        """What was said about a case, oldest first."""
        statement = "SELECT person, text, at_us FROM trueup_comment WHERE about = ? ORDER BY number"
        found = self._storage.read(lambda session: session.execute(statement, (number,)).fetchall())
        return [Comment(*values) for values in found]


def stored_case(session: Session, number: int, locking: str = "") -> Case | None:
    """The case of this number as a transaction sees it. locking: what ends a SELECT that holds its row."""
    found = session.execute(f"SELECT {_CASE} FROM trueup_case WHERE number = ? {locking}", (number,)).fetchone()
    return None if found is None else _case(found)


def _kept(case: Case) -> tuple[Any, ...]:
    return (
        case.pair, case.key, case.opened_us, case.assignee, case.due_us, case.drift, as_json(case.authority),
        as_json(case.replica), as_json(case.fields), case.ancestor, case.run, storable(case.cause),
        case.authority_digest, case.replica_digest, case.authority_version, case.changed_us, case.agreed_us,
        case.revision,
    )  # fmt: skip


def _case(values: Sequence[Any]) -> Case:
    named = dict(zip(_CASE.split(", "), values, strict=True))
    for name in ("authority", "replica", "fields"):
        named[name] = None if named[name] is None else json.loads(named[name])
    cause = named.pop("detail")
    return Case(**named | {"fields": tuple(named["fields"]), "cause": cause})
