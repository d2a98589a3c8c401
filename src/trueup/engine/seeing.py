"""Seeing a pair's jobs done: by the workers that live, else by this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trueup.engine.presence import alive
from trueup.engine.worker import Ends, Worker
from trueup.ports import Archive, Clock, Ledger

PATIENCE_US: Final = 30_000_000
POLL_S: Final = 0.2


def see_done(
    pair: str,
    ledger: Ledger,
    archive: Archive,
    clock: Clock,
    worker: Worker,
    stop: Callable[[], None],
    progress: Callable[[int], None],
) -> Ends:
    """Leaves what waits to the workers of the pair and waits for them; works it here where there are none.

    stop: raises where nobody should go on. progress: told how many jobs ended here. Answers how these ended.
    """
    if _attended(pair, ledger, archive) and _waited(pair, ledger, archive, clock, stop):
        return Ends()
    return worker.drain(PATIENCE_US, lambda done: progress(done.total()))


def _attended(pair: str, ledger: Ledger, archive: Archive) -> bool:
    return bool(alive(archive, ledger.now_us(), pair))


def _waited(pair: str, ledger: Ledger, archive: Archive, clock: Clock, stop: Callable[[], None]) -> bool:
    """Until the workers that live have done what waits, as long as they get on with it.

    Answers False where they are dead after all: one that was killed seems alive until it has missed its beats.
    """
    left, patience_us = ledger.busy(pair).get("pending", 0), clock.elapsed_us() + PATIENCE_US
    while left and clock.elapsed_us() < patience_us:
        stop()
        if not _attended(pair, ledger, archive):
            return False
        clock.sleep(POLL_S)
        now_left = ledger.busy(pair).get("pending", 0)
        if now_left < left:
            patience_us = clock.elapsed_us() + PATIENCE_US
        left = now_left
    return True
