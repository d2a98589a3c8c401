"""A ledger driven in few words, so that a test reads like the rule it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from trueup.model.change import Change, Outcome
from trueup.model.row import Claim, Finish, Row
from trueup.ports import Clock, Ledger
from trueup.testing.clock import ManualClock

PAIR = "orders"
KEY = '["42"]'
MINUTE_US = 60_000_000

Make: TypeAlias = Callable[[Clock], Ledger]


class Driver:
    """One ledger, its clock, and one record that most tests are about."""

    def __init__(self, ledger: Ledger, clock: ManualClock) -> None:
        self.ledger = ledger
        self.clock = clock

    def change(self, version: int | None = 1, digest: str | None = "a", action: str = "upsert", **more: Any) -> Change:
        """A change of the record, or of another `key`."""
        return Change(**{"pair": PAIR, "key": KEY, "payload": '{"a":"1"}'} | more, action=action, version=version,
                      digest=None if action == "delete" else digest)  # fmt: skip

    def offer(self, version: int | None = 1, digest: str | None = "a", action: str = "upsert", **more: Any) -> Outcome:
        """The outcome of offering one change."""
        return self.ledger.offer([self.change(version, digest, action, **more)])[0]

    def claims(self, limit: int = 1, *, keys: list[str] | None = None, lease_us: int = MINUTE_US,
               tries_max: int = 5, owner: str = "worker", pairs: tuple[str, ...] = (PAIR,),
               others: int | None = None) -> list[Claim]:  # fmt: skip
        """What a claim gives."""
        return self.ledger.claim(pairs, limit, owner, lease_us, tries_max, keys, others)

    def claim(self, **more: Any) -> Claim:
        """The one claim that a test expects."""
        (claim,) = self.claims(**more)
        return claim

    def finish(self, claim: Claim, result: str = "done", **how: Any) -> bool:
        """Ends a job; `done` performed what was wanted unless `how` says otherwise."""
        return self.ledger.finish([ending(claim, result, **how)])[0]

    def done(self, version: int | None = 1, digest: str | None = "a", action: str = "upsert", **how: Any) -> Row:
        """The row after a change was offered, claimed and performed."""
        key = how.pop("key", KEY)
        self.offer(version, digest, action, key=key)
        assert self.finish(self.claim(keys=[key]), **how)
        return self.row(key)

    def parked(self, version: int | None = 1, digest: str | None = "a", *, rejected: bool = False) -> Row:
        """The row after a change was offered and its job parked."""
        self.offer(version, digest)
        assert self.finish(self.claim(), "parked", reason="no such SKU", rejected=rejected)
        return self.row()

    def unordered(self, high: int = 5, read: int = 3) -> Row:
        """The idle row after a refetch that found an older version than the highest accepted."""
        self.offer(high, "e")
        assert self.finish(self.claim(), version=read, digest="c")
        assert self.row().unordered
        return self.row()

    def row(self, key: str = KEY) -> Row:
        """The record's row."""
        return self.ledger.rows(PAIR, [key])[key]


def ending(claim: Claim, result: str = "done", **how: Any) -> Finish:
    """A finish; `done` performed what was wanted unless `how` says otherwise."""
    wanted = claim.change
    performed = {
        "action": wanted.action,
        "version": wanted.version,
        "digest": wanted.digest,
        "replica": wanted.digest,
        "absent": wanted.action == "delete",
        "verified_for_us": MINUTE_US,
    }
    return replace(Finish(claim, "done"), **({"result": result} | (performed if result == "done" else {}) | how))


class Driven:
    """The fixtures of every ledger suite; a subclass brings `make`."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def ledger(self, make: Make, clock: ManualClock) -> Iterator[Ledger]:
        ledger = make(clock)
        yield ledger
        ledger.close()

    @pytest.fixture
    def on(self, ledger: Ledger, clock: ManualClock) -> Driver:
        """A pair with a complete baseline."""
        ledger.settle(PAIR)
        return Driver(ledger, clock)

    @pytest.fixture
    def young(self, ledger: Ledger, clock: ManualClock) -> Driver:
        """A pair without a complete baseline."""
        return Driver(ledger, clock)
