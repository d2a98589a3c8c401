"""Canonical texts as engines and people spell them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.model.canonical import canonical_text
from trueup.model.kinds import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT,
    INSTANT,
    INTEGER,
    JSON,
    TEXT,
    TIMESTAMP,
    UUID,
    Kind,
)  # fmt: skip
from trueup.model.times import timestamp_text
from trueup.sides.sql.spelling import as_stored, spellings, wall_clock

BERLIN = ZoneInfo("Europe/Berlin")
MICROSECONDS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)


@pytest.mark.parametrize(("text", "kind", "stored", "expected"), [
    ("true", BOOLEAN, INTEGER, "1"),
    ("false", BOOLEAN, DECIMAL, "0"),
    ("2", INTEGER, BOOLEAN, "!2"),
    ("7.5", DECIMAL, INTEGER, "!7.5"),
    ("7", DECIMAL, INTEGER, "7"),
    ("0.1", DECIMAL, FLOAT, "0.1"),
    ("f81d4fae-7dec-11d0-a765-00a0c91e6bf6", UUID, BYTES, "f81d4fae7dec11d0a76500a0c91e6bf6"),
    ("f81d4fae7dec11d0a76500a0c91e6bf6", BYTES, UUID, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    ("2026-01-01T00:00:00", TIMESTAMP, DATE, "2026-01-01"),
    ("2026-01-01", DATE, TIMESTAMP, "2026-01-01T00:00:00"),
    ('["1",null]', Kind("array", item=INTEGER), JSON, "[1,null]"),
    ("true", BOOLEAN, TEXT, "true"),
    ("!x", INTEGER, TEXT, "x"),
    ("!x", TEXT, TEXT, "!x"),
    ("!x", INTEGER, DECIMAL, "!x"),
    ("2026-07-01T12:00:00Z", INSTANT, TIMESTAMP, "2026-07-01T14:00:00"),
    ("infinity", INSTANT, TIMESTAMP, "infinity"),
])  # fmt: skip
def test_as_stored(text: str, kind: Kind, stored: Kind, expected: str) -> None:
    assert as_stored(text, kind, stored, BERLIN) == expected


@pytest.mark.parametrize(("kind", "text"), [
    (UUID, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), (BOOLEAN, "true"), (BOOLEAN, "false"), (BYTES, "00ff"),
    (DATE, "2026-01-01"), (INTEGER, "7"), (DECIMAL, "0.1"),
])  # fmt: skip
def test_every_spelling_means_the_text(kind: Kind, text: str) -> None:
    assert text in spellings(text, kind, None)
    assert {canonical_text(each, kind) for each in spellings(text, kind, None)} == {text}


@given(MICROSECONDS, st.booleans(), st.sampled_from([None, BERLIN, ZoneInfo("UTC")]))
def test_every_spelling_of_a_time_means_the_time(us: int, aware: bool, zone: ZoneInfo | None) -> None:
    kind = INSTANT if aware else TIMESTAMP
    text = timestamp_text(us, aware)
    spelled = spellings(text, kind, zone)
    assert spelled[0] == text
    assert len(set(spelled)) == len(spelled)
    meant = {canonical_text(each, kind, zone) for each in spelled}
    # A wall clock shows the hour before winter time twice, and names neither.
    assert meant == {text} or (aware and zone is BERLIN and canonical_text(wall_clock(text, zone), kind, zone) in meant)


@given(MICROSECONDS.filter(lambda us: abs(us) < 10**16))
def test_a_wall_clock_and_its_zone_give_the_instant_back(us: int) -> None:
    text = timestamp_text(us, aware=True)
    shown = wall_clock(text, BERLIN)
    back = canonical_text(shown, INSTANT, BERLIN)
    assert back == text or wall_clock(back or "", BERLIN) == shown
