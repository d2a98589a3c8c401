"""A pulse: signs of life of a pair that its records do not show: its last event, and what became of its pings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pulse:
    """What is known of one pair, by the store's clock.

    event_us: when its last event came, to within a few seconds; None where none ever did. pings_failed: pings that did
    not arrive. in_row: how many since the last one that did. ping_error: why the latest did not.
    """

    pair: str
    event_us: int | None = None
    pings_failed: int = 0
    in_row: int = 0
    ping_error: str = ""
