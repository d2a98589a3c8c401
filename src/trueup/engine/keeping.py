"""Keeps the state store small: forgets, a little at a time, what is older than its retention."""

from __future__ import annotations

import logging
import threading
from typing import Final

from trueup.engine.account import prove
from trueup.engine.outages import through_outages
from trueup.model.evidence import cut_in
from trueup.model.retention import Forgotten, Retention
from trueup.ports import Archive, Ledger

EVERY_S: Final = 3_600.0
_log = logging.getLogger(__name__)


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
            self._cut_evidence(ages.cut_before_us(now_us)),
        )

    def _cut_evidence(self, before_us: int | None) -> int:
        """Nothing of a chain that was tampered with: what is cut can't be looked at any more."""
        first = self._archive.entries(limit=1) if before_us is not None else []
        if before_us is None or not first or first[0].at_us >= before_us:
            return 0
        if findings := prove(self._archive).chain.findings:
            _log.error("evidence is not cut: %s; look at it: trueup evidence verify", findings[0].said)
            return 0
        entry = self._archive.cut_evidence(before_us)
        gone = None if entry is None else cut_in(entry)
        return 0 if gone is None else gone.last.number - first[0].number + 1

    def serve(self, stop: threading.Event) -> None:
        """Once now and then every hour, until `stop` is set."""

        def rest(_: Forgotten) -> None:
            stop.wait(EVERY_S)

        through_outages(stop, self.once, rest, "tidying waits")
