"""A ledger over any store that can load and save rows in one transaction.

Here is the order of things: load, let the rules of `trueup.model.ledger` judge, save, note. A store brings
transactions; it repeats no rule.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from trueup.model import ledger as rules
from trueup.model.change import Change, Outcome
from trueup.model.row import Baseline, Claim, Finish, Row, State
from trueup.model.urgency import Waiting, most_urgent
from trueup.ports import NOBODY, Clock, Observer
from trueup.stores import history
from trueup.stores.history import Note

OFFER_BATCH: Final = 1_000
BASELINE_BATCH: Final = 5_000
# Longer than senders repeat a delivery; later copies are left to the rules.
DELIVERIES_KEPT_US: Final = 3 * 86_400_000_000
POLL_S: Final = 0.02

_T = TypeVar("_T")


class Transaction(Protocol):
    """One transaction that nobody else writes beside; what it saves becomes visible at once or not at all."""

    now_us: int

    def load(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        """The rows of these keys; the caller may replace entries of the answer."""

    def save(self, rows: Iterable[Row]) -> None:
        """Stores rows; each was loaded in this transaction, or looked for in vain."""

    def note(self, notes: Sequence[Note]) -> None:
        """Appends to the history of records that have a row."""

    def settled(self, pair: str) -> bool:
        """Whether the pair has a complete baseline."""

    def waiting(self, pairs: Sequence[str], limit: int) -> list[Waiting]:
        """The due records that `most_urgent` needs to choose from."""

    def sleepers(self, waits_for: Sequence[str]) -> list[tuple[str, str]]:
        """(pair, key) of the rows that wait for one of these records."""

    def parked(self, pair: str) -> list[str]:
        """Keys of the pair's parked rows."""

    def first(self, deliveries: Sequence[str]) -> list[bool]:
        """Whether each of these comes for the first time; remembers them for `DELIVERIES_KEPT_US`."""


