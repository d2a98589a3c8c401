"""What people were told, and pulses, in memory: gone when the process ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from trueup.model.alert import Telling
from trueup.model.pulse import Pulse
from trueup.ports import Clock
from trueup.stores.memory_handovers import MemoryHandovers


class MemoryAlerts:
    """Tellings and pulses of this process."""

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        self.targets = MemoryHandovers(Telling, self._alerts_now_us)
        self._pulses: dict[str, Pulse] = {}
        self._alerts_lock = threading.Lock()

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
