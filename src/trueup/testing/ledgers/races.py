"""Many threads on one ledger."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from trueup.model.change import Outcome
from trueup.testing.ledgers.driving import KEY, PAIR, Driven, Driver

WORKERS = 8


def together(count: int, work: Callable[[int], object]) -> None:
    """Runs `work` in threads that start at the same moment; raises what they raise."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> object:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(begin, number) for number in range(count)]:
            future.result()


class RaceContract(Driven):
    """What holds whoever is faster."""

    def test_C096_a_hundred_jobs_are_claimed_exactly_once(self, on: Driver) -> None:
        """Given 100 jobs and 8 workers started together, 20 rounds, I expect 100 claims a round, none twice."""
        for version in range(1, 21):
            changes = [on.change(version, str(version), key=f'["{n}"]') for n in range(100)]
            assert set(on.ledger.offer(changes)) == {Outcome.PENDING}
            claimed: list[str] = []

            def work(number: int, claimed: list[str] = claimed) -> None:
                while claims := on.claims(limit=3, owner=f"worker {number}"):
                    claimed.extend(claim.change.key for claim in claims)
                    assert all(on.finish(claim) for claim in claims)

            together(WORKERS, work)
            assert Counter(claimed) == Counter(change.key for change in changes)
            assert on.ledger.counts(PAIR)["pending"] == 0

    def test_a_record_has_one_holder_at_a_time(self, on: Driver) -> None:
        """Given one record that is offered all the time, I expect that no two workers hold it at once."""
        held = threading.Lock()
        on.offer(1)

        def work(number: int) -> None:
            for _ in range(40):
                for claim in on.claims(owner=f"worker {number}"):
                    assert held.acquire(blocking=False)
                    on.offer(None, None)
                    held.release()
                    assert on.finish(claim)

        together(WORKERS, work)

    def test_offers_of_many_threads_leave_the_newest_wish(self, on: Driver) -> None:
        def work(number: int) -> None:
            for version in range(number + 1, 401, WORKERS):
                on.offer(version, str(version))

        together(WORKERS, work)
        row = on.row()
        assert (row.wish_version, row.wish_digest, row.high) == (400, "400", 400)

    def test_concurrent_first_offers_of_one_record_lose_none(self, on: Driver) -> None:
        outcomes: list[Outcome] = []
        for round_ in range(20):
            key = f'["{round_}"]'

            def work(number: int, key: str = key) -> None:
                outcomes.append(on.offer(number, str(number), key=key))

            together(WORKERS, work)
            assert on.row(key).wish_version == WORKERS - 1
        assert len(outcomes) == 20 * WORKERS

    def test_a_waiting_worker_is_woken_by_an_offer(self, on: Driver) -> None:
        assert on.claims() == []
        offered = threading.Timer(0.1, on.offer)
        offered.start()
        began = time.monotonic()
        while not on.claims() and time.monotonic() - began < 10:
            on.ledger.wait(10)
        assert time.monotonic() - began < 5
        offered.join()

    def test_an_offer_between_claim_and_wait_is_not_slept_through(self, on: Driver) -> None:
        assert on.claims() == []
        offering = threading.Thread(target=on.offer)
        offering.start()
        offering.join()
        before_us = on.clock.now_us()
        on.ledger.wait(3_600)
        assert on.clock.now_us() == before_us
        assert on.claim().change.key == KEY

    def test_waiting_ends_when_nothing_happens(self, on: Driver) -> None:
        on.claims()
        before_us = on.clock.now_us()
        on.ledger.wait(0.5)
        assert on.clock.now_us() - before_us == 500_000
