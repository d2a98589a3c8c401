"""The world: two systems, the state store, hosts that come and go, and the way to rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trueup.engine.options import RunOptions
from trueup.engine.run import RUN_LEASE_US
from trueup.model.digest import digest_of
from trueup.model.kinds import Kind
from trueup.model.record import key_text
from trueup.ports import Archive, Budgets, Clock, Ledger
from trueup.sides.memory import Memory
from trueup.stores.budgets import MemoryBudgets
from trueup.stores.memory import MemoryArchive, MemoryLedger
from trueup.testing.clock import START_US
from trueup.testing.simulation.history import History, ident_of
from trueup.testing.simulation.promises import Promises
from trueup.testing.simulation.scene import Scene
from trueup.testing.simulation.scheduler import Actor, Choose, Host, Move, Scheduler
from trueup.testing.simulation.station import DROPPED, LEASE_S, PAIR, Station
from trueup.testing.simulation.story import Story
from trueup.testing.simulation.weather import CALM, Fate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STEPS_MAX = 20_000
DRAIN_US = 4 * 3_600_000_000
OpenStore = Callable[[Clock], tuple[Ledger, Archive, Budgets]]
COLUMNS: Mapping[str, Kind | str] = {"id": "integer", "name": "text", "status": "text"}


class StoreClock:
    """The state store's clock: true virtual time; asking it is no chance for others."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now_us(self) -> int:
        """Virtual time."""
        return self._world.scheduler.now_us

    def elapsed_us(self) -> int:
        """Virtual time."""
        return self._world.scheduler.now_us

    def sleep(self, seconds: float) -> None:
        """The store never waits."""

    def every(self, seconds: float, call: Callable[[], bool]) -> Callable[[], None]:
        """The store has no rhythm."""
        return lambda: None


def in_memory(clock: Clock) -> tuple[Ledger, Archive, Budgets]:
    """The rules of the ledger over plain dictionaries: thousands of worlds in a minute."""
    return MemoryLedger(clock), MemoryArchive(clock), MemoryBudgets(clock)