class RowLedger(ABC):
    """The flow of every operation of the port `Ledger`, which see.

    clock: the store's clock, by default this machine's. Waiting goes through it where it is given.
    """

    # How often a waiting thread asks for the store's version; of a store that calls, hardly ever.
    _poll_s: float = POLL_S
    # Told what happened, once it is stored.
    observer: Observer = NOBODY

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._offered = threading.Condition()
        self._seen = threading.local()

    @abstractmethod
    def _transact(self, work: Callable[[Transaction], _T], connection: Any = None) -> _T:
        """What `work` answers in a transaction that is kept, or undone where `work` raises.

        A store that can lose a transaction runs `work` again, from the start.
        """

    @abstractmethod
    def _due(self, pairs: Sequence[str]) -> set[str]:
        """Those of the pairs that have a record to claim now."""

    @abstractmethod
    def _version(self) -> int:
        """A number that changes whenever anybody changes the store."""

    def now_us(self) -> int:
        """The store's clock."""
        return time.time_ns() // 1_000 if self._clock is None else self._clock.now_us()

    def offer(self, changes: Sequence[Change], *, connection: Any = None) -> list[Outcome]:
        """Judges each change by the offer table, in list order."""
        outcomes: list[Outcome] = []
        for batch in batches_of(changes, OFFER_BATCH):
            outcomes += self._transact(partial(_judge, changes=batch), connection)
        self.observer.offered(changes, outcomes)
        if connection is None and any(outcome.accepted for outcome in outcomes):
            self._wake()
        return outcomes

    def claim(
        self,
        pairs: Sequence[str],
        limit: int,
        owner: str,
        lease_us: int,
        tries_max: int,
        keys: Sequence[str] | None = None,
        others: int | None = None,
    ) -> list[Claim]:
        """The most urgent due records, leased to `owner`; parks those whose tries are spent."""
        # Not what the last claim saw: a worker may claim for several pairs before it waits.
        self._seen.version = self._seen_version()

        def lease(transaction: Transaction) -> tuple[list[Claim], bool]:
            places = (
                [(each.pair, each.key) for each in most_urgent(transaction.waiting(pairs, limit), limit, others)]
                if keys is None
                else [(pair, key) for pair in pairs for key in keys]
            )
            rows = _Working(transaction, places)
            due = [row for row in rows.all() if rules.claimable(row, transaction.now_us, named=keys is not None)]
            return _lease(rows, rules.claimed_together(due[:limit]), owner, lease_us, tries_max), bool(due)

        while True:
            claims, any_due = self._transact(lease)
            # Where every record of a batch had to be parked, the records behind it are still due.
            if claims or not any_due or keys is not None:
                return claims

    def due(self, pairs: Sequence[str]) -> list[str]:
        """Those of the pairs that have a record to claim now, in the order given."""
        # As at a claim: who finds nothing waits for what comes after this look, not after the next.
        self._seen.version = self._seen_version()
        found = self._due(pairs)
        return [pair for pair in pairs if pair in found]

    def attempt(self, intents: Sequence[tuple[Claim, str]]) -> list[bool]:
        """Records each digest about to be written, where the lease still holds."""

        def intend(transaction: Transaction) -> list[bool]:
            rows = _Working(transaction, [_place(claim) for claim, _ in intents])
            held = [
                rows.put(rules.attempt(rows.get(*_place(claim)), claim, digest, transaction.now_us))
                for claim, digest in intents
            ]
            rows.save()
            return held

        return self._transact(intend)

    def renew(self, claims: Sequence[Claim], lease_us: int) -> list[bool]:
        """Extends leases; False for each that was lost."""

        def extend(transaction: Transaction) -> list[bool]:
            rows = _Working(transaction, [_place(claim) for claim in claims])
            held = [
                rows.put(rules.renew(rows.get(*_place(claim)), claim, transaction.now_us, lease_us)) for claim in claims
            ]
            rows.save()
            return held

        return self._transact(extend)

    def finish(self, finishes: Sequence[Finish]) -> list[bool]:
        """Ends jobs; False where the fence refused it."""
        accepted, left_pending, now_us = self._transact(partial(_end, finishes=finishes))
        self.observer.finished(finishes, accepted, now_us)
        if left_pending:
            self._wake()
        return accepted

    def baseline(self, pair: str, items: Sequence[Baseline]) -> int:
        """Stores ancestors of agreeing records whose row did not move since; answers how many."""
        return sum(
            self._transact(partial(_agree, pair=pair, items=batch)) for batch in batches_of(items, BASELINE_BATCH)
        )

    def revive(self, pair: str, tries_max: int, keys: Sequence[str] | None = None) -> int:
        """Gives parked records that were not rejected one more try; answers how many."""
        revived = self._transact(partial(_revive, pair=pair, tries_max=tries_max, keys=keys))
        self._wake()
        return revived

    def wait(self, timeout_s: float) -> None:
        """Sleeps until the store differs from what this thread's claims saw since its last wait."""
        seen = self._seen_version()
        deadline_us = self._waited_us() + int(timeout_s * 1_000_000)
        with self._offered:
            while self._version() == seen and (left_us := deadline_us - self._waited_us()) > 0:
                pause_s = min(left_us / 1_000_000, self._poll_s)
                if self._clock is None:
                    self._offered.wait(pause_s)
                else:
                    self._pause(self._clock, pause_s)
        self._seen.version = None

    def _seen_version(self) -> int:
        seen: int | None = getattr(self._seen, "version", None)
        return self._version() if seen is None else seen

    def _waited_us(self) -> int:
        return time.monotonic_ns() // 1_000 if self._clock is None else self._clock.now_us()

    def _pause(self, clock: Clock, seconds: float) -> None:
        self._offered.release()
        try:
            clock.sleep(seconds)
        finally:
            self._offered.acquire()

    def _wake(self) -> None:
        with self._offered:
            self._offered.notify_all()


class _Working:
    """The rows that one transaction works on, the newest version of each, and what is to be told of them."""

    def __init__(self, transaction: Transaction, places: Sequence[tuple[str, str]]) -> None:
        self.transaction = transaction
        self.notes: list[Note] = []
        self._places = list(dict.fromkeys(places))
        self._rows: dict[str, dict[str, Row]] = {}
        self._changed: dict[tuple[str, str], Row] = {}
        self.load(self._places)

    def load(self, places: Sequence[tuple[str, str]]) -> None:
        keys = defaultdict(list)
        for pair, key in dict.fromkeys(places):
            if key not in self._rows.get(pair, ()):
                keys[pair].append(key)
        # Every transaction takes its locks in the same order.
        for pair, of_pair in sorted(keys.items()):
            self._rows.setdefault(pair, {}).update(self.transaction.load(pair, of_pair))

    def get(self, pair: str, key: str) -> Row | None:
        return self._rows[pair].get(key)

    def all(self) -> list[Row]:
        """The rows that exist, in the order asked for."""
        found = (self.get(*place) for place in self._places)
        return [row for row in found if row is not None]

    def put(self, row: Row | None) -> bool:
        """Keeps the row that a rule answered; False for none."""
        if row is None:
            return False
        self._rows[row.pair][row.key] = self._changed[row.pair, row.key] = row
        return True

    def save(self) -> None:
        self.transaction.save(self._changed.values())
        self.transaction.note(self.notes)

    def left_pending(self) -> bool:
        return any(row.state is State.PENDING for row in self._changed.values())


