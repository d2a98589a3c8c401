"""Keeps the state store small: forgets, a little at a time, what is older than its retention."""

from __future__ import annotations

import threading
from typing import Final

from trueup.engine.outages import through_outages
from trueup.model.retention import Forgotten, Retention
from trueup.ports import Archive, Ledger

EVERY_S: Final = 3_600.0


class Keeping:
    """Forgets what is old, once or every hour. Several processes may do so at once: the second finds nothing."""

    def __init__(self, ledger: Ledger, archive: Archive, retention: Retention) -> None:
        self._ledger, self._archive, self._retention = ledger, archive, retention

    def once(self) -> Forgotten:
        """In short transactions, between which others write; answers how much."""
        now_us, ages = self._ledger.now_us(), self._retention
        return Forgotten(
            self._ledger.prune(now_us - ages.history_us),
            self._archive.forget_plans(now_us - ages.plans_us),
            self._archive.forget_letters(now_us - ages.letters_us),
        )

    def serve(self, stop: threading.Event) -> None:
        """Once now and then every hour, until `stop` is set."""

        def rest(_: Forgotten) -> None:
            stop.wait(EVERY_S)

        through_outages(stop, self.once, rest, "tidying waits")
