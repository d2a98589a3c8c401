"""Plans: every confirmed drift of a run, what is to be done, and what became of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trueup.model.drift import Drift, Verdict
from trueup.model.plan import ItemState, PlanItem
from trueup.model.run import Piece
from trueup.ports import Archive
from trueup.testing.clock import ManualClock
from trueup.testing.ledgers.runs import LEASE_US, RUN, begin

MANY = 2_500


def _item(key: str, drift: Drift = Drift.MISSING, verdict: Verdict = Verdict.REPAIR, **more: object) -> PlanItem:
    return replace(PlanItem(key, drift, verdict, "upsert"), **more)  # type: ignore[arg-type]


class PlanContract:
    """What becomes of suspects and plans. A subclass brings `archive` and its `clock`."""

    @pytest.fixture
    def run(self, archive: Archive) -> int:
        return begin(archive).number

    def _suspect(self, archive: Archive, run: int, keys: list[str]) -> None:
        archive.cut(run, [Piece(run, 0)])
        piece = archive.claim_piece(run, "a", LEASE_US)
        assert piece is not None
        assert archive.finish_piece(piece, keys)

    def test_an_item_keeps_all_that_is_known(self, archive: Archive, run: int) -> None:
        full = PlanItem(
            '["Zoë"]', Drift.CONFLICT, Verdict.REVIEW, "delete", state=ItemState.HELD,
            authority={"id": "Zoë", "note": None}, replica={"id": "Zoë", "note": 'a "b" \\ \n'}, fields=("note", "ü"),
            version=-5, authority_digest="a" * 32, replica_digest="b" * 32, revision=2**62, removes=True,
        )  # fmt: skip
        archive.plan(run, [full, _item('["a"]', version=2**62)], [])
        assert archive.items(run) == [replace(full, run=run), _item('["a"]', run=run, version=2**62)]
        assert archive.items(run + 1) == []

    def test_items_come_page_by_page_in_the_order_of_their_keys(self, archive: Archive, run: int) -> None:
        keys = sorted(['["B"]', '["a"]', '["ä"]', '["🦉"]', '["\uffff"]', '["1"]', '["10"]', '["2"]'])
        archive.plan(run, [_item(key) for key in reversed(keys)], [])
        read: list[str] = []
        while page := archive.items(run, after=read[-1] if read else "", limit=3):
            assert len(page) <= 3
            read += [item.key for item in page]
        assert read == keys

    def test_items_of_one_state(self, archive: Archive, run: int) -> None:
        archive.plan(run, [_item(f"[{number}]") for number in range(6)], [])
        assert archive.move_items(run, ["[1]", "[3]", "[5]", "[9]", "[1]"], ItemState.HELD) == 3
        assert [item.key for item in archive.items(run, state=ItemState.HELD)] == ["[1]", "[3]", "[5]"]
        assert [item.key for item in archive.items(run, state=ItemState.HELD, after="[1]", limit=1)] == ["[3]"]
        assert [item.key for item in archive.items(run, state=ItemState.PLANNED)] == ["[0]", "[2]", "[4]"]
        assert archive.items(run, state=ItemState.ASKED) == []

    def test_items_are_counted_by_kind(self, archive: Archive, run: int) -> None:
        orphan = {"drift": Drift.ORPHANED, "removes": True}
        archive.plan(run, [_item("[1]"), _item("[2]"), _item("[3]", **orphan), _item("[4]", **orphan)], [])  # type: ignore[arg-type]
        archive.move_items(run, ["[4]"], ItemState.HELD)
        assert archive.count_items(run) == {
            ("missing", "repair", False, "planned"): 2,
            ("orphaned", "repair", True, "planned"): 1,
            ("orphaned", "repair", True, "held"): 1,
        }
        assert archive.count_items(run + 1) == {}

    def test_an_item_that_is_planned_again_is_replaced_while_nothing_came_of_it(
        self, archive: Archive, run: int
    ) -> None:
        archive.plan(run, [_item("[1]"), _item("[2]")], [])
        archive.move_items(run, ["[2]"], ItemState.OFFERED)
        newer = [_item(key, Drift.CONFLICT, Verdict.REVIEW, fields=("a",)) for key in ("[1]", "[2]")]
        archive.plan(run, newer, [])
        assert archive.items(run) == [
            replace(newer[0], run=run),
            _item("[2]", run=run, state=ItemState.OFFERED),
        ]

    def test_the_same_key_twice_in_a_plan_is_one_item(self, archive: Archive, run: int) -> None:
        archive.plan(run, [_item("[1]"), _item("[1]", Drift.CONFLICT)], [])
        assert [item.drift for item in archive.items(run)] == [Drift.CONFLICT]

    def test_suspects_are_forgotten_when_they_are_confirmed(self, archive: Archive, run: int) -> None:
        self._suspect(archive, run, ['["ä"]', '["b"]', '["a"]', '["B"]', '["a"]'])
        assert archive.count_suspects(run) == 4
        assert archive.suspects(run, 2) == ['["B"]', '["a"]']
        archive.plan(run, [_item('["a"]')], ['["a"]', '["B"]', '["never"]'])
        assert archive.suspects(run, 10) == ['["b"]', '["ä"]']
        assert (archive.suspects(run + 1, 10), archive.count_suspects(run + 1)) == ([], 0)

    def test_plans_of_many_records(self, archive: Archive, run: int) -> None:
        keys = [f'["{number:06}"]' for number in range(MANY)]
        self._suspect(archive, run, keys)
        assert archive.count_suspects(run) == MANY
        archive.plan(run, [_item(key, authority={"id": key, "text": "x" * 200}) for key in keys], keys[: MANY - 1])
        assert archive.suspects(run, 10) == keys[-1:]
        assert archive.move_items(run, keys, ItemState.OFFERED) == MANY
        assert archive.count_items(run) == {("missing", "repair", False, "offered"): MANY}

    def test_old_plans_are_forgotten_their_runs_stay(self, archive: Archive, clock: ManualClock) -> None:
        runs = []
        for ended_us in (100, 200, None):
            run = begin(archive)
            self._suspect(archive, run.number, ["[1]"])
            archive.plan(run.number, [_item("[2]")], [])
            if ended_us is not None:
                archive.close_run(replace(run, ended="done", ended_us=ended_us))
            runs.append(run.number)
        archive.close_run(replace(begin(archive, replace(RUN, pair="empty")), ended="done", ended_us=100))
        assert archive.forget_plans(100) == 0
        assert archive.forget_plans(200) == 1
        assert [len(archive.pieces(run)) for run in runs] == [0, 1, 1]
        assert [archive.count_suspects(run) for run in runs] == [0, 1, 1]
        assert [len(archive.items(run)) for run in runs] == [0, 1, 1]
        assert archive.forget_plans(2**62) == 1
        assert archive.forget_plans(2**62) == 0
        assert [run.number for run in archive.runs("orders")] == runs[::-1]
        assert len(archive.items(runs[2])) == 1

    def test_a_plan_that_waits_for_a_person_is_kept(self, archive: Archive) -> None:
        run = begin(archive)
        archive.plan(run.number, [_item("[1]"), _item("[2]")], [])
        archive.move_items(run.number, ["[2]"], ItemState.HELD)
        archive.close_run(replace(run, ended="done", ended_us=5))
        assert archive.forget_plans(2**62) == 0
        assert len(archive.items(run.number)) == 2
        archive.move_items(run.number, ["[2]"], ItemState.DROPPED)
        assert archive.forget_plans(2**62) == 1
        assert archive.items(run.number) == []
