"""What a handler may say instead of returning: raise one of these, or return it."""

from __future__ import annotations


class HandlerOutcome(Exception):
    """A way for a handler to end other than done."""


class Retry(HandlerOutcome):
    """Try again later; a try is charged.

    after_s: seconds to wait; by default exponential backoff with full jitter.
    """

    def __init__(self, reason: str = "", *, after_s: float | None = None) -> None:
        super().__init__(reason)
        self.after_s = after_s


class Reject(HandlerOutcome):
    """Trying again would not help: the record is parked until a person or a newer change moves it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WaitFor(HandlerOutcome):
    """Sleep until another record is done; no try is charged."""

    def __init__(self, pair: str, *key: object) -> None:
        from trueup.model.record import key_text  # noqa: PLC0415  every command line loads this module

        super().__init__(f"waits for {pair}")
        self.pair = pair
        self.key = key_text(str(part) for part in key)


class RateLimited(HandlerOutcome):
    """The system asks for a pause; no try is charged.

    retry_after_s: seconds that the system asked for.
    """

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"rate limited for {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class Postponed(RateLimited):
    """The door to a system is closed for now, as all workers know: its budget is spent, or it is paused.

    Nothing is wrong with the system, and it need not be paused once more.
    """

    def __init__(self, retry_after_s: float, why: str) -> None:
        super().__init__(retry_after_s)
        self.args = (f"{why}; tried again in {retry_after_s:,.0f} s",)
