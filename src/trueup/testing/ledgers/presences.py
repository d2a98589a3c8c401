"""Who is at work: by the store's clock, until they say good-bye or fall silent."""

from __future__ import annotations

from dataclasses import replace

from trueup.engine.presence import Heart, alive
from trueup.model.presence import BEAT_S, MISSED_MAX, REMEMBERED_US, Presence
from trueup.ports import Archive
from trueup.testing.clock import ManualClock

WORKER = Presence("host-1:17:a", "hôst-1", 17, 4, ("orders", "refunds"), stays=True)
SILENT_S = BEAT_S * MISSED_MAX


class PresenceContract:
    """What becomes of beats. A subclass brings `archive` and its `clock`."""

    def test_a_beat_says_who_works_what_since_when(self, archive: Archive, clock: ManualClock) -> None:
        assert archive.presences() == []
        archive.beat(WORKER)
        assert archive.presences() == [replace(WORKER, started_us=clock.now_us(), beat_us=clock.now_us())]

    def test_a_later_beat_keeps_the_start(self, archive: Archive, clock: ManualClock) -> None:
        archive.beat(WORKER)
        started_us = clock.now_us()
        clock.advance(BEAT_S)
        archive.beat(replace(WORKER, ended=12_345))
        [found] = archive.presences()
        assert found == replace(WORKER, ended=12_345, started_us=started_us, beat_us=clock.now_us())

    def test_the_store_says_what_time_it_is(self, archive: Archive, clock: ManualClock) -> None:
        archive.beat(replace(WORKER, started_us=7, beat_us=2**62))
        assert [(each.started_us, each.beat_us) for each in archive.presences()] == [(clock.now_us(), clock.now_us())]

    def test_who_says_good_bye_is_gone_at_once(self, archive: Archive) -> None:
        for name in "ab":
            archive.beat(replace(WORKER, name=name))
        archive.leave("a")
        archive.leave("never there")
        assert [each.name for each in archive.presences()] == ["b"]

    def test_three_missed_beats_are_a_death(self, archive: Archive, clock: ManualClock) -> None:
        archive.beat(WORKER)
        clock.advance(SILENT_S)
        assert alive(archive, clock.now_us()) == archive.presences() != []
        clock.advance(0.001)
        assert alive(archive, clock.now_us()) == []
        assert [each.name for each in archive.presences()] == [WORKER.name]

    def test_who_beats_again_lives_again(self, archive: Archive, clock: ManualClock) -> None:
        archive.beat(WORKER)
        clock.advance(SILENT_S * 10)
        archive.beat(WORKER)
        assert len(alive(archive, clock.now_us())) == 1

    def test_the_dead_are_forgotten_after_a_day(self, archive: Archive, clock: ManualClock) -> None:
        archive.beat(WORKER)
        clock.advance(REMEMBERED_US / 1e6)
        archive.beat(replace(WORKER, name="second"))
        assert [each.name for each in archive.presences()] == [WORKER.name, "second"]
        clock.advance(0.001)
        archive.beat(replace(WORKER, name="second"))
        assert [each.name for each in archive.presences()] == ["second"]

    def test_only_a_worker_of_the_pair_that_stays_counts(self, archive: Archive, clock: ManualClock) -> None:
        archive.beat(replace(WORKER, name="a run", stays=False))
        archive.beat(replace(WORKER, name="of others", pairs=("users",)))
        assert [each.name for each in alive(archive, clock.now_us())] == ["of others"]
        assert alive(archive, clock.now_us(), "orders") == []
        archive.beat(WORKER)
        assert [each.name for each in alive(archive, clock.now_us(), "orders")] == [WORKER.name]

    def test_a_heart_beats_while_it_works_and_takes_its_leave(self, archive: Archive, clock: ManualClock) -> None:
        heart = Heart(archive, clock, replace(WORKER, stays=False))
        heart.ended(3)
        with heart.beating(stays=True):
            [found] = archive.presences()
            assert (found.name, found.stays, found.ended) == (WORKER.name, True, 3)
        assert archive.presences() == []
