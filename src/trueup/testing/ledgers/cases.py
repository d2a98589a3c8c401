"""Cases: questions to people, found by what they are about, and what was said about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trueup.model.case import HELD, Case, CaseFilter, Comment
from trueup.ports import Archive
from trueup.testing.clock import ManualClock

KEY = '["42"]'
MANY = 1_200


def a_case(key: str = KEY, drift: str = "edited", **more: object) -> Case:
    """A case of pair `orders`."""
    return replace(Case("orders", key, drift, 1_000), **more)  # type: ignore[arg-type]


def opened(archive: Archive, case: Case | None = None) -> Case:
    """The case, opened, as it is stored."""
    asked = case or a_case()
    archive.open_cases([asked])
    return next(each for each in archive.cases(asked.pair) if each.key == asked.key)


class CaseContract:
    """What becomes of cases. A subclass brings `archive` and its `clock`."""

    def test_a_case_keeps_both_versions(self, archive: Archive) -> None:
        case = a_case(
            authority={"id": "42", "name": "Zoë", "note": None}, replica=None, fields=("name", "note"),
            ancestor="a" * 32, run=3, cause="moved at the replica", authority_digest="b" * 32, authority_version=-7,
            changed_us=5, agreed_us=6, revision=2**62, assignee="ann", due_us=9,
        )  # fmt: skip
        new = archive.open_cases([case])
        (found,) = archive.cases("orders")
        assert new == {KEY: found.number}
        assert found == replace(case, number=found.number)
        assert found.number > 0

    def test_an_open_case_about_the_same_record_is_refreshed(self, archive: Archive) -> None:
        archive.open_cases([a_case(fields=("a",))])
        (before,) = archive.cases("orders")
        newer = a_case(drift="conflict", fields=("a", "b"), opened_us=9_000, replica={"a": "1"})
        assert archive.open_cases([newer]) == {}
        assert archive.cases("orders") == [replace(newer, number=before.number, opened_us=before.opened_us)]

    def test_a_refreshed_case_stays_with_whoever_looks_into_it(self, archive: Archive) -> None:
        number = opened(archive).number
        assert archive.assign_case(number, "ann", 50)
        archive.open_cases([a_case(drift="conflict")])
        (found,) = archive.cases("orders")
        assert (found.drift, found.assignee, found.due_us) == ("conflict", "ann", 50)

    def test_the_same_record_twice_in_a_batch_is_onea_case(self, archive: Archive) -> None:
        new = archive.open_cases([a_case(), a_case(drift="conflict"), a_case('["7"]')])
        assert new == {case.key: case.number for case in archive.cases("orders")}
        assert {case.key: case.drift for case in archive.cases("orders")} == {KEY: "conflict", '["7"]': "edited"}

    def test_a_case_about_the_pair_itself(self, archive: Archive) -> None:
        assert [*archive.open_cases([a_case(""), a_case("", drift="unlike")])] == [""]

    def test_closed_cases_stay_with_their_reason(self, archive: Archive, clock: ManualClock) -> None:
        archive.open_cases([a_case(), a_case('["7"]'), a_case('["8"]')])
        numbers = {case.key: case.number for case in archive.cases("orders") if case.key != '["8"]'}
        assert archive.close_cases("orders", [KEY, KEY, '["7"]', '["none"]'], "the sides agree") == numbers
        assert [case.key for case in archive.cases("orders")] == ['["8"]']
        closed = archive.cases("orders", open_only=False)[0]
        assert (closed.closed_us, closed.closed) == (clock.now_us(), "the sides agree")

    def test_a_closed_case_is_not_closed_again(self, archive: Archive) -> None:
        archive.open_cases([a_case()])
        assert [*archive.close_cases("orders", [KEY], "first")] == [KEY]
        assert archive.close_cases("orders", [KEY], "second") == {}
        assert archive.close_cases("orders", [], "none") == {}
        assert [case.closed for case in archive.cases("orders", open_only=False)] == ["first"]

    def test_a_record_whose_case_was_closed_gets_a_new_one(self, archive: Archive) -> None:
        archive.open_cases([a_case()])
        archive.close_cases("orders", [KEY], "decided")
        assert [*archive.open_cases([a_case(opened_us=2_000)])] == [KEY]
        assert len(archive.cases("orders", open_only=False)) == 2

    def test_cases_come_oldest_first_and_are_counted(self, archive: Archive) -> None:
        archive.open_cases([a_case(f'["{at}"]', opened_us=at) for at in (3, 1, 2)])
        archive.open_cases([replace(a_case(), pair="refunds")])
        assert [case.opened_us for case in archive.cases("orders")] == [1, 2, 3]
        assert [case.opened_us for case in archive.cases("orders", limit=2)] == [1, 2]
        assert (archive.count_cases("orders"), archive.count_cases("refunds"), archive.count_cases("none")) == (3, 1, 0)
        assert archive.count_cases() == 4

    def test_a_case_is_found_by_its_number_open_or_closed(self, archive: Archive) -> None:
        case = opened(archive)
        assert archive.case(case.number) == case
        archive.close_cases("orders", [KEY], "decided")
        closed = archive.case(case.number)
        assert closed is not None
        assert closed.closed == "decided"
        assert archive.case(case.number + 1) is None

    @pytest.mark.parametrize(
        ("where", "found"),
        [
            (CaseFilter(), [1, 2, 3, 4]),
            (CaseFilter(drift="edited"), [1, 3]),
            (CaseFilter(assignee="ann"), [2]),
            (CaseFilter(assignee=""), [1, 3, 4]),
            (CaseFilter(opened_until_us=2), [1, 2]),
            (CaseFilter(field="fee"), [2, 3]),
            (CaseFilter(key='["2"]'), [2]),
            (CaseFilter(text="zoË"), [1]),
            (CaseFilter(text="%"), [3]),
            (CaseFilter(text="name"), []),
            (CaseFilter(text='"3"'), [3]),
            (CaseFilter(text="backup"), [4]),
            (CaseFilter(drift="edited", field="fee", text="9"), [3]),
            (CaseFilter(drift="none"), []),
        ],
        ids=str,
    )
    def test_cases_are_found_by_what_they_are_about(
        self, archive: Archive, where: CaseFilter, found: list[int]
    ) -> None:
        archive.open_cases(
            [
                a_case('["1"]', opened_us=1, authority={"name": "Zoë", "note": None}, fields=("name",)),
                a_case('["2"]', "conflict", opened_us=2, fields=("name", "fee"), assignee="ann"),
                a_case('["3"]', opened_us=3, replica={"fee": "9", "rate": "5%"}, fields=("fee",)),
                a_case(HELD, "held", opened_us=4, cause="restored from a backup?"),
            ]
        )
        archive.open_cases([replace(a_case('["9"]'), pair="refunds", opened_us=9)])
        assert [case.opened_us for case in archive.cases("orders", where)] == found
        everywhere = [case.opened_us for case in archive.cases(None, where)]
        assert [at for at in everywhere if at < 9] == found

    def test_cases_come_page_by_page(self, archive: Archive) -> None:
        """Given many cases opened at few moments, I expect each once, oldest first, whatever the page."""
        archive.open_cases([a_case(f'["{at:05}"]', opened_us=at % 7, fields=(str(at % 2),)) for at in range(MANY)])
        for where, size in ((CaseFilter(), MANY), (CaseFilter(field="1"), MANY // 2)):
            found: list[Case] = []
            while page := archive.cases("orders", where, after=found[-1] if found else None, limit=170):
                assert len(page) <= 170
                found += page
            assert len({case.number for case in found}) == len(found) == size
            assert found == sorted(found, key=lambda case: (case.opened_us, case.number))
        assert len(archive.cases("orders", limit=MANY - 1)) == MANY - 1

    def test_a_case_is_assigned_while_it_is_open(self, archive: Archive) -> None:
        case = opened(archive)
        assert archive.assign_case(case.number, "Zoë", 77)
        assert archive.case(case.number) == replace(case, assignee="Zoë", due_us=77)
        assert archive.assign_case(case.number, None)
        assert archive.case(case.number) == case
        archive.close_cases("orders", [KEY], "decided")
        assert not archive.assign_case(case.number, "ann")
        assert not archive.assign_case(case.number + 1, "ann")

    def test_comments_stay_in_order(self, archive: Archive, clock: ManualClock) -> None:
        number, odd = opened(archive).number, "“ß”\n 'x'; --"
        assert archive.comment(number, Comment("ann", odd))
        clock.advance(60)
        archive.close_cases("orders", [KEY], "decided")
        assert archive.comment(number, Comment("bob", "seen"))
        assert not archive.comment(number + 1, Comment("bob", "seen"))
        now_us = clock.now_us()
        assert archive.comments(number) == [Comment("ann", odd, now_us - 60_000_000), Comment("bob", "seen", now_us)]
        assert archive.comments(number + 1) == []
