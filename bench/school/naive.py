"""(a) Naive: one queue, first in, first out; every event and every record of every sweep is written."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import httpx2

from .contestants import WORKERS, Reconciled, Setting
from .destination import CALLS_A_MINUTE, MINUTE_US
from .wire import serving_purpose
from .world import REGISTERED, Key, State

# A little more than the API's, because calls take unequally long to get there.
WINDOW_US = MINUTE_US + 200_000


@dataclass(frozen=True, slots=True)
class Job:
    """A write to be made. sweep: number of the sweep that asked for it, None for an event."""

    key: Key
    state: State
    sweep: int | None


class Naive:
    """See the module. Its workers share a limiter, so that hardly any call is refused."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.time = setting, setting.time
        self.jobs = self.failed_runs = 0
        self.reconciled: list[Reconciled] = []
        self.queue: deque[Job] = deque()
        self.left: list[int] = []
        self._unfinished = 0
        self._sent: deque[int] = deque(maxlen=CALLS_A_MINUTE)

    def event(self, key: Key, state: State) -> None:
        """One more job."""
        self._unfinished += 1
        self.enqueue(Job(key, state, None))

    def begin(self) -> None:
        """Starts the workers."""
        for _ in range(WORKERS):
            self.time.start(self._work)

    def reconcile(self) -> None:
        """Every record becomes a job."""
        number = len(self.reconciled)
        self.reconciled.append(Reconciled(self.time.now_us()))
        wanted = [Job(key, state, number) for key, state in self.setting.school.listed() if self.wants(key, state)]
        self.left.append(len(wanted))
        self._unfinished += len(wanted)
        for job in wanted:
            self.enqueue(job)
        if not wanted:
            self.reconciled[number].ended_us = self.time.now_us()

    def wants(self, key: Key, state: State) -> bool:
        """Whether a sweep enqueues the record."""
        return True

    def waiting(self) -> int:
        """Jobs that wait or are under way."""
        return self._unfinished

    def in_review(self) -> list[Key]:
        """Nobody is ever asked."""
        return []

    def close(self) -> None:
        """Nothing to give back."""

    def enqueue(self, job: Job) -> None:
        """At the end of the queue."""
        self.queue.append(job)
        self.time.notify()

    def perform(self, job: Job) -> bool:
        """Does the job; False where it is to be done again later."""
        self.write(job)
        return True

    def write(self, job: Job) -> None:
        """Writes the state, whatever is there; waits for the limit, and out an outage."""
        method = "PUT" if job.state.status == REGISTERED else "DELETE"
        body = {"status": job.state.status, "fee": str(job.state.fee)}
        with serving_purpose("event" if job.sweep is None else "reconciliation"):
            while True:
                self._wait_for_turn()
                try:
                    reply = self.setting.wire.call(method, job.key, job.state.version, body)
                except httpx2.ConnectError:
                    self.time.sleep(10)
                    continue
                if reply.status == 429:
                    self.time.sleep(int((reply.headers or {})["Retry-After"]))
                    continue
                if job.sweep is not None:
                    self.reconciled[job.sweep].calls += 1
                return

    def _wait_for_turn(self) -> None:
        while len(self._sent) == CALLS_A_MINUTE and self.time.now_us() < (free_us := self._sent[0] + WINDOW_US):
            self.time.sleep_until(free_us)
        self._sent.append(self.time.now_us())

    def _work(self) -> None:
        while True:
            if not self.queue:
                self.time.doze(3_600)
                continue
            job = self.queue.popleft()
            if self.perform(job):
                self.jobs += 1
                self._unfinished -= 1
                self._ended(job)

    def _ended(self, job: Job) -> None:
        if job.sweep is None:
            return
        self.left[job.sweep] -= 1
        if not self.left[job.sweep]:
            self.reconciled[job.sweep].ended_us = self.time.now_us()
