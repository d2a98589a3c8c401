"""What happens from outside: changes and their events, people, runs, backups and losses, as the seed says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup.engine.options import Phase, RunOptions
from trueup.errors import StateError
from trueup.model.change import Change, Origin
from trueup.model.record import key_text
from trueup.testing.simulation.station import DROPPED, Station
from trueup.testing.simulation.world import World


class Nature:
    """Draws from the world's chance. One actor: it acts, sleeps, and acts again."""

    def __init__(self, world: World) -> None:
        self.world, self.chance = world, world.chance
        self.ingest: Station = world.station("ingest")
        self._host = world.station("nature").host
        self._backup: list[dict[str, Any]] = []
        self._hand = 0
        self.ended = False

    def begin(self) -> None:
        """Sets the world going."""
        scene = self.world.scene
        for at in range(scene.workers):
            self.world.hire(f"worker-{at + 1}")
        self.world.scheduler.spawn(self._host, "nature", self._live)

    def _live(self) -> None:
        scene, chance = self.world.scene, self.chance
        restore_at = chance.randrange(scene.steps) if scene.restores else -1
        loss_at = chance.randrange(scene.steps) if scene.losses else -1
        for step in range(scene.steps):
            self.world.scheduler.pause(self._gap_us())
            if step == restore_at:
                self.restore()
            elif step == loss_at:
                self.lose_ledger()
            else:
                self._act()
        self.world.scheduler.pause(chance.randint(0, 30_000_000))
        self.ended = True

    def _gap_us(self) -> int:
        roll = self.chance.random()
        return 0 if roll < 0.3 else int(self.chance.random() * (2_000_000 if roll < 0.7 else 40_000_000))

    def _act(self) -> None:
        chance = self.chance
        ident = chance.randint(1, self.world.scene.records)
        roll = chance.random()
        if roll < 0.5:
            self.change(ident, newer=chance.random() < 0.75)
        elif roll < 0.6:
            self.delete(ident, versioned=chance.random() < 0.5)
        elif roll < 0.72:
            if self.world.scene.hands:
                self.edit(ident)
        elif roll < 0.76:
            self._backup = self.world.authority.rows()
        else:
            self.run()

    # ── the authority ────────────────────────────────────────────────────────────────────────────────

    def change(self, ident: int, *, newer: bool = True) -> None:
        """The record changes; with the version it has, or a newer one. Its event may lack version or values."""
        world = self.world
        before = world.authority.get(ident)
        drop = world.scene.drops and before is not None and before["status"] == "in" and self.chance.random() < 0.3
        version = before["v"] if before is not None and not newer else world.next_version(before)
        row = {"id": ident, "name": f"n{world.history.next()}", "status": DROPPED if drop else "in", "v": version}
        if before is not None and not newer:
            world.unannounced.add(key_text([str(ident)]))
        number = self._becomes(row)
        if self.chance.random() < 0.2:
            row = {name: row[name] for name in (("id",) if self.chance.random() < 0.5 else ("id", "name", "status"))}
        self._announce(self.ingest.records.change_of(row, deleted=False, origin=Origin.EVENT), number)

    def _becomes(self, row: Mapping[str, Any]) -> int:
        world = self.world
        before = world.authority.get(row["id"])
        same = before is not None and before["v"] == row["v"]
        number = world.history.put(row, world.scheduler.now_us)
        how = "with the version it had" if same else "with a newer version"
        dropped = " (dropped)" if row["status"] == DROPPED else ""
        world.story.tell("school", "{} becomes n{}{}, {}", row["id"], number, dropped, how)
        return number

    def delete(self, ident: int, *, versioned: bool) -> None:
        """The record is deleted."""
        world = self.world
        if world.authority.get(ident) is None:
            return
        row = {"id": ident, **({"v": world.next_version(None)} if versioned else {})}
        change = self.ingest.records.change_of(row, deleted=True, origin=Origin.EVENT)
        number = world.history.remove(ident, world.scheduler.now_us, change.version)
        world.story.tell("school", "{} is deleted (n{})", ident, number)
        self._announce(change, number)

    def restore(self) -> None:
        """The authority is restored from its last backup."""
        if self._backup:
            self.world.story.tell("school", "is restored from a backup: {}", [row["name"] for row in self._backup])
            self.world.history.restore(self._backup, self.world.scheduler.now_us)
            for key in self.world.promises.truth:
                self.world.promises.truth[key].excused = True

    def _announce(self, change: Change, number: int) -> None:
        """Its event: lost, late, or twice."""
        chance = self.chance
        roll = chance.random()
        if roll < 0.12:
            self.world.story.tell("school", "the event of n{} is lost", number)
            return
        for _ in range(2 if roll > 0.88 else 1):
            self.send(change, number, self._delay_us())

    def _delay_us(self) -> int:
        roll = self.chance.random()
        if roll < 0.4:
            return 0
        return int(self.chance.random() * (1_000_000 if roll < 0.6 else 30_000_000 if roll < 0.85 else 150_000_000))

    def send(self, change: Change, number: int, after_us: int = 0) -> None:
        """The event arrives, and is offered until the ledger has taken it."""
        world = self.world

        def deliver() -> None:
            actor = world.scheduler.current
            assert actor is not None
            actor.event = number
            while True:
                try:
                    self.ingest.ledger.offer([change])
                except StateError:
                    world.scheduler.pause(1_000_000)
                else:
                    return

        if self.ingest.host.dead:
            self.ingest = world.station("ingest")
        world.scheduler.spawn(self.ingest.host, f"event-n{number}", deliver, after_us=after_us)

    # ── the replica, the runs, the store ─────────────────────────────────────────────────────────────

    def edit(self, ident: int) -> None:
        """A person writes at the replica: something of their own, an old state, or nothing any more."""
        world, roll = self.world, self.chance.random()
        key = key_text([str(ident)])
        if roll < 0.2:
            world.put_replica(key, None)
            world.promises.edited(key, None)
            world.story.tell("person", "removes {} at the replica", ident)
            return
        self._hand += 1
        self.edit_to(ident, f"by hand {self._hand}")

    def edit_to(self, ident: int, name: str) -> None:
        """A person writes this at the replica."""
        world, key = self.world, key_text([str(ident)])
        values = {"id": ident, "name": name, "status": "in"}
        world.put_replica(key, values)
        world.promises.edited(key, world.digest(values))
        world.story.tell("person", "writes {} to {} at the replica", name, ident)

    def run(self) -> None:
        """A run, a sweep or a compare begins."""
        phases: tuple[Phase | None, ...] = (None, "sweep", "compare", "compare")
        only = self.chance.choice(phases)
        self.world.run(RunOptions(only=only, enqueue=self.chance.random() < 0.6))

    def lose_ledger(self) -> None:
        """The store is lost, and adopted again after a while."""
        chance = self.chance
        self.world.lose_ledger()
        readable = self.world.scene.kind != "unreadable"
        options = RunOptions(adopt=readable, backfill=chance.random() < 0.5, trust_authority=chance.random() < 0.5)
        self.world.run(options, after_us=chance.randint(0, 60_000_000))
