"""The state store and the clock as one host sees them: every call lets others go on, and may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from trueup.errors import StateError, TrueupError
from trueup.model.case import Case
from trueup.model.change import Change, Outcome
from trueup.model.health import Health
from trueup.model.row import Baseline, Claim, Finish, Row, Seen
from trueup.testing.simulation.scheduler import Host, Killed

if TYPE_CHECKING:
    from trueup.testing.simulation.world import World

T = TypeVar("T")
IDLE_US = 10_000_000


class Wire:
    """How the calls of one host travel: late, twice, not at all; and how the host itself ends or stands still."""

    def __init__(self, world: World, host: Host) -> None:
        self.world, self.host = world, host

    def call(self, name: str, effect: Callable[[], T], error: type[TrueupError] = StateError) -> T:
        """One call. Only what happens inside `effect` happens at once."""
        world, host = self.world, self.host
        actor = world.scheduler.current
        if actor is None:
            return effect()
        if host.dead:
            raise Killed
        if name in world.instant:
            return effect()
        actor.doing = name
        fate = world.fate(actor, name)
        if fate.how == "freeze before":
            world.freeze(host, fate.frozen_us, f"before {name}")
        world.scheduler.pause(fate.before_us)
        if fate.how == "lost":
            world.story.tell(actor.name, "{} is lost on its way", name)
            raise error(f"{name}: no connection.")
        if fate.how == "crash before":
            world.crash(host, f"before {name}")
            raise Killed
        answer = effect()
        if fate.how == "twice":
            world.story.tell(actor.name, "{} is sent again by its transport", name)
            world.scheduler.pause(fate.after_us)
            answer = effect()
        if fate.how == "crash after":
            world.crash(host, f"after {name}")
            raise Killed
        if fate.how == "freeze after":
            world.freeze(host, fate.frozen_us, f"after {name}")
        if fate.after_us or fate.how:
            world.scheduler.pause(fate.after_us)
        if fate.how == "unanswered":
            world.story.tell(actor.name, "{} took effect, its answer is lost", name)
            raise error(f"{name}: the connection broke.")
        world.answered(actor, name, answer)
        return answer


class HostClock:
    """The clock of one host, as wrong as that is; its rhythms stop when the host does."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def now_us(self) -> int:
        """Virtual time, plus what this host's clock is wrong by."""
        return self._wire.world.scheduler.now_us + self._wire.host.skew_us

    def elapsed_us(self) -> int:
        """Virtual time."""
        scheduler = self._wire.world.scheduler
        if scheduler.current is not None:
            scheduler.current.looked = (scheduler.steps, scheduler.now_us)
        return scheduler.now_us

    def sleep(self, seconds: float) -> None:
        """Lets others go on meanwhile."""
        self._wire.world.scheduler.pause(round(seconds * 1e6))

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """An actor of its own on this host."""
        scheduler = self._wire.world.scheduler
        caller, busy = scheduler.current, False
        if caller is None:
            return lambda: None

        def loop() -> None:
            nonlocal busy
            while True:
                scheduler.pause(round(seconds * 1e6))
                busy = True
                try:
                    if not call():
                        return
                except StateError:
                    return  # a thread that dies: the leases run out
                finally:
                    busy = False

        rhythm = scheduler.spawn(self._wire.host, f"{caller.name}~", loop)

        def stop() -> None:
            while busy and not self._wire.host.dead:
                scheduler.pause(1_000)
            if rhythm in scheduler.actors:
                scheduler.drop(rhythm)

        return stop


