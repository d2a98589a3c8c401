"""What people were told, and pulses, in memory: gone when the process ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from trueup.model import alert as rules
from trueup.model.alert import News, Telling
from trueup.model.pulse import Pulse
from trueup.ports import Clock


class MemoryAlerts:
    """Tellings and pulses of this process."""

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        self._tellings: dict[str, Telling] = {}
        self._pulses: dict[str, Pulse] = {}
        self._alerts_lock = threading.Lock()

    def tellings(self, targets: Sequence[str]) -> dict[str, Telling]:
        """What each of these targets was told."""
        with self._alerts_lock:
            return {target: self._tellings.get(target, Telling(target)) for target in targets}

    def claim_telling(self, seen: Telling, some: News, owner: str, lease_us: int) -> Telling | None:
        """Takes a target that nobody changed since it was read, and stores its message; None where somebody did."""
        with self._alerts_lock:
            stored, now_us = self._tellings.get(seen.target), self._alerts_now_us()
            if not rules.claimable(stored, seen, now_us):
                return None
            taken = rules.claim(stored or seen, some, owner, now_us, lease_us)
            self._tellings[seen.target] = taken
            return taken

    def end_telling(self, telling: Telling) -> bool:
        """Frees a target and stores what it knows now; False where the fence is old."""
        with self._alerts_lock:
            stored = self._tellings.get(telling.target)
            if not rules.held(stored, telling):
                return stored == telling
            self._tellings[telling.target] = telling
            return True

    def pulses(self, pairs: Sequence[str]) -> dict[str, Pulse]:
        """The pulse of each of these pairs."""
        with self._alerts_lock:
            return {pair: self._pulses.get(pair, Pulse(pair)) for pair in pairs}

    def hear(self, pairs: Sequence[str]) -> None:
        """An event came for each of these pairs."""
        with self._alerts_lock:
            for pair in pairs:
                self._pulses[pair] = replace(self._pulses.get(pair, Pulse(pair)), event_us=self._alerts_now_us())

    def note_ping(self, pair: str, error: str | None) -> None:
        """A ping of this pair arrived, or did not."""
        with self._alerts_lock:
            pulse = self._pulses.get(pair, Pulse(pair))
            if error is None:
                self._pulses[pair] = replace(pulse, in_row=0, ping_error="")
            else:
                self._pulses[pair] = replace(
                    pulse, pings_failed=pulse.pings_failed + 1, in_row=pulse.in_row + 1, ping_error=error
                )

    def _alerts_now_us(self) -> int:
        return time.time_ns() // 1_000 if self._clock is None else self._clock.now_us()
