"""What people were told, and pulses, in SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from trueup.model.alert import Message, Telling, conditions_of
from trueup.model.pulse import Pulse
from trueup.ports import Clock
from trueup.stores.sql.handovers import SqlHandovers
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
        self.targets = SqlHandovers(
            storage, clock, "trueup_telling", ("target", "known", "outgoing", "told_us"), new=Telling, has=_has,
            made=_telling,
        )  # fmt: skip

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


def _has(telling: Telling) -> tuple[str, str | None]:
    known = json.dumps([asdict(each) for each in telling.known.values()])
    return known, None if telling.outgoing is None else json.dumps(telling.outgoing.as_json())


def _telling(shared: Mapping[str, Any], known: str, outgoing: str | None) -> Telling:
    conditions = {each.ident: each for each in conditions_of(json.loads(known))}
    message = None if outgoing is None else Message.of_json(json.loads(outgoing))
    return Telling(**shared, known=conditions, outgoing=message)
