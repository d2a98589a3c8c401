"""Drift over time: added up by the transaction that closes a run, once, and merged as it grows old."""

from __future__ import annotations

from dataclasses import replace

from trueup.model.run import Run
from trueup.model.trend import EVERY, RECORD, Bucket, Length, RunDrift, Streak, Tally
from trueup.ports import Archive
from trueup.testing.clock import ManualClock

LEASE_US = 60_000_000
DAY_US = 86_400_000_000
MONDAY_US = 20_423 * DAY_US  # 2025-12-01
STREAK = Streak("orders", "behind", "fee ü", 3, 2**55, 7, 20, 1_000, 2**40, ('["1"]', '["a","(redacted)"]'))


def found(at_us: int, *tallies: Tally, pair: str = "orders", streaks: tuple[Streak, ...] = ()) -> RunDrift:
    """What a run of that time found among a hundred records."""
    return RunDrift(pair, 1, at_us, 100, True, tallies, streaks)


def behind(records: int) -> tuple[Tally, Tally]:
    """So many records whose fee is behind."""
    return Tally("behind", RECORD, records), Tally("behind", "fee", records)


class TrendContract:
    """What becomes of drift over time. A subclass brings `archive` and its `clock`."""

    def _closed(self, archive: Archive, drift: RunDrift | None, pair: str = "orders") -> Run:
        run = archive.begin_run(Run(pair, "run", 1), "a", LEASE_US)
        assert run is not None
        ended = replace(run, ended="done", ended_us=5)
        assert archive.close_run(ended, {}, None, drift)
        return ended

    def test_a_store_without_runs_knows_no_trend(self, archive: Archive) -> None:
        self._closed(archive, None)
        assert (archive.trend("orders"), archive.streaks("orders")) == ([], [])

    def test_the_runs_of_a_day_are_added_up(self, archive: Archive) -> None:
        self._closed(archive, found(MONDAY_US + 5, *behind(3)))
        self._closed(archive, found(MONDAY_US + DAY_US - 1))
        self._closed(archive, found(MONDAY_US + 7, *behind(4)))
        self._closed(archive, found(MONDAY_US, *behind(9), pair="refunds"), "refunds")
        assert archive.trend("orders") == [
            Bucket("orders", Length.DAY, MONDAY_US, EVERY, RECORD, 3, 7, 300),
            Bucket("orders", Length.DAY, MONDAY_US, "behind", RECORD, 2, 7, 200),
            Bucket("orders", Length.DAY, MONDAY_US, "behind", "fee", 2, 7, 200),
        ]

    def test_days_become_a_week_and_weeks_a_month(self, archive: Archive) -> None:
        for day in range(3):
            self._closed(archive, found(MONDAY_US + day * DAY_US, *behind(2)))
        self._closed(archive, found(MONDAY_US + 5 * 7 * DAY_US))
        week = Bucket("orders", Length.WEEK, MONDAY_US, "behind", "fee", 3, 6, 300)
        assert [each for each in archive.trend("orders") if each.field == "fee"] == [week]
        self._closed(archive, found(MONDAY_US + 300 * DAY_US, *behind(1)))
        month, latest = (each for each in archive.trend("orders") if each.field == "fee")
        assert month == replace(week, length=Length.MONTH)
        assert (latest.length, latest.records) == (Length.DAY, 1)

    def test_who_lost_the_slot_adds_nothing_and_who_is_asked_twice_adds_once(
        self, archive: Archive, clock: ManualClock
    ) -> None:
        late = archive.begin_run(Run("orders", "run", clock.now_us()), "a", LEASE_US)
        clock.advance(LEASE_US / 1e6)
        run = archive.begin_run(Run("orders", "run", clock.now_us()), "b", LEASE_US)
        assert late is not None
        assert run is not None
        drift = found(MONDAY_US, *behind(3), streaks=(STREAK,))
        assert not archive.close_run(replace(late, ended="done", ended_us=5), {}, None, drift)
        assert (archive.trend("orders"), archive.streaks("orders")) == ([], [])
        for _ in range(2):
            assert archive.close_run(replace(run, ended="done", ended_us=5), {}, None, drift)
        assert [each.runs for each in archive.trend("orders")] == [1, 1, 1]

    def test_streaks_are_kept_as_they_are_and_replaced_together(self, archive: Archive) -> None:
        other = replace(STREAK, cause="edited", examples=())
        self._closed(archive, found(MONDAY_US, streaks=(other, STREAK)))
        self._closed(archive, found(MONDAY_US, pair="refunds", streaks=(replace(STREAK, pair="refunds"),)), "refunds")
        assert archive.streaks("orders") == [STREAK, other]
        longer = replace(STREAK, runs=4, run=8, total=2**40 + 20)
        self._closed(archive, found(MONDAY_US, streaks=(longer,)))
        assert archive.streaks("orders") == [longer]
        self._closed(archive, found(MONDAY_US))
        assert archive.streaks("orders") == []
        assert [each.pair for each in archive.streaks("refunds")] == ["refunds"]
