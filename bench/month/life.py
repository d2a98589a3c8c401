"""What happens without trueup: the shop sells, events tell of it or get lost, people edit by hand."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from .clock import VirtualTime
from .databases import BACKUP, COLUMNS, ERP, SHOP, STRANGER, Places
from .sides import Erp

HOUR_S: Final = 3_600.0
DAY_S: Final = 24 * HOUR_S
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NEXT: Final = {"new": "paid", "paid": "sent"}
RANK: Final = {"new": 0, "paid": 1, "sent": 2}
Offer = Callable[[Sequence[Mapping[str, Any]], bool], object]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much happens. orders: new ones a day. days: of life. tick_s: orders arrive and change this often.

    changed: changes of existing orders for each new one. deleted: share of changes that delete. lost: share of events
    that never arrive; late: that arrive an hour later; hints: that carry the key alone. hand_edits: a day,
    of each kind.
    timeouts: share of the writing calls to the ERP whose answer gets lost.
    """

    orders: int = 2_000
    days: int = 30
    tick_s: float = 1_800.0
    changed: float = 0.5
    deleted: float = 0.01
    lost: float = 0.001
    late: float = 0.01
    hints: float = 0.05
    hand_edits: int = 2
    timeouts: float = 0.05


@dataclass(slots=True)
class Account:
    """What the referee must know: which records were touched by whom.

    deleted: by the shop. by_hand: at the ERP by people. turned_back: whose state at the shop a restored backup undid.
    """

    happened: Counter[str] = field(default_factory=Counter)
    deleted: set[int] = field(default_factory=set)
    by_hand: set[int] = field(default_factory=set)
    turned_back: set[int] = field(default_factory=set)


