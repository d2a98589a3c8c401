"""What a handler may ask about the job it runs in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("trueup_check", default=None)


def check() -> None:
    """Raises LeaseLost where the right to work on the record was lost; a long handler calls it between steps."""
    if (current := _check.get()) is not None:
        current()


@contextmanager
def within(call: Callable[[], None]) -> Iterator[None]:
    """Runs a handler whose `check` is `call`."""
    token = _check.set(call)
    try:
        yield
    finally:
        _check.reset(token)
