"""What people were told, and pulses, in SQL. Whoever changes a target holds its row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from trueup.model import alert as rules
from trueup.model.alert import Message, News, Telling, conditions_of
from trueup.model.pulse import Pulse
from trueup.ports import Clock
from trueup.stores.sql.steps import Step
from trueup.stores.sql.storage import Session, Storage, batches, marks, storable

# The same text for every database: each of them reads these types as its own.
STEP: Final = Step(
    """
    CREATE TABLE trueup_telling (
        target text PRIMARY KEY,
        known text NOT NULL,
        outgoing text,
        owner text NOT NULL,
        fence bigint NOT NULL,
        ready_us bigint NOT NULL,
        tries bigint NOT NULL,
        failed bigint NOT NULL,
        error text NOT NULL,
        told_us bigint
    )
    """,
    """
    CREATE TABLE trueup_pulse (
        pair text PRIMARY KEY,
        event_us bigint,
        pings_failed bigint NOT NULL DEFAULT 0,
        in_row bigint NOT NULL DEFAULT 0,
        ping_error text NOT NULL DEFAULT ''
    )
    """,
)
_NAMES: Final = ("target", "known", "outgoing", "owner", "fence", "ready_us", "tries", "failed", "error", "told_us")
_COLUMNS: Final = ", ".join(_NAMES)
_SAVE: Final = f"""
    INSERT INTO trueup_telling ({_COLUMNS}) VALUES ({marks(_NAMES)})
    ON CONFLICT (target) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _NAMES[1:])}
"""
_EMPTY: Final = f"""
    INSERT INTO trueup_telling ({_COLUMNS}) VALUES (?, '[]', NULL, '', 0, 0, 0, 0, '', NULL)
    ON CONFLICT (target) DO NOTHING
"""
_HEARD: Final = """
    INSERT INTO trueup_pulse (pair, event_us) VALUES (?, ?)
    ON CONFLICT (pair) DO UPDATE SET event_us = excluded.event_us
"""
_PING_FAILED: Final = """
    INSERT INTO trueup_pulse (pair, pings_failed, in_row, ping_error) VALUES (?, 1, 1, ?)
    ON CONFLICT (pair) DO UPDATE SET pings_failed = trueup_pulse.pings_failed + 1,
        in_row = trueup_pulse.in_row + 1, ping_error = excluded.ping_error
"""
_PING_ARRIVED: Final = "UPDATE trueup_pulse SET in_row = 0, ping_error = '' WHERE pair = ? AND in_row > 0"


class SqlAlerts:
    """Tellings and pulses in a database. clock: by default the storage's."""

    def __init__(self, storage: Storage, clock: Clock | None) -> None:
        self._storage, self._clock = storage, clock

    def tellings(self, targets: Sequence[str]) -> dict[str, Telling]:
        """What each of these targets was told."""
        statement = f"SELECT {_COLUMNS} FROM trueup_telling WHERE target IN ({marks(targets)})"
        found = self._storage.read(lambda session: session.execute(statement, tuple(targets)).fetchall())
        known = {telling.target: telling for telling in map(_telling, found)}
        return {target: known.get(target, Telling(target)) for target in targets}

    def claim_telling(self, seen: Telling, some: News, owner: str, lease_us: int) -> Telling | None:
        """Takes a target that nobody changed since it was read, and stores its message; None where somebody did."""
        taken: Telling | None = None

        def take(session: Session) -> Telling | None:
            nonlocal taken
            session.execute(_EMPTY, (seen.target,))  # there is a row to hold, whoever else wants it
            stored = self._held(session, seen.target)
            if taken is not None and rules.held(stored, taken):
                return taken  # this is a repetition: the answer to the commit was lost
            now_us = self._storage.now_us(session, self._clock)
            if not rules.claimable(stored, seen, now_us):
                return None
            taken = rules.claim(stored or seen, some, owner, now_us, lease_us)
            session.execute(_SAVE, _values(taken))
            return taken

        return self._storage.write(take)

    def end_telling(self, telling: Telling) -> bool:
        """Frees a target and stores what it knows now; False where the fence is old."""

        def end(session: Session) -> bool:
            stored = self._held(session, telling.target)
            if not rules.held(stored, telling):
                # Stored already, where the answer to the commit was lost.
                return stored is not None and _values(stored) == _values(telling)
            session.execute(_SAVE, _values(telling))
            return True

        return self._storage.write(end)

    def pulses(self, pairs: Sequence[str]) -> dict[str, Pulse]:
        """The pulse of each of these pairs."""

        def read(session: Session) -> list[Pulse]:
            found: list[Pulse] = []
            for batch in batches(pairs):
                columns = "pair, event_us, pings_failed, in_row, ping_error"
                statement = f"SELECT {columns} FROM trueup_pulse WHERE pair IN ({marks(batch)})"
                found += [Pulse(*values) for values in session.execute(statement, tuple(batch)).fetchall()]
            return found

        known = {pulse.pair: pulse for pulse in self._storage.read(read)}
        return {pair: known.get(pair, Pulse(pair)) for pair in pairs}

    def hear(self, pairs: Sequence[str]) -> None:
        """An event came for each of these pairs."""

        def heard(session: Session) -> None:
            now_us = self._storage.now_us(session, self._clock)
            session.executemany(_HEARD, [(pair, now_us) for pair in sorted(set(pairs))])

        self._storage.write(heard, durable=False)

    def note_ping(self, pair: str, error: str | None) -> None:
        """A ping of this pair arrived, or did not."""

        def note(session: Session) -> None:
            if error is None:
                session.execute(_PING_ARRIVED, (pair,))
            else:
                session.execute(_PING_FAILED, (pair, storable(error)))

        self._storage.write(note, durable=False)

    def _held(self, session: Session, target: str) -> Telling | None:
        """The telling as it is stored, held until the transaction ends."""
        statement = f"SELECT {_COLUMNS} FROM trueup_telling WHERE target = ? {self._storage.for_update}"
        found = session.execute(statement, (target,)).fetchone()
        return None if found is None else _telling(found)


def _values(telling: Telling) -> tuple[Any, ...]:
    known = json.dumps([asdict(each) for each in telling.known.values()])
    outgoing = None if telling.outgoing is None else json.dumps(telling.outgoing.as_json())
    return (
        telling.target, known, outgoing, telling.owner, telling.fence, telling.ready_us, telling.tries,
        telling.failed, storable(telling.error), telling.told_us,
    )  # fmt: skip


def _telling(values: Sequence[Any]) -> Telling:
    named = dict(zip(_NAMES, values, strict=True))
    known = {each.ident: each for each in conditions_of(json.loads(named["known"]))}
    outgoing = None if named["outgoing"] is None else Message.of_json(json.loads(named["outgoing"]))
    return Telling(**named | {"known": known, "outgoing": outgoing})
