"""Dead letters in SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from trueup.model.letter import BYTES_KEPT, LETTERS_KEPT, DeadLetter
from trueup.stores.sql.storage import Session, Storage

_LETTER: Final = "source, received_us, status, reason, body, size, headers, delivery, number"
# The newest of a source, as many as fit; the one that was just kept always stays.
_EVICT: Final = """
    DELETE FROM trueup_letter WHERE number IN (
        SELECT number FROM (
            SELECT number,
                   row_number() OVER (ORDER BY number DESC) AS place,
                   sum(kept) OVER (ORDER BY number DESC) AS bytes
            FROM trueup_letter WHERE source = ?) AS ranked
        WHERE place > ? OR (bytes > ? AND place > 1))
"""


class SqlLetters:
    """Dead letters in a database."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def keep_letter(self, letter: DeadLetter) -> int:
        """Stores a letter, durable when this returns; answers how many old ones of its source had to go for it."""

        def keep(session: Session) -> int:
            session.execute(
                "INSERT INTO trueup_letter (source, received_us, status, reason, size, kept, headers, delivery, body) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    letter.source, letter.received_us, letter.status, letter.reason, letter.size, len(letter.body),
                    json.dumps(dict(letter.headers)), letter.delivery, letter.body,
                ),
            )  # fmt: skip
            evicted: int = session.execute(_EVICT, (letter.source, LETTERS_KEPT, BYTES_KEPT)).rowcount
            return evicted

        # Kept twice, a letter would be answered twice.
        return self._storage.write(keep, repeatable=False)

    def letters(self, source: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """The newest first, of one source or of all."""
        where, asked = ("", ()) if source is None else ("WHERE source = ?", (source,))
        statement = f"SELECT {_LETTER} FROM trueup_letter {where} ORDER BY number DESC LIMIT ?"
        found = self._storage.read(lambda session: session.execute(statement, (*asked, limit)).fetchall())
        return [_letter(values) for values in found]

    def count_letters(self, source: str | None = None) -> int:
        """How many are kept."""
        where, asked = ("", ()) if source is None else ("WHERE source = ?", (source,))
        statement = f"SELECT count(*) FROM trueup_letter {where}"
        return int(self._storage.read(lambda session: session.execute(statement, asked).fetchone()[0]))

    def letter(self, number: int) -> DeadLetter | None:
        """The letter with this number, or None."""
        statement = f"SELECT {_LETTER} FROM trueup_letter WHERE number = ?"
        values = self._storage.read(lambda session: session.execute(statement, (number,)).fetchone())
        return None if values is None else _letter(values)

    def refuse_letter(self, number: int, status: int, reason: str) -> None:
        """Says why a letter was refused again."""
        statement = "UPDATE trueup_letter SET status = ?, reason = ? WHERE number = ?"
        self._storage.write(lambda session: session.execute(statement, (status, reason, number)))

    def drop_letters(self, numbers: Sequence[int]) -> int:
        """Forgets these; answers how many there were."""

        def drop(session: Session) -> int:
            statement = "DELETE FROM trueup_letter WHERE number = ?"
            return sum(session.execute(statement, (number,)).rowcount for number in sorted(set(numbers)))

        return self._storage.write(drop)

    def forget_letters(self, older_than_us: int) -> int:
        """Forgets those that were received before that time; answers how many there were."""
        statement = "DELETE FROM trueup_letter WHERE received_us < ?"
        return int(self._storage.write(lambda session: session.execute(statement, (older_than_us,)).rowcount))


def _letter(values: Sequence[Any]) -> DeadLetter:
    named = dict(zip(_LETTER.split(", "), values, strict=True))
    return DeadLetter(**named | {"headers": json.loads(named["headers"])})
