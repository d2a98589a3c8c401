"""Runs, cursors, cases and dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from trueup.model.case import Case
from trueup.model.run import Run
from trueup.ports import Archive, Clock
from trueup.testing.clock import ManualClock
from trueup.testing.ledgers.letters import LetterContract

KEY = '["42"]'


def _case(key: str = KEY, drift: str = "edited", **more: object) -> Case:
    return replace(Case("orders", key, drift, 1_000), **more)  # type: ignore[arg-type]


class ArchiveContract(LetterContract):
    """What the archive keeps. A subclass brings `make`: a new, empty archive whose time is the clock's."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def archive(self, make: Callable[[Clock], Archive], clock: ManualClock) -> Iterator[Archive]:
        archive = make(clock)
        yield archive
        archive.close()

    def test_runs_are_numbered_and_the_newest_comes_first(self, archive: Archive) -> None:
        runs = [archive.open_run(Run("orders", "run", at)) for at in (1, 2, 3)]
        archive.open_run(Run("refunds", "adopt", 4))
        assert runs[0].number < runs[1].number < runs[2].number
        assert archive.runs("orders") == runs[::-1]
        assert archive.runs("orders", limit=1) == [runs[2]]
        assert archive.runs("none") == []

    def test_a_closed_run_keeps_how_it_ended(self, archive: Archive) -> None:
        run = archive.open_run(Run("orders", "run", 1, cutoff_us=9))
        ended = replace(run, ended_us=5, ended="failed", error="no connection", counts={"missing": 3, "ü": 1})
        archive.close_run(ended)
        assert archive.runs("orders") == [ended]

    def test_the_cursor_moves_when_a_run_closes(self, archive: Archive) -> None:
        assert archive.cursor("orders") is None
        run = archive.open_run(Run("orders", "run", 1))
        archive.close_run(replace(run, ended="done"), {"orders": -5})
        assert archive.cursor("orders") == -5
        archive.close_run(replace(run, ended="done"), {"orders": 2**62})
        assert archive.cursor("orders") == 2**62
        assert archive.cursor("refunds") is None

    def test_a_run_that_closes_without_cursor_leaves_it(self, archive: Archive) -> None:
        run = archive.open_run(Run("orders", "run", 1))
        archive.close_run(run, {"orders": 7})
        archive.close_run(replace(run, ended="failed"))
        assert archive.cursor("orders") == 7

    def test_a_case_keeps_both_versions(self, archive: Archive) -> None:
        case = _case(
            authority={"id": "42", "name": "Zoë", "note": None}, replica=None, fields=("name", "note"),
            ancestor="a" * 32, run=3, detail="moved at the replica", extra={"plan": "12"},
        )  # fmt: skip
        assert archive.open_cases([case]) == 1
        (found,) = archive.cases("orders")
        assert found == replace(case, number=found.number)
        assert found.number > 0

    def test_an_open_case_about_the_same_record_is_refreshed(self, archive: Archive) -> None:
        archive.open_cases([_case(fields=("a",))])
        (before,) = archive.cases("orders")
        newer = _case(drift="conflict", fields=("a", "b"), opened_us=9_000, replica={"a": "1"})
        assert archive.open_cases([newer]) == 0
        assert archive.cases("orders") == [replace(newer, number=before.number, opened_us=before.opened_us)]

    def test_the_same_record_twice_in_a_batch_is_one_case(self, archive: Archive) -> None:
        assert archive.open_cases([_case(), _case(drift="conflict"), _case('["7"]')]) == 2
        assert [case.drift for case in archive.cases("orders")] == ["conflict", "edited"]

    def test_a_case_about_the_pair_itself(self, archive: Archive) -> None:
        assert archive.open_cases([_case(""), _case("", drift="unlike")]) == 1

    def test_closed_cases_stay_with_their_reason(self, archive: Archive, clock: ManualClock) -> None:
        archive.open_cases([_case(), _case('["7"]'), _case('["8"]')])
        assert archive.close_cases("orders", [KEY, KEY, '["7"]', '["none"]'], "the sides agree") == 2
        assert [case.key for case in archive.cases("orders")] == ['["8"]']
        closed = archive.cases("orders", open_only=False)[0]
        assert (closed.closed_us, closed.closed) == (clock.now_us(), "the sides agree")

    def test_a_closed_case_is_not_closed_again(self, archive: Archive) -> None:
        archive.open_cases([_case()])
        assert archive.close_cases("orders", [KEY], "first") == 1
        assert archive.close_cases("orders", [KEY], "second") == 0
        assert archive.close_cases("orders", [], "none") == 0
        assert [case.closed for case in archive.cases("orders", open_only=False)] == ["first"]

    def test_a_record_whose_case_was_closed_gets_a_new_one(self, archive: Archive) -> None:
        archive.open_cases([_case()])
        archive.close_cases("orders", [KEY], "decided")
        assert archive.open_cases([_case(opened_us=2_000)]) == 1
        assert len(archive.cases("orders", open_only=False)) == 2

    def test_cases_come_oldest_first_and_are_counted(self, archive: Archive) -> None:
        archive.open_cases([_case(f'["{at}"]', opened_us=at) for at in (3, 1, 2)])
        archive.open_cases([replace(_case(), pair="refunds")])
        assert [case.opened_us for case in archive.cases("orders")] == [1, 2, 3]
        assert [case.opened_us for case in archive.cases("orders", limit=2)] == [1, 2]
        assert (archive.count_cases("orders"), archive.count_cases("refunds"), archive.count_cases("none")) == (3, 1, 0)
