"""Where anchors were given, in SQL. Whoever changes a place holds its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from trueup.model import anchor as rules
from trueup.model.anchor import Anchored
from trueup.model.evidence import Head
from trueup.ports import Clock
from trueup.stores.sql.steps import Step
from trueup.stores.sql.storage import Session, Storage, marks, storable

# The same text for every database: each of them reads these types as its own.
STEP: Final = Step(
    """
    CREATE TABLE trueup_anchored (
        place text PRIMARY KEY,
        number bigint NOT NULL,
        digest text NOT NULL,
        owner text NOT NULL,
        fence bigint NOT NULL,
        ready_us bigint NOT NULL,
        tries bigint NOT NULL,
        failed bigint NOT NULL,
        error text NOT NULL,
        given_us bigint
    )
    """,
    "CREATE TABLE trueup_secret (name text PRIMARY KEY, value text NOT NULL)",
)
_NAMES: Final = ("place", "number", "digest", "owner", "fence", "ready_us", "tries", "failed", "error", "given_us")
_COLUMNS: Final = ", ".join(_NAMES)
_SAVE: Final = f"""
    INSERT INTO trueup_anchored ({_COLUMNS}) VALUES ({marks(_NAMES)})
    ON CONFLICT (place) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _NAMES[1:])}
"""
_EMPTY: Final = f"INSERT INTO trueup_anchored ({_COLUMNS}) VALUES ({marks(_NAMES)}) ON CONFLICT (place) DO NOTHING"


class SqlAnchors:
    """Places of anchors in a database. clock: by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def anchored(self, places: Sequence[str]) -> dict[str, Anchored]:
        """What each of these places was given."""
        statement = f"SELECT {_COLUMNS} FROM trueup_anchored WHERE place IN ({marks(places) or 'NULL'})"
        found = self._storage.read(lambda session: session.execute(statement, tuple(places)).fetchall())
        known = {each.place: each for each in map(_anchored, found)}
        return {place: known.get(place, Anchored(place)) for place in places}

    def claim_place(self, seen: Anchored, owner: str, lease_us: int) -> Anchored | None:
        """Takes a place that nobody changed since it was read; None where somebody did."""
        taken: Anchored | None = None

        def take(session: Session) -> Anchored | None:
            nonlocal taken
            session.execute(_EMPTY, _values(Anchored(seen.place)))  # there is a row to hold, whoever else wants it
            stored = self._held_place(session, seen.place)
            if taken is not None and rules.held(stored, taken):
                return taken  # this is a repetition: the answer to the commit was lost
            now_us = self._storage.now_us(session, self._clock)
            if not rules.claimable(stored, seen, now_us):
                return None
            taken = rules.claim(stored or seen, owner, now_us, lease_us)
            session.execute(_SAVE, _values(taken))
            return taken

        return self._storage.write(take)

    def end_claim(self, anchored: Anchored) -> bool:
        """Frees a place and stores what it has now; False where the fence is old."""

        def end(session: Session) -> bool:
            stored = self._held_place(session, anchored.place)
            if not rules.held(stored, anchored):
                # Stored already, where the answer to the commit was lost.
                return stored is not None and _values(stored) == _values(anchored)
            session.execute(_SAVE, _values(anchored))
            return True

        return self._storage.write(end)

    def _held_place(self, session: Session, place: str) -> Anchored | None:
        """The place as it is stored, held until the transaction ends."""
        statement = f"SELECT {_COLUMNS} FROM trueup_anchored WHERE place = ? {self._storage.for_update}"
        found = session.execute(statement, (place,)).fetchone()
        return None if found is None else _anchored(found)


def _values(of: Anchored) -> tuple[Any, ...]:
    return (
        of.place, of.head.number, of.head.digest, of.owner, of.fence, of.ready_us, of.tries, of.failed,
        storable(of.error), of.given_us,
    )  # fmt: skip


def _anchored(values: Sequence[Any]) -> Anchored:
    place, number, digest, *rest = values
    return Anchored(place, Head(number, digest), *rest)
