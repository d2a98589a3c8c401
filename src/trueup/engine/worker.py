"""Workers: claim, work, finish, and sleep until something is due."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import count

from trueup.engine.afford import affordable, afforded
from trueup.engine.job import JobBatch
from trueup.engine.order import Predecessor
from trueup.engine.outages import through_outages
from trueup.engine.place import placed
from trueup.engine.presence import Heart
from trueup.engine.records import Records
from trueup.model.row import Finish
from trueup.pair import Handlers, Pair
from trueup.ports import UNTRACED, Archive, Budgets, Clock, Ledger, Tracing

BATCH_WRITTEN = 500
BATCH_HANDLED = 20
# An event waits for the batch that is under way, so a batch of quick jobs is no longer than it has to be.
BATCH_QUICK_US = 12_000
BATCH_LONG_US = 40_000
BATCH_SLOW_US = 1_000_000
WAIT_S_MAX = 1.0
PROBE_POLL_S = 0.01
Ends = Counter[str]  # how many jobs ended how: done, verified, retry, parked, waits


class Worker:
    """Works the jobs of some pairs with a few threads; several workers may share a ledger.

    owner: name of this worker in leases. lend: what is done where no job is due; answers whether anything was.
    Each thread draws from its own seeded chance.
    """

    def __init__(
        self,
        ledger: Ledger,
        archive: Archive,
        budgets: Budgets,
        clock: Clock,
        pairs: Mapping[str, tuple[Records, Handlers]],
        *,
        owner: str,
        seed: int,
        threads: int = 2,
        order: Mapping[str, Sequence[Predecessor]] | None = None,
        heart: Heart | None = None,
        lend: Callable[[], bool] = lambda: False,
        tracing: Tracing = UNTRACED,
    ) -> None:
        self._ledger, self._archive, self._budgets = ledger, archive, budgets
        self._clock, self._pairs = clock, pairs
        self.owner, self._seed, self._threads = owner, seed, threads
        self._order = order or {}
        self._heart, self._lend, self._tracing = heart, lend, tracing
        self._stopping: Callable[[], bool] = lambda: False
        self._sizes: dict[str, int] = {}

    def once(self, chance: random.Random, keys: Sequence[str] | None = None) -> list[Finish]:
        """One batch of each pair that has something due; answers how the jobs ended."""
        ended: list[Finish] = []
        for name in list(self._pairs) if keys is not None else self._ledger.due(list(self._pairs)):
            records = self._pairs[name][0]
            with placed(self._ledger, self._budgets, self._clock, records.pair, named=keys is not None) as free:
                ended += self._batch(name, chance, keys) if free else []
        if ended and self._heart is not None:
            self._heart.ended(len(ended))
        return ended

    def _batch(self, name: str, chance: random.Random, keys: Sequence[str] | None) -> list[Finish]:
        """One batch of this pair; answers how its jobs ended."""
        ended: list[Finish] = []
        records, handlers = self._pairs[name]
        pair = records.pair
        limit, others = self._permitted(pair, self._size(name, handlers))
        if limit:
            asked_us = self._clock.elapsed_us()
            claims = self._ledger.claim([name], limit, self.owner, pair.lease_us, pair.tries_max, keys, others)
            if claims:
                batch = JobBatch(
                    records,
                    handlers,
                    self._ledger,
                    self._archive,
                    self._budgets,
                    self._clock,
                    chance,
                    self._order.get(name, ()),
                    self._stopping,
                    self._tracing,
                )
                ended += batch.work(claims, asked_us)
                self._learn(name, len(claims), self._clock.elapsed_us() - asked_us)
        return ended

    def _size(self, name: str, handlers: Handlers) -> int:
        """How many records one claim takes: what the writer can, what a batch handler wants, or what fits a second."""
        if not handlers.declared:
            return BATCH_WRITTEN
        return max(handlers.batch, self._sizes.get(name, BATCH_HANDLED))

    def _learn(self, name: str, worked: int, took_us: int) -> None:
        """Quick handlers get larger batches; slow ones must not hold what other workers could do."""
        size = self._sizes.get(name, BATCH_HANDLED)
        if took_us > BATCH_SLOW_US or (took_us > BATCH_LONG_US and size > BATCH_HANDLED):
            self._sizes[name] = max(1, size // 2)
        elif took_us < BATCH_QUICK_US and worked >= size:
            self._sizes[name] = min(BATCH_WRITTEN, size * 2)

    def _permitted(self, pair: Pair, limit: int) -> tuple[int, int | None]:
        """How many records may be claimed: none of a paused system, one where a job must probe it.

        And how many of them that are no events, None for any number: what the budget has no room for stays where it
        is, instead of going to and fro.
        """
        now_us = self._ledger.now_us()
        healths = {name: self._budgets.health(name) for name in pair.systems}
        # All or none: a probe taken while the other system is not to be had would keep everybody from trying.
        if any(health.paused(now_us) or health.probing_until_us > now_us for health in healths.values()):
            return 0, None
        probing = [name for name, health in healths.items() if health.probes]
        if not probing:
            health = healths[pair.system.name]
            jobs = affordable(pair, health, now_us, urgent=True).jobs
            if jobs is None:
                return limit, None
            return min(limit, jobs), affordable(pair, health, now_us, urgent=False).jobs
        due_us = self._ledger.next_due_us([pair.name])
        if due_us is None or due_us > now_us:
            return 0, None
        return min(limit, 1) if all(self._budgets.probe(name, pair.lease_us) for name in probing) else 0, None

    def drain(self, patience_us: int, progress: Callable[[Ends], None] | None = None) -> Ends:
        """Works until nothing is due within `patience_us`; answers how many jobs ended how."""
        ends: Ends = Counter()
        lock = threading.Lock()
        numbers = count()

        def loop() -> None:
            chance = random.Random(self._seed + next(numbers))  # noqa: S311  jitter, not secrecy
            while (ended := self.once(chance)) or self._wait(patience_us):
                with lock:
                    ends.update(finish.result for finish in ended)
                    if progress is not None and ended:
                        progress(ends)

        self._in_threads(loop, stays=False)
        return ends

    def serve(self, stop: threading.Event, ended: Callable[[Ends], None] | None = None) -> None:
        """Works until `stop` is set: what a handler has begun is finished, the rest is given back.

        ended: told how jobs ended.
        Trouble of the state store is a pause: what was under way comes back when its leases end.
        """
        numbers = count()
        self._stopping = stop.is_set

        def tell(finishes: list[Finish]) -> None:
            if finishes and ended is not None:
                ended(Ends(finish.result for finish in finishes))

        def loop() -> None:
            chance = random.Random(self._seed + next(numbers))  # noqa: S311  jitter, not secrecy

            def work() -> list[Finish]:
                finishes = self.once(chance)
                if not finishes and not self._lend():
                    self._ledger.wait(WAIT_S_MAX)
                return finishes

            through_outages(stop, work, tell, "work waits")

        self._in_threads(loop, stays=True)

    def _in_threads(self, loop: Callable[[], None], *, stays: bool) -> None:
        with nullcontext() if self._heart is None else self._heart.beating(stays=stays):
            self._run(loop)

    def _run(self, loop: Callable[[], None]) -> None:
        if self._threads == 1:
            loop()
            return
        with ThreadPoolExecutor(self._threads, thread_name_prefix="trueup") as pool:
            for future in [pool.submit(loop) for _ in range(self._threads)]:
                future.result()

    def _wait(self, patience_us: int) -> bool:
        """Sleeps until the next record is due; False where that is further away than patience goes."""
        due_us = min((due for due in map(self._due_us, self._pairs.values()) if due is not None), default=None)
        now_us = self._ledger.now_us()
        if due_us is None or due_us > now_us + patience_us:
            return False
        self._ledger.wait(min(WAIT_S_MAX, max(PROBE_POLL_S, (due_us - now_us) / 1e6)))
        return True

    def _due_us(self, bound: tuple[Records, Handlers]) -> int | None:
        """When the pair's next record may be worked: due, and its systems not paused."""
        pair = bound[0].pair
        due_us = self._ledger.next_due_us([pair.name])
        healths = [self._budgets.health(name) for name in pair.systems]
        if due_us is None or any(health.by_person for health in healths):
            return None
        due_us, now_us = max(due_us, *(health.paused_until_us for health in healths)), self._ledger.now_us()
        # An event that is due would have been claimed: what is due now waits for the budget of the others.
        wait_us = afforded(pair, self._budgets, self._ledger, urgent=due_us > now_us).wait_us
        return max(due_us, now_us + wait_us) if wait_us else due_us
