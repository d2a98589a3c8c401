"""Calling a handler: what it is given, and the one record its `replica` is bound to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trueup.engine import context
from trueup.engine.background import wait_for
from trueup.engine.holding import Holding
from trueup.engine.records import Records, State
from trueup.errors import HandlerError
from trueup.model.change import Change
from trueup.model.outcome import Reject
from trueup.model.record import Found
from trueup.model.row import Claim
from trueup.pair import Handler, Handlers
from trueup.ports import WritableSide, Write, Written


class BoundReplica:
    """The replica as one job may write it: one key, the observed token, the lease, the idempotency key."""

    def __init__(
        self, records: Records, holding: Holding, claim: Claim, state: State, observed: Found | None, expect: str | None
    ) -> None:
        self._records, self._holding, self._claim, self._state = records, holding, claim, state
        self._observed, self._expect = observed, expect
        self.written: Written | None = None

    def put(self, change: Change) -> None:
        """Writes the change's values; the worker tries again where the replica moved meanwhile."""
        self._apply(change, self._records.mapped(self._state, self._observed))

    def delete(self, change: Change) -> None:
        """Deletes the record, if it still is as it was read."""
        self._apply(change, None)

    def read(self) -> Found | None:
        """The record as the replica holds it now."""
        return self._records.read_replica([self._claim.change.key]).get(self._claim.change.key)

    def _apply(self, change: Change, values: dict[str, str | None] | None) -> None:
        if change.key != self._claim.change.key:
            raise HandlerError(
                f"pair {change.pair}: this replica is bound to {self._claim.change.key}, not to {change.key}.",
                hint="Write only the record that the handler was called for.",
            )
        side = self._records.pair.replica
        if not isinstance(side, WritableSide):
            raise HandlerError(f"pair {change.pair}: the replica can't be written.", hint="Use your own client.")
        self._holding.check(self._claim)
        [written] = side.apply(self._records.replica, [Write(change.key, values, self._expect, change.id)])
        if not written.landed:
            raise Moved
        self.written = written
        self._observed = written.replica
        self._expect = "" if written.replica is None else written.replica.token


class Moved(Exception):
    """The replica moved between our read and our write; nothing was written."""


def call_handler(
    records: Records,
    handlers: Handlers,
    holding: Holding,
    claim: Claim,
    state: State,
    observed: Found | None,
    expect: str,
) -> Written | None:
    """Runs the handler of the state's action; raises what it raises, or the outcome it returns.

    Answers what the replica said to the last write through `replica`; None where the handler wrote by other means.
    """
    handler = handlers.find(state.action)
    change = performed(claim.change, state)
    if handler is not None and not handler.takes_replica:
        _raised(call(handler.call, (change,), holding, [claim], records.pair.lease_us))
        return None
    replica = BoundReplica(records, holding, claim, state, observed, expect if observed is not None else "")
    if handler is None:
        if not isinstance(records.pair.replica, WritableSide):
            raise Reject(f"action {state.action} has no handler")
        replica.delete(change) if state.absent else replica.put(change)
        return replica.written
    _raised(call(handler.call, (change, replica), holding, [claim], records.pair.lease_us))
    return replica.written


def _raised(answered: Any) -> None:
    """A handler may return the outcome as well as raise it."""
    if isinstance(answered, Exception):
        raise answered


def call_batch(handler: Handler, records: Records, holding: Holding, jobs: Sequence[tuple[Claim, State]]) -> list[Any]:
    """Runs a batch handler once for these records; answers an outcome for each: None for done, or an exception.

    The handler returns None (all done), or outcomes by key text for those that were not.
    """
    changes = [performed(claim.change, state) for claim, state in jobs]
    answered = call(handler.call, (changes,), holding, [claim for claim, _ in jobs], records.pair.lease_us)
    outcomes = answered if isinstance(answered, Mapping) else {}
    if unknown := [key for key in outcomes if all(key != change.key for change in changes)]:
        raise HandlerError(
            f"pair {records.pair.name}: the handler answered for {unknown[0]}, which it was not given.",
            hint="Answer a mapping of change.key to an outcome.",
        )
    return [outcomes.get(change.key) for change in changes]


def call(
    handler: Callable[..., Any], arguments: tuple[Any, ...], holding: Holding, claims: Sequence[Claim], lease_us: int
) -> Any:
    """Calls a handler, on the background loop where it is `async def`; it may ask `context.check`."""

    def check() -> None:
        for claim in claims:
            holding.check(claim)

    with context.within(check):
        answered = handler(*arguments)
        if inspect.iscoroutine(answered):
            return wait_for(answered, check, lease_us / 3e6)
    return answered


def performed(wished: Change, state: State) -> Change:
    """The change as it is performed: what was read, under the wish's number."""
    if (wished.action, wished.version, wished.payload) == (state.action, state.version, state.payload):
        return wished
    return replace(wished, action=state.action, version=state.version, digest=state.digest, payload=state.payload)
