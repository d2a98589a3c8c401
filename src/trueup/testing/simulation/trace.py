"""One story, directed by hand: who goes on, how far, and what happens in between. For tests of named traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueup.engine.options import RunOptions
from trueup.model.change import Change, Origin, Outcome
from trueup.model.record import key_text
from trueup.model.row import Row
from trueup.testing.simulation.nature import Nature
from trueup.testing.simulation.scene import Kind, Scene
from trueup.testing.simulation.scheduler import Actor, Move
from trueup.testing.simulation.station import LEASE_S, PAIR
from trueup.testing.simulation.world import World


class Trace:
    """A world in which nothing happens that the trace does not say.

    `go` lets one actor go on until it is about to make a call; nobody else moves meanwhile, so whoever is left
    standing is as good as frozen. `end` lets everything come to rest and answers the promise that was broken.
    """

    def __init__(self, kind: Kind = "opaque", **scene: Any) -> None:
        options = {"records": 1, "settle_s": 0, "handler": kind == "unreadable"} | scene
        self.world = World(Scene(kind, **options), self._choose)
        self._chosen: Actor | None = None
        self.world.begin()
        self.nature = Nature(self.world)

    def _choose(self, options: Sequence[Actor | Move]) -> int:
        return next((at for at, option in enumerate(options) if option is self._chosen), 0)

    # ── what happens outside ─────────────────────────────────────────────────────────────────────────

    def change(self, *, version: int | None = None, ident: int = 1) -> Change:
        """The record changes at the authority; the answer is its event, which nobody has brought yet.

        version: newer than any by default.
        """
        world = self.world
        at = world.next_version(world.authority.get(ident)) if version is None else version
        row = {"id": ident, "name": f"n{world.history.next()}", "status": "in", "v": at}
        self.nature._becomes(row)
        return self.nature.ingest.records.change_of(row, deleted=False, origin=Origin.EVENT)

    def delete(self, *, version: int | None = None, ident: int = 1) -> Change:
        """The record is deleted at the authority; its event says when only where a version is given."""
        values = {"id": ident, **({} if version is None else {"v": version})}
        change = self.nature.ingest.records.change_of(values, deleted=True, origin=Origin.EVENT)
        number = self.world.history.remove(ident, self.world.scheduler.now_us, change.version)
        self.world.story.tell("school", "{} is deleted (n{})", ident, number)
        return change

    def offer(self, *changes: Change) -> list[Outcome]:
        """Events arrive."""
        outcomes = self.nature.ingest.ledger.offer(changes)
        for change, outcome in zip(changes, outcomes, strict=True):
            if change.digest is None and outcome.accepted:
                truth = self.world.promises.truth[change.key]
                truth.accepted = self.world.history.number(change.key)
        return outcomes

    def rumour(self, ident: int = 1) -> Change:
        """An event that says of a record only that something happened."""
        return self.nature.ingest.records.change_of({"id": ident}, deleted=False, origin=Origin.EVENT)

    def edit(self, name: str = "by hand", ident: int = 1) -> None:
        """A person writes at the replica."""
        self.nature.edit_to(ident, name)

    def later(self, seconds: float = LEASE_S + 1) -> None:
        """Time passes and nobody moves: by default longer than a lease."""
        self.world.scheduler.now_us += round(seconds * 1e6)

    # ── who goes on ──────────────────────────────────────────────────────────────────────────────────

    def worker(self, name: str) -> Actor:
        """A worker that has not done anything yet."""
        self.world.hire(name)
        return self.world.scheduler.actors[-1]

    def run(self, options: RunOptions | None = None) -> Actor:
        """A run that has not done anything yet; by default a compare that leaves the jobs to workers."""
        self.world.run(options or RunOptions(only="compare", enqueue=True))
        return self.world.scheduler.actors[-1]

    def go(self, actor: Actor, before: str = "ledger.wait") -> None:
        """Until it is about to make this call; by default until it has nothing more to do."""
        self._chosen = actor
        scheduler = self.world.scheduler
        while not actor.done and not self.world.broken:
            actor.wake_us, actor.doing = scheduler.now_us, ""
            scheduler.step()
            if actor.doing == before:
                return
        assert actor.done or self.world.broken or before == "ledger.wait"

    def crash(self, actor: Actor) -> None:
        """Its host ends where it stands."""
        self.world.story.tell(actor.host.name, "crashes before {}", actor.doing)
        self.world.scheduler.kill(actor.host)

    # ── what became of it ────────────────────────────────────────────────────────────────────────────

    def row(self, ident: int = 1) -> Row:
        """The ledger's row."""
        key = key_text([str(ident)])
        return self.world.ledger.rows(PAIR, [key])[key]

    def held(self, ident: int = 1) -> str | None:
        """The name that the replica holds."""
        row = self.world.replica.get(ident)
        return None if row is None else row["name"]

    @property
    def cases(self) -> dict[str, str]:
        """Drift by key of the open cases."""
        return {case.key: case.drift for case in self.world.archive.cases(PAIR)}

    @property
    def story(self) -> str:
        """All that happened so far."""
        return self.world.story.text()

    def end(self) -> str | None:
        """Everything comes to rest; answers the promise that was broken."""
        if not self.world.broken:
            self.world.rest()
        self.world.scheduler.close()
        return self.world.promises.broken
