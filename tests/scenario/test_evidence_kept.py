"""Evidence is kept for as long as its retention says; what was cut leaves a chain that can be verified."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import trueup
from trueup.cli.evidence_page import Period, page_of
from trueup.engine.account import all_entries, prove
from trueup.errors import ConfigError
from trueup.model.evidence import CUT, cut_in, entry_line
from trueup.model.retention import retention
from trueup.testing.clock import ManualClock

DAY_S = 86_400


class Books:
    """A pair that is compared now and then, by a clock that is moved by hand."""

    def __init__(self, folder: Path, **retention: str) -> None:
        self.clock, self.path = ManualClock(), folder / "state.db"
        self.project = trueup.Project(f"sqlite:///{self.path}", clock=self.clock, seed=1, retention=retention)
        rows = [{"id": 1, "name": "a"}]
        sides = [trueup.Memory(rows, key="id", clock=self.clock) for _ in range(2)]
        self.pair = self.project.pair("orders", authority=sides[0], replica=sides[1], settle=0)

    def live(self, days: int) -> None:
        """One comparison each day."""
        for _ in range(days):
            self.pair.adopt()
            self.clock.advance(DAY_S)

    @property
    def entries(self) -> list[Any]:
        return self.project.archive.entries()

    def said(self) -> str:
        proof = prove(self.project.archive)
        assert proof.holds
        return page_of(self.project.archive, None, proof, Period(None, None, self.clock.now_us()))


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    made = Books(tmp_path, evidence="40d")
    with made.project:
        yield made


def month_of(us: int) -> str:
    return f"{dt.datetime.fromtimestamp(us // 1_000_000, dt.UTC):%Y-%m}"


def test_whole_months_are_cut_once_they_are_old(books: Books) -> None:
    """Given a comparison each day from 15 January on, I expect January to go in the month in which its end is old."""
    books.live(50)
    assert books.project.keeping().once().evidence == 0  # 6 March: the oldest that must be kept is of January
    books.live(7)
    assert books.project.keeping().once().evidence == 17  # 13 March
    first, *_, standing = books.entries
    assert (month_of(first.at_us), standing.fact.kind) == ("2027-02", CUT)
    assert books.project.keeping().once().evidence == 0
    books.live(20)
    assert books.project.keeping().once().evidence == 0  # not for every day that gets old
    books.live(10)
    assert books.project.keeping().once().evidence == 28  # 12 April
    standing = cut_in(books.entries[-1])
    assert standing is not None
    assert dict(standing.kinds) == {"run": 45}
    assert month_of(books.entries[0].at_us) == "2027-03"
    text = books.said()
    assert "Entries 1 to 45, of 2027-01-15 to 2027-02-28, were cut 2027-04-12 by the declared retention; entry" in text


def test_what_is_left_is_verified_by_the_program_of_the_docs(books: Books) -> None:
    """Given an export behind a cut, I expect the lines of the documentation to verify it, and to notice changes."""
    books.live(57)
    books.project.keeping().once()
    docs = (Path(__file__).parents[2] / "docs/how-to/evidence.md").read_text("utf-8")
    program = docs.partition("```text\nimport hashlib")[2].partition("```")[0]
    lines = [entry_line(each) + "\n" for each in all_entries(books.project.archive)]
    check: Callable[[list[str]], None] = lambda found: run("import hashlib" + program, found)  # noqa: E731
    check(lines)
    for at in (0, 5, len(lines) - 1):
        with pytest.raises(AssertionError):
            check([*lines[:at], lines[at].replace("orders", "others").replace("last", "lost"), *lines[at + 1 :]])
    with pytest.raises(AssertionError):
        check(lines[1:])


def run(program: str, lines: list[str]) -> None:
    exec(program, {"open": lambda *_, **__: iter(lines), "__name__": "checked"})  # noqa: S102  it is our own page


def test_a_chain_that_was_tampered_with_is_not_cut(books: Books, caplog: pytest.LogCaptureFixture) -> None:
    books.live(57)
    with closing(sqlite3.connect(books.path)) as db:
        db.execute("UPDATE trueup_evidence SET body = replace(body, 'adopt', 'adapt') WHERE number = 3")
        db.commit()
    with caplog.at_level(logging.ERROR):
        assert books.project.keeping().once().evidence == 0
    assert len(books.entries) == 57
    assert "evidence is not cut: entry 3 is not as it was written" in caplog.text


def test_without_a_retention_everything_is_kept(tmp_path: Path) -> None:
    made = Books(tmp_path, history="1d")
    with made.project:
        made.live(3)
        made.clock.advance(3_650 * DAY_S)
        made.project.keeping().once()
        assert len(made.entries) == 3


def test_repairs_and_decisions_of_what_was_cut_are_not_missed(books: Books) -> None:
    books.live(57)
    books.project.keeping().once()
    assert books.project.archive.unrecorded() == []
    assert json.loads(books.entries[-1].fact.body)["kinds"] == {"run": 17}


@pytest.mark.parametrize(("age", "days"), [("1y", 366), ("10y", 3_660), ("40d", 40)])
def test_years_are_never_shorter_than_those_of_a_calendar(age: str, days: int) -> None:
    assert retention({"evidence": age}).evidence_us == days * DAY_S * 1_000_000


def test_a_retention_that_is_none_is_named() -> None:
    with pytest.raises(ConfigError, match="retention, evidence: 'long' is not a duration"):
        retention({"evidence": "long"})
