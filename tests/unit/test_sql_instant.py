"""Connections that see one instant: lent, given back, and all closed in the end."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest
import sqlalchemy as sa

from trueup.sides.sql import instant
from trueup.sides.sql.hashing import Hasher
from trueup.sides.sql.instant import Closed, Instant
from trueup.sides.sql.limits import Limits


class Connection:
    """A connection that counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Stubborn:
    """An engine of which several connections see one instant, and whose statements do not end when they are told to."""

    shares_instant: ClassVar[bool] = True

    def begin(self, connection: Any) -> str:
        return "instant"

    def join(self, connection: Any, name: str) -> None:
        """Nothing to join."""

    def cancel(self, connection: Any) -> None:
        """Nothing ends."""


def opened() -> tuple[Instant, list[Connection]]:
    made: list[Connection] = []

    def connect() -> sa.Connection:
        made.append(Connection())
        return cast(sa.Connection, made[-1])

    return Instant(connect, cast(Hasher, Stubborn()), Limits()), made


@pytest.mark.parametrize("late", [False, True])
def test_all_connections_are_closed_in_the_end(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """Given connections that are given back before, or after nobody waited for them, I expect each closed once."""
    monkeypatch.setattr(instant, "_ENDING_MAX_S", 0.0)
    monkeypatch.setattr(instant, "_ENDING_S", 0.01)
    lent, made = opened()
    with lent.connection(), lent.connection():
        if late:
            lent.close()
            assert [each.closed for each in made] == [0, 0]
            with pytest.raises(Closed), lent.connection():
                pass
    lent.close()
    lent.close()
    assert [each.closed for each in made] == [1, 1]


def test_a_connection_that_is_given_back_late_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a snapshot that nobody closes again, I expect what comes back to it not to stay open."""
    monkeypatch.setattr(instant, "_ENDING_MAX_S", 0.0)
    monkeypatch.setattr(instant, "_ENDING_S", 0.01)
    lent, made = opened()
    with lent.connection():
        lent.close()
    assert [each.closed for each in made] == [1]
