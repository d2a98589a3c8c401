"""What a handler may ask about the job it runs in."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("trueup_check", default=None)


def check() -> None:
    """Raises LeaseLost where the right to work on the record was lost; a long handler calls it between steps."""
    if (current := _check.get()) is not None:
        current()


class within:  # noqa: N801  read as a word; a generator would take four times as long, for every job
    """Runs a handler whose `check` is `call`."""

    __slots__ = ("_call", "_token")

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def __enter__(self) -> None:
        self._token = _check.set(self._call)

    def __exit__(self, *_: object) -> None:
        _check.reset(self._token)
