"""Counts of what all processes did: only ever added to, and none lost where many add at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from trueup.model.metric import BEYOND, JOBS, LATENCY, OFFERS
from trueup.ports import Archive

DONE = JOBS.count('ördérs@a"b', "done")
STALE = OFFERS.count("orders", "stale")


class TallyContract:
    """What becomes of counts. A subclass brings `archive`."""

    def test_nothing_was_counted_at_first(self, archive: Archive) -> None:
        assert archive.tallies() == {}

    def test_what_is_added_adds_up_by_metric_and_labels(self, archive: Archive) -> None:
        beyond = LATENCY.count("orders", BEYOND)
        archive.tally({DONE: 2.0, STALE: 1.0})
        archive.tally({DONE: 3.0, beyond: 0.25})
        archive.tally({})
        assert archive.tallies() == {DONE: 5.0, STALE: 1.0, beyond: 0.25}

    def test_large_counts_stay_exact(self, archive: Archive) -> None:
        archive.tally({DONE: 2.0**52})
        archive.tally({DONE: 1.0})
        assert archive.tallies() == {DONE: 2.0**52 + 1.0}

    def test_none_is_lost_where_several_add_at_once(self, archive: Archive) -> None:
        several = ({DONE: 1.0, STALE: 1.0}, {STALE: 1.0, DONE: 1.0})
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(archive.tally, [several[at % 2] for at in range(40)]))
        assert archive.tallies() == {DONE: 40.0, STALE: 40.0}