class LedgerPort:
    """The ledger as one host reaches it; what it answers is told to the promises before anybody else goes on."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._world = wire.world

    def offer(self, changes: Sequence[Change], *, connection: Any = None) -> list[Outcome]:
        """See the port."""

        def effect() -> list[Outcome]:
            outcomes = self._world.ledger.offer(changes, connection=connection)
            self._world.promises.offered(changes, outcomes)
            self._world.scheduler.notify()
            return outcomes

        return self._wire.call("ledger.offer", effect)

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
        """See the port."""

        def effect() -> list[Claim]:
            claims = self._world.ledger.claim(pairs, limit, owner, lease_us, tries_max, keys, others)
            self._world.promises.claimed(claims)
            return claims

        return self._wire.call("ledger.claim", effect)

    def attempt(self, intents: Sequence[tuple[Claim, str]]) -> list[bool]:
        """See the port."""

        def effect() -> list[bool]:
            self._world.promises.checking([claim for claim, _ in intents])
            held = self._world.ledger.attempt(intents)
            self._world.promises.checked([claim for claim, _ in intents], held)
            return held

        return self._wire.call("ledger.attempt", effect) if intents else []

    def renew(self, claims: Sequence[Claim], lease_us: int) -> list[bool]:
        """See the port."""

        def effect() -> list[bool]:
            self._world.promises.checking(claims)
            held = self._world.ledger.renew(claims, lease_us)
            self._world.promises.checked(claims, held)
            return held

        return self._wire.call("ledger.renew", effect) if claims else []

    def finish(self, finishes: Sequence[Finish]) -> list[bool]:
        """See the port."""

        def effect() -> list[bool]:
            accepted = self._world.ledger.finish(finishes)
            self._world.promises.finished(finishes, accepted)
            self._world.scheduler.notify()
            return accepted

        return self._wire.call("ledger.finish", effect) if finishes else []

    def rows(self, pair: str, keys: Sequence[str]) -> dict[str, Row]:
        """See the port."""
        return self._wire.call("ledger.rows", lambda: self._world.ledger.rows(pair, keys))

    def unlike(self, pair: str, seen: Sequence[Seen]) -> list[str]:
        """See the port."""
        return self._wire.call("ledger.unlike", lambda: self._world.ledger.unlike(pair, seen))

    def scan(self, pair: str, where: str = "all") -> Iterator[list[Row]]:
        """See the port."""
        return iter(self._wire.call("ledger.scan", lambda: list(self._world.ledger.scan(pair, where))))

    def baseline(self, pair: str, items: Sequence[Baseline]) -> int:
        """See the port."""

        def effect() -> int:
            before = self._world.ledger.rows(pair, [item.key for item in items])
            stored = self._world.ledger.baseline(pair, items)
            self._world.promises.agreed(items, before)
            return stored

        return self._wire.call("ledger.baseline", effect) if items else 0

    def revive(self, pair: str, tries_max: int, keys: Sequence[str] | None = None) -> int:
        """See the port."""

        def effect() -> int:
            revived = self._world.ledger.revive(pair, tries_max, keys)
            self._world.scheduler.notify()
            return revived

        return self._wire.call("ledger.revive", effect)

    def counts(self, pair: str) -> dict[str, int]:
        """See the port."""
        return self._wire.call("ledger.counts", lambda: self._world.ledger.counts(pair))

    def busy(self, pair: str) -> dict[str, int]:
        """See the port."""
        return self._wire.call("ledger.busy", lambda: self._world.ledger.busy(pair))

    def settled(self, pair: str) -> bool:
        """See the port."""
        return self._wire.call("ledger.settled", lambda: self._world.ledger.settled(pair))

    def settle(self, pair: str) -> None:
        """See the port."""
        self._wire.call("ledger.settle", lambda: self._world.ledger.settle(pair))

    def history(self, pair: str, key: str, limit: int = 100) -> list[tuple[int, str, str]]:
        """See the port."""
        return self._world.ledger.history(pair, key, limit)

    def prune(self, older_than_us: int) -> int:
        """See the port."""
        return self._world.ledger.prune(older_than_us)

    def due(self, pairs: Sequence[str]) -> list[str]:
        """See the port."""
        return self._wire.call("ledger.due", lambda: self._world.ledger.due(pairs))

    def next_due_us(self, pairs: Sequence[str]) -> int | None:
        """See the port."""
        return self._world.ledger.next_due_us(pairs)

    def wait(self, timeout_s: float) -> None:
        """Until the ledger changes or something is due; longer than asked for, since nothing else could happen."""
        scheduler = self._world.scheduler
        if self._wire.host.dead:
            raise Killed
        due_us = self._world.ledger.next_due_us([self._world.pair.name])
        if due_us is not None:
            due_us = max(due_us, *self._world.paused_until_us())
        left_us = IDLE_US if due_us is None else min(IDLE_US, due_us - scheduler.now_us)
        left_us = max(left_us, round(timeout_s * 1e6) if left_us <= 0 else 1_000)
        if scheduler.current is not None:
            scheduler.current.doing = "ledger.wait"
        scheduler.pause(left_us, waiting=True)

    def now_us(self) -> int:
        """See the port."""
        return self._wire.call("ledger.now", self._world.ledger.now_us)

    def close(self) -> None:
        """Nothing to give back."""


class StorePort:
    """Another part of the state store as one host reaches it: every method is a call."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire, self._name = wire, name

    def __getattr__(self, name: str) -> Any:
        """A method of the port."""
        wire, part = self._wire, self._name

        def method(*args: Any, **options: Any) -> Any:
            return wire.call(f"{part}.{name}", lambda: getattr(getattr(wire.world, part), name)(*args, **options))

        return method


class BudgetsPort(StorePort):
    """What is known of the systems' health."""

    def health(self, name: str) -> Health:
        """See the port. Asked before every claim, so that it happens together with the claim."""
        return self._wire.world.budgets.health(name)


class ArchivePort(StorePort):
    """Runs, cursors and cases as one host reaches them."""

    def open_cases(self, cases: Sequence[Case]) -> dict[str, int]:
        """See the port."""

        def effect() -> dict[str, int]:
            self._wire.world.promises.asked(cases)
            return self._wire.world.archive.open_cases(cases)

        return self._wire.call("archive.open_cases", effect) if cases else {}
