"""Group commit: calls that arrive while one is under way are answered together by the next.

A commit that reaches the disk costs a millisecond or more, whatever it holds. Threads that offer one change
each share it: who comes first works for all that wait by then (as PostgreSQL's commit_siblings and MySQL's
binary log do).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class _Call(Generic[_In, _Out]):
    """One thread's call, and the lock on which it sleeps until it is answered or has to lead."""

    def __init__(self, items: Sequence[_In]) -> None:
        self.items = items
        self.answer: list[_Out] | None = None
        self.error: BaseException | None = None
        self.sleep = threading.Lock()
        self.sleep.acquire()


class Gathering(Generic[_In, _Out]):
    """`together` for many threads: lists of items in, an answer for each item out.

    together: called by one thread at a time, with the items of several calls in the order of their arrival.
    most: items that it is given at once, unless one call alone brings more.
    Where a shared call raises, each of its calls is made alone, so that nobody fails because of another.
    """

    def __init__(self, together: Callable[[Sequence[_In]], list[_Out]], most: int) -> None:
        self._together, self._most = together, most
        self._lock = threading.Lock()
        self._calls: list[_Call[_In, _Out]] = []
        self._led = False

    def __call__(self, items: Sequence[_In]) -> list[_Out]:
        """The answers to these items; raises what `together` raises for them."""
        call: _Call[_In, _Out] = _Call(items)
        with self._lock:
            self._calls.append(call)
            leads, self._led = not self._led, True
        if not leads:
            call.sleep.acquire()
        if call.answer is None and call.error is None:
            self._lead()
        if call.error is not None:
            raise call.error
        return call.answer or []

    def _lead(self) -> None:
        """Answers what waits, this thread's own call first, and hands the lead to whoever came meanwhile."""
        calls = self._take()
        try:
            self._answer(calls)
        finally:
            with self._lock:
                self._led = bool(self._calls)
                if self._calls:
                    self._calls[0].sleep.release()
            for call in calls[1:]:
                call.sleep.release()

    def _take(self) -> list[_Call[_In, _Out]]:
        with self._lock:
            count, items = 0, 0
            for call in self._calls:
                if count and items + len(call.items) > self._most:
                    break
                count, items = count + 1, items + len(call.items)
            taken, self._calls = self._calls[:count], self._calls[count:]
        return taken

    def _answer(self, calls: Sequence[_Call[_In, _Out]]) -> None:
        try:
            answers = self._together([item for call in calls for item in call.items])
        except BaseException as error:
            if len(calls) == 1:
                calls[0].error = error
                return
            if not isinstance(error, Exception):  # this thread is told to end; the others go on
                self._answer(calls[1:])
                calls[0].error = error
                return
            for call in calls:
                self._answer([call])
            return
        start = 0
        for call in calls:
            call.answer = answers[start : start + len(call.items)]
            start += len(call.items)