class Life:
    """The shop and the people around it.

    offer: told of events that arrive: values, whether they are of deletions.
    """

    def __init__(self, plan: Plan, time: VirtualTime, places: Places, erp: Erp, offer: Offer, seed: int) -> None:
        self.plan, self.time, self.places, self.erp, self._offer = plan, time, places, erp, offer
        self.account = Account()
        self.began_us = time.now_us()
        self.stuck = 0
        self._chance = random.Random(seed)
        self._recent: deque[tuple[int, str, int, str]] = deque()
        self._next_id, self._owed = 1, 0.0

    def at_s(self, days: float) -> float:
        """Seconds from now to this day of the month (0 is its beginning)."""
        return max(0.0, days * DAY_S - (self.time.now_us() - self.began_us) / 1e6)

    def live(self) -> None:
        """Sells, and changes what was sold, until the month is over."""
        while self.at_s(self.plan.days) > 0:
            self.time.sleep(self.plan.tick_s)
            self._owed += self.plan.orders * self.plan.tick_s / DAY_S
            born, self._owed = int(self._owed), self._owed % 1
            self._tell(self._sold(born), self._changed(round(born * self.plan.changed)))

    # ── the shop ─────────────────────────────────────────────────────────────────────────────────────

    def _sold(self, count: int) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for _ in range(count):
            customer = STRANGER if not self.stuck else f"c{self._chance.randrange(10_000)}"
            order = (self._next_id, customer, self._chance.randrange(100, 100_000), "new")
            if customer == STRANGER:
                self.stuck = self._next_id
            else:
                self._recent.append(order)
            self._next_id += 1
            rows.append((*order, self._stamp(len(rows))))
        self.places.shop.many(f"INSERT INTO {SHOP} VALUES (?, ?, ?, ?, ?)", [_stored(row) for row in rows])
        self.account.happened["orders"] += count
        return rows

    def _changed(self, count: int) -> list[tuple[Any, ...]]:
        """Orders of the last days go on with their lives; a few are deleted."""
        rows: list[tuple[Any, ...]] = []
        gone: list[int] = []
        for _ in range(min(count, len(self._recent))):
            at = self._chance.randrange(min(len(self._recent), 2 * count))
            order, self._recent[at] = self._recent[at], self._recent[0]
            self._recent.popleft()
            if self._chance.random() < self.plan.deleted:
                gone.append(order[0])
                continue
            order = (*order[:3], _NEXT[order[3]])
            if order[3] in _NEXT:
                self._recent.append(order)
            rows.append((*order, self._stamp(len(rows) + 1_000)))
        self.places.shop.many(
            f"UPDATE {SHOP} SET status = ?, updated_at = ? WHERE id = ?",
            [(row[3], _text(row[4]), row[0]) for row in rows],
        )
        self._delete(gone)
        self.account.happened["changes"] += len(rows)
        return rows

    def _delete(self, gone: Sequence[int]) -> None:
        self.places.shop.many(f"DELETE FROM {SHOP} WHERE id = ?", [(each,) for each in gone])
        self.account.deleted.update(gone)
        self.account.happened["deletions"] += len(gone)
        for each in gone:
            self._send([{"id": each}], deleted=True)

    def _stamp(self, nth: int) -> datetime:
        return _EPOCH + timedelta(microseconds=self.time.now_us() - 1_000_000 + nth)

    # ── events ───────────────────────────────────────────────────────────────────────────────────────

    def _tell(self, *groups: list[tuple[Any, ...]]) -> None:
        names = (*COLUMNS.split(", "), "updated_at")
        events = []
        for row in (row for group in groups for row in group):
            values = dict(zip(names, row, strict=True))
            hint = self._chance.random() < self.plan.hints
            events.append({"id": row[0]} if hint else values)
            self.account.happened["hints"] += hint
        self._send(events, deleted=False)

    def _send(self, events: Sequence[Mapping[str, Any]], *, deleted: bool) -> None:
        arrived, late = [], []
        for event in events:
            fate = self._chance.random()
            if fate < self.plan.lost:
                self.account.happened["events lost"] += 1
            elif fate < self.plan.lost + self.plan.late:
                late.append(event)
            else:
                arrived.append(event)
        self.account.happened["events"] += len(events)
        self.account.happened["events late"] += len(late)
        if arrived:
            self._offer(arrived, deleted)
        if late:
            self.time.start(lambda: self._offer(late, deleted), HOUR_S)

    # ── people ───────────────────────────────────────────────────────────────────────────────────────

    def edit(self) -> None:
        """Every morning people edit by hand, on both sides."""
        for day in range(self.plan.days):
            self.time.sleep(self.at_s(day + 0.4))
            for nth in range(self.plan.hand_edits):
                self._edit_erp(day * self.plan.hand_edits + nth)
                self._edit_shop()

    def _edit_erp(self, number: int) -> None:
        self.erp.tick()
        edited, removed = self._any(ERP), self._any(ERP)
        foreign = 10_000_000 + number
        database = self.places.erp
        with database.transaction():
            database.run("UPDATE clock SET person = 1")
            database.run(f"UPDATE {ERP} SET customer = customer || ' by hand' WHERE id = ?", edited)
            database.run(f"DELETE FROM {ERP} WHERE id = ?", removed)
            database.run(f"INSERT INTO {ERP} ({COLUMNS}) VALUES (?, 'theirs', 1, 'new')", foreign)
            database.run("UPDATE clock SET person = 0")
        self.account.by_hand |= {edited, removed, foreign}
        self.account.happened["hand edits at the ERP"] += 3

    def _edit_shop(self) -> None:
        """One edit that moves the version, and one that moves nothing else; no event tells of either."""
        at = _text(self._stamp(0))
        self.places.shop.run(f"UPDATE {SHOP} SET cents = cents + 1, updated_at = ? WHERE id = ?", at, self._any(SHOP))
        self.places.shop.run(f"UPDATE {SHOP} SET cents = cents + 1 WHERE id = ?", self._any(SHOP))
        self.account.happened["hand edits at the shop"] += 2

    def _any(self, table: str) -> int:
        database = self.places.shop if table == SHOP else self.places.erp
        while True:
            found = database.run(
                f"SELECT id FROM {table} WHERE id >= ? AND id <> ? ORDER BY id LIMIT 1",
                self._chance.randrange(1, self._next_id), self.stuck,
            )  # fmt: skip
            if found and (table == SHOP or found[0][0] < 10_000_000):
                return int(found[0][0])

    # ── the backup ───────────────────────────────────────────────────────────────────────────────────

    def back_up(self) -> None:
        """A copy of the shop as it is."""
        self.places.shop.run(f"INSERT INTO {BACKUP} SELECT * FROM {SHOP}")

    def restore(self) -> None:
        """The shop is again what it was; its next orders get numbers that were given before."""
        run = self.places.shop.run
        undone = run(
            f"SELECT s.id FROM {SHOP} s LEFT JOIN {BACKUP} b ON b.id = s.id "
            "WHERE b.id IS NULL OR b.status <> s.status OR b.cents <> s.cents OR b.updated_at <> s.updated_at"
        )
        undone += run(f"SELECT id FROM {BACKUP} WHERE id NOT IN (SELECT id FROM {SHOP})")
        with self.places.shop.transaction():
            run(f"DELETE FROM {SHOP}")
            run(f"INSERT INTO {SHOP} SELECT * FROM {BACKUP}")
        self.account.turned_back |= {int(row[0]) for row in undone}
        self.account.happened["undone by the backup"] = len(undone)
        self._next_id = int(run(f"SELECT max(id) FROM {SHOP}")[0][0]) + 1
        waiting = f"status IN ({', '.join(repr(status) for status in _NEXT)}) AND id <> ?"
        self._recent = deque(
            tuple(row)
            for row in run(
                f"SELECT {COLUMNS} FROM {SHOP} WHERE {waiting} ORDER BY updated_at DESC LIMIT ?",
                self.stuck, 2 * self.plan.orders,
            )
        )  # fmt: skip


def _text(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="microseconds")


def _stored(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[:4], _text(row[4]))
