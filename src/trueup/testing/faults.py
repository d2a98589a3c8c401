"""Faults at ports: a call that ends the process, before or after it took effect.

Wrap a ledger or a side, and the process dies at the step you name. Steps are counted over all wrapped objects.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, Final

LEDGER_STEPS: Final = ("claim", "attempt", "renew", "finish")
SIDE_STEPS: Final = ("read", "apply", "mark")


def kill_process() -> None:
    """Ends this process as `kill -9` does: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


class Fuse:
    """Burns once, at one step: `at` counts calls from 1; `after` burns when the call has taken effect."""

    def __init__(self, at: int, *, after: bool, burn: Callable[[], None] = kill_process) -> None:
        self.at, self.after, self.burn = at, after, burn
        self.passed: list[str] = []

    def wrap(self, target: Any, names: Sequence[str], label: str) -> Any:
        """`target` with these methods counted."""
        return _Fused(self, target, tuple(names), label)

    def call(self, name: str, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """One counted call."""
        self.passed.append(name)
        now = len(self.passed) == self.at
        if now and not self.after:
            self.burn()
        answer = method(*args, **options)
        if now and self.after:
            self.burn()
        return answer


class _Fused:
    def __init__(self, fuse: Fuse, target: Any, names: tuple[str, ...], label: str) -> None:
        self._fuse, self._target, self._names, self._label = fuse, target, names, label

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name not in self._names:
            return found
        return lambda *args, **options: self._fuse.call(f"{self._label}.{name}", found, *args, **options)
