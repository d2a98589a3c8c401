"""What is kept of drift over time."""

from __future__ import annotations

from typing import Protocol

from trueup.model.trend import Bucket, Streak


class Trends(Protocol):
    """Written by the transaction that closes a run (`Runs.close_run`); rules: `trueup.model.trend`."""

    def trend(self, pair: str) -> list[Bucket]:
        """What the runs of the pair found, in order of time, cause and field."""

    def streaks(self, pair: str) -> list[Streak]:
        """What drifts run after run, by cause and field."""