class World:
    """Everything there is.

    calm: no more faults. resting: workers end when they have nothing in hand. instant: calls during which nobody
    else goes on. watch: is told every answer. open_store: makes an empty state store that goes by this clock.
    """

    def __init__(
        self,
        scene: Scene,
        choose: Choose | None = None,
        moves: Callable[[], Sequence[Move]] = tuple,
        open_store: OpenStore | None = None,
    ) -> None:
        self.scene, self._open_store = scene, open_store or in_memory
        self.chance = random.Random(f"{scene.kind} {scene.seed} world")
        chance = self.chance
        self.scheduler = Scheduler(choose or (lambda options: chance.randrange(len(options))), moves)
        self.story = Story(lambda: self.scheduler.now_us)
        self.calm, self.resting, self.losses, self.runs = True, False, 0, 0
        self.unannounced: set[str] = set()
        self.instant: frozenset[str] = frozenset()
        self.watch: Callable[[Actor, str, object], None] | None = None
        self._fences: dict[str, list[int]] = {}
        self._hosts = 0
        rows = [
            {"id": at, "name": f"n{at}", "status": "in", "v": self._version(at)} for at in range(1, scene.records + 1)
        ]
        kinds = {**COLUMNS, "v": Kind("timestamp", aware=True) if scene.timestamps else "integer"}
        self.authority = Memory(rows, key="id", version="v", columns=kinds, label="school")
        standby = Memory(rows, key="id", version="v", columns=kinds, label="standby")
        self.history = History(self.authority, standby, self.digest, self._wanted)
        tokens = scene.kind if scene.kind != "unreadable" else "none"
        self.replica = Memory(
            [_shared(row) for row in rows], key="id", columns=COLUMNS, tokens=tokens, label="platform"
        )
        self.promises = Promises(self)
        for row in rows:
            self.promises.begin(key_text([str(row["id"])]), self.digest(row))
        self.new_store()
        self.pair = self.station("setup").pair

    def new_store(self) -> None:
        """A ledger and an archive that know nothing."""
        self.ledger, self.archive, self.budgets = self._open_store(StoreClock(self))

    def begin(self) -> None:
        """Both sides agree, and the ledger knows it."""
        adopt = RunOptions(adopt=self.scene.kind != "unreadable")
        self.station("setup").reconcile(adopt)

    # ── values ───────────────────────────────────────────────────────────────────────────────────────

    def digest(self, row: Mapping[str, Any]) -> str:
        """Of the fields that are compared."""
        return digest_of((row["name"], row["status"]))

    def wanted(self, key: str) -> str | None:
        """The digest that the replica should hold now; None for absent."""
        return self._wanted(self.authority.get(ident_of(key)))

    def _wanted(self, row: Mapping[str, Any] | None) -> str | None:
        return None if row is None or (self.scene.drops and row["status"] == DROPPED) else self.digest(row)

    def put_replica(self, key: str, values: Mapping[str, Any] | None) -> None:
        """The replica's content, past every precondition."""
        if values is None:
            self.replica.remove(ident_of(key))
        else:
            self.replica.put({name: values[name] for name in COLUMNS})

    def _version(self, number: int) -> Any:
        return EPOCH + timedelta(microseconds=START_US - 1_000_000 + number) if self.scene.timestamps else number

    def next_version(self, row: Mapping[str, Any] | None) -> Any:
        """Newer than every version that this record ever had."""
        if not self.scene.timestamps:
            return self.history.next() + 10
        return EPOCH + timedelta(microseconds=self.scheduler.now_us + self.history.next())

    def version_called(self, version: int) -> str:
        """Short, for the story."""
        return str(version) if version < START_US // 2 else f"{(version - START_US) / 1e6:.6f}s"

    def fence_called(self, key: str, fence: int) -> int:
        """Fences of a record, numbered from 1."""
        known = self._fences.setdefault(key, [])
        if fence not in known:
            known.append(fence)
        return known.index(fence) + 1

    # ── hosts ────────────────────────────────────────────────────────────────────────────────────────

    def station(self, name: str) -> Station:
        """A new host, its clock wrong by up to a minute."""
        return Station(self, Host(name, skew_us=self.chance.randint(-60_000_000, 60_000_000)))

    def hire(self, name: str, *, after_us: int = 0) -> None:
        """A worker begins."""
        station = self.station(name)
        self.scheduler.spawn(station.host, name, lambda: station.serve(lambda: self.resting), after_us=after_us)

    def run(self, options: RunOptions, name: str = "run", *, after_us: int = 0) -> None:
        """A run begins."""
        self._hosts += 1
        station = self.station(f"{name}-{self._hosts}")
        self.scheduler.spawn(station.host, station.host.name, lambda: station.reconcile(options), after_us=after_us)

    def crash(self, host: Host, when: str) -> None:
        """The host ends; if it was a worker, another takes its place."""
        self.story.tell(host.name, "crashes {}", when)
        self.scheduler.kill(host)
        name, _, times = host.name.partition("+")
        if name.startswith("worker") and not self.resting:
            self.hire(f"{name}+{int(times or 0) + 1}", after_us=self.chance.randint(0, 40_000_000))

    def freeze(self, host: Host, frozen_us: int, when: str) -> None:
        """The host stands still; its leases run on."""
        self.story.tell(host.name, "freezes {} for {:.1f} s", when, frozen_us / 1e6)
        host.frozen_until_us = self.scheduler.now_us + frozen_us

    def lose_ledger(self) -> None:
        """The state store is gone; hosts that are alive go on with a new one, which somebody adopts later."""
        self.story.tell("NATURE", "the ledger is lost; a new one is empty")
        self.losses += 1
        self.new_store()
        self.promises.ledger_lost()
        self.scheduler.notify()

    def paused_until_us(self) -> list[int]:
        """When each system's pause, or the time of its probe, ends."""
        healths = [self.budgets.health(name) for name in (self.pair.system.name, self.pair.authority_system)]
        return [max(health.paused_until_us, health.probing_until_us) for health in healths]

    # ── what the ports ask ───────────────────────────────────────────────────────────────────────────

    def fate(self, actor: Actor, name: str) -> Fate:
        """What becomes of this call."""
        return CALM if self.calm else self.scene.weather.fate(self.chance, LEASE_S * 1_000_000)

    def lags(self) -> bool:
        """Whether a lagging copy of the authority answers this read."""
        if self.calm or not self.scene.weather.lagging or self.chance.random() > self.scene.weather.lagging:
            return False
        self.history.catch_up(self.scheduler.now_us)
        return True

    def answered(self, actor: Actor, name: str, answer: object) -> None:
        """A call was answered."""
        if self.watch is not None:
            self.watch(actor, name, answer)

    # ── the way to rest ──────────────────────────────────────────────────────────────────────────────

    @property
    def broken(self) -> bool:
        """Whether a promise was broken."""
        return self.promises.broken is not None

    def go_on(self, until: Callable[[], bool] = lambda: False) -> None:
        """Until the condition holds, nobody is left, or a promise breaks."""
        if not self.scheduler.run(lambda: self.broken or until(), STEPS_MAX):
            self.promises.never_at_rest()

    def rest(self) -> None:
        """All faults stop; jobs end; the promises at rest are checked, before and after one confirmed compare."""
        self.story.tell("NATURE", "all faults stop")
        self.calm = self.resting = True
        self.scheduler.notify()
        for stage in (self.go_on, self._drain, self._compare, self._judge):
            if self.promises.broken is None:
                stage()

    def _drain(self) -> None:
        last = self.station("last")
        self.scheduler.spawn(last.host, "last", lambda: last.drain(DRAIN_US))
        self.go_on()
        if not self.broken and not self.losses:
            self.promises.at_rest()

    def _compare(self) -> None:
        adopted = self.ledger.settled(PAIR) or self.scene.kind == "unreadable"
        for options in [RunOptions()] if adopted else [RunOptions(adopt=True), RunOptions()]:
            before = self.runs
            while self.runs == before and not self.broken:
                self.scheduler.now_us += 2_000_000 * self.scene.settle_s
                self.run(options, "final")
                self.go_on()
                self.scheduler.now_us += RUN_LEASE_US  # the slot of a run whose host died is free after its lease

    def _judge(self) -> None:
        if self.scene.kind == "unreadable":
            self.promises.after_sweep()
        else:
            self.promises.after_compare()


def _shared(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in COLUMNS}