def _judge(transaction: Transaction, changes: Sequence[Change]) -> list[Outcome]:
    rows = _Working(transaction, [(change.pair, change.key) for change in changes])
    young = {pair: not transaction.settled(pair) for pair in {change.pair for change in changes}}
    now_us, outcomes, judge = transaction.now_us, [], rules.offer
    repeated = _repeated(transaction, changes)
    for at, change in enumerate(changes):
        if at in repeated:
            outcome, row = Outcome.REPEATED, None
        else:
            outcome, row = judge(rows.get(change.pair, change.key), change, now_us, young=young[change.pair])
        rows.put(row)
        outcomes.append(outcome)
        rows.notes.append(history.offered(change, outcome))
    rows.save()
    return outcomes


def _end(transaction: Transaction, finishes: Sequence[Finish]) -> tuple[list[bool], bool, int]:
    """(accepted, whether anything is left to be done, when)."""
    awaited = [_waits_for(each.waits_for) for each in finishes if each.waits_for]
    rows = _Working(transaction, [*(_place(each.claim) for each in finishes), *awaited])
    accepted = []
    for ended in finishes:
        agreed, row = rules.finish(rows.get(*_place(ended.claim)), ended, transaction.now_us)
        rows.put(row)
        accepted.append(agreed)
        rows.notes.append(history.finished(ended, accepted=agreed, now_us=transaction.now_us))
    _wake_sleepers(rows, finishes)
    rows.save()
    return accepted, rows.left_pending(), transaction.now_us


def _agree(transaction: Transaction, pair: str, items: Sequence[Baseline]) -> int:
    rows = transaction.load(pair, [item.key for item in items])
    now_us, baseline = transaction.now_us, rules.baseline
    agreed = {}
    for item in items:
        row = baseline(rows.get(item.key), pair, item, now_us)
        if row is not None:
            rows[item.key] = agreed[item.key] = row
    transaction.save(agreed.values())
    return len(agreed)


def _revive(transaction: Transaction, pair: str, tries_max: int, keys: Sequence[str] | None) -> int:
    rows = _Working(transaction, [(pair, key) for key in (transaction.parked(pair) if keys is None else keys)])
    revived = [rules.revive(row, transaction.now_us, tries_max) for row in rows.all()]
    for row in revived:
        if rows.put(row) and row is not None:
            rows.notes.append(history.revived(row))
    rows.save()
    return sum(row is not None for row in revived)


def _repeated(transaction: Transaction, changes: Sequence[Change]) -> set[int]:
    """Which of these, by place, came with a delivery that was judged before, in this batch or ever."""
    delivered = [(at, change.delivery) for at, change in enumerate(changes) if change.delivery is not None]
    if not delivered:
        return set()
    first = transaction.first([delivery for _, delivery in delivered])
    return {at for (at, _), new in zip(delivered, first, strict=True) if not new}


def _lease(rows: _Working, due: Sequence[Row], owner: str, lease_us: int, tries_max: int) -> list[Claim]:
    claims = []
    for row in due:
        claim, leased = rules.claim(row, owner, rows.transaction.now_us, lease_us, tries_max)
        rows.put(leased)
        if claim is None:
            rows.notes.append(history.parked(leased))
        else:
            claims.append(claim)
            rows.notes.append(history.claimed(claim))
    rows.save()
    return claims


def _wake_sleepers(rows: _Working, finishes: Sequence[Finish]) -> None:
    """Makes due what waited for a record that is done now, or became done while the waiting job still ran."""
    now_us = rows.transaction.now_us
    done = [_name(*_place(each.claim)) for each in finishes if _is_done(rows.get(*_place(each.claim)), now_us)]
    for each in finishes:
        if each.waits_for and _is_done(rows.get(*_waits_for(each.waits_for)), each.claim.claimed_at):
            done.append(each.waits_for)
    # The rows of this very batch are not stored yet, so the store can't name them.
    sleepers = [*rows.transaction.sleepers(done), *(_place(each.claim) for each in finishes if each.waits_for)]
    rows.load(sleepers)
    for pair, key in sleepers:
        row = rows.get(pair, key)
        if row is not None and row.waits_for in done:
            rows.put(rules.wake(row, row.waits_for, now_us))


def _is_done(row: Row | None, since_us: int) -> bool:
    return row is not None and row.state is State.IDLE and row.done_at is not None and row.done_at >= since_us


def _place(claim: Claim) -> tuple[str, str]:
    return claim.change.pair, claim.change.key


def _name(pair: str, key: str) -> str:
    return f"{pair} {key}"


def _waits_for(name: str) -> tuple[str, str]:
    pair, _, key = name.partition(" ")
    return pair, key


def batches_of(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """The items in their order, so many at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
