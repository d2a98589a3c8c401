"""Every schedule of a small scope, up to a number of deviations: depth first, by playing again from the start.

A schedule is a list of choices. The default is that whoever went on last goes on; each other choice is a deviation,
and so is each fault (delay-bounded scheduling: M. Emmi, S. Qadeer, Z. Rakamarić, 2011). A deviation from a state
that was seen before, with as many left, is not played again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from trueup.engine.options import RunOptions
from trueup.model.change import Origin
from trueup.model.record import key_text
from trueup.testing.simulation.nature import Nature
from trueup.testing.simulation.scene import Kind, Scene
from trueup.testing.simulation.scheduler import Actor, Move
from trueup.testing.simulation.station import LEASE_S
from trueup.testing.simulation.world import World

ONLY: Final = 1
KEY: Final = key_text([str(ONLY)])
# Calls that no other host can notice, or whose place among the others makes no difference.
INSTANT: Final = frozenset(
    {"ledger.now", "ledger.due", "ledger.settled", "ledger.counts", "ledger.busy", "budgets.succeeded",
     "budgets.probe",
     "archive.count_cases",
     "archive.begin_run", "archive.keep_run", "archive.save_run", "archive.close_run", "archive.cursor",
     "archive.cut", "archive.claim_piece", "archive.keep_piece", "archive.finish_piece", "archive.pieces",
     "archive.suspects", "archive.count_suspects", "archive.plan", "archive.items", "archive.count_items",
     "archive.move_items", "archive.cases", "archive.streaks", "archive.presences",
     "archive.acceptances"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """What happens in a small world of one record and two workers.

    changes: `newer`, `same` (with the version it had), `delete` (without a version), `rumour` (newer, but the event
    does not say so). runs: `sweep`, `compare`. faults: each once: `freeze`, `crash`, `edit`.
    """

    name: str
    changes: tuple[str, ...]
    runs: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


SCOPES: Final = (
    Scope("two changes, a frozen holder", ("newer", "newer"), faults=("freeze",)),
    Scope("two changes, a crash", ("newer", "newer"), faults=("crash",)),
    Scope("two changes, a compare", ("newer", "newer"), runs=("compare",)),
    Scope("two changes of one version, a sweep", ("newer", "same"), runs=("sweep",)),
    Scope("a change, a delete without a version, a frozen holder", ("newer", "delete"), faults=("freeze",)),
    Scope("a change and a rumour, a sweep and a compare", ("newer", "rumour"), runs=("sweep", "compare")),
    Scope("a change, a compare, a crash", ("newer",), runs=("compare",), faults=("crash",)),
    Scope("a change, a compare, a hand edit", ("newer",), runs=("compare",), faults=("edit",)),
    Scope("three changes, a frozen holder and a crash", ("newer", "same", "newer"), faults=("freeze", "crash")),
    Scope(
        "two changes, a sweep, a compare, a frozen holder and a crash", ("newer", "newer"), ("sweep", "compare"),
        ("freeze", "crash"),
    ),
)  # fmt: skip


@dataclass(slots=True)
class Searched:
    """What a search found. complete: every schedule within the bound was played or known. broken: the first story."""

    scope: Scope
    schedules: int = 0
    known: int = 0
    complete: bool = False
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class _Point:
    """A moment with a choice: the state, and the names of what can go on."""

    state: int
    options: tuple[str, ...]


class _Schedule:
    """One play: prescribed choices first, then the default."""

    def __init__(self, kind: Kind, scope: Scope, prescribed: Sequence[int]) -> None:
        self.points: list[_Point] = []
        self._prescribed, self._scope = prescribed, scope
        self._used: list[str] = []
        self._last: Actor | None = None
        scene = Scene(kind, handler=kind == "unreadable", records=1, settle_s=0)
        self.world = World(scene, self._choose, self._moves)
        self.world.instant, self.world.watch = INSTANT, _remember
        self.nature = Nature(self.world)
        self._open = True

    def play(self) -> str | None:
        """The story where a promise was broken."""
        world = self.world
        try:
            world.begin()
            for name in ("worker-1", "worker-2"):
                world.hire(name)
            for name in self._scope.runs:
                world.run(RunOptions(only=name, enqueue=True), name)  # type: ignore[arg-type]
            world.scheduler.spawn(world.station("nature").host, "nature", self._live)
            world.go_on(lambda: not self._open)
            if not world.broken:
                world.rest()
            return world.story.text() if world.broken else None
        finally:
            world.scheduler.close()

    def _live(self) -> None:
        scheduler = self.world.scheduler
        for change in self._scope.changes:
            self._change(change)
            scheduler.pause(0)
        # Long enough for a frozen holder's lease to end and another worker to take over.
        scheduler.pause(2 * LEASE_S * 1_000_000)
        self._open = False

    def _change(self, what: str) -> None:
        world, nature = self.world, self.nature
        records = nature.ingest.records
        if what == "delete":
            number = world.history.remove(ONLY, world.scheduler.now_us)
            world.story.tell("school", "{} is deleted (n{})", ONLY, number)
            nature.send(records.change_of({"id": ONLY}, deleted=True, origin=Origin.EVENT), number)
            return
        before = world.authority.get(ONLY)
        version = before["v"] if what == "same" and before is not None else world.next_version(before)
        row = {"id": ONLY, "name": f"n{world.history.next()}", "status": "in", "v": version}
        number = world.history.put(row, world.scheduler.now_us)
        if what == "same":
            world.unannounced.add(KEY)
        world.story.tell("school", "{} becomes n{} ({})", ONLY, number, what)
        told = {"id": ONLY} if what == "rumour" else row
        nature.send(records.change_of(told, deleted=False, origin=Origin.EVENT), number)

    def _moves(self) -> list[Move]:
        """The faults that have not been used, on a worker that holds a record."""
        last = self._last
        faults = [fault for fault in self._scope.faults if fault not in self._used] if self._open else []
        holding = last is not None and last.name.startswith("worker") and bool(last.claims) and not last.done
        acts: dict[str, Callable[[Actor], None]] = {"freeze": self._freeze, "crash": self._crash}
        moves = []
        for fault in faults:
            if fault == "edit":
                moves.append(Move("edit", self._edit))
            elif holding and last is not None and last.wake_us <= self.world.scheduler.now_us:
                moves.append(Move(f"{fault} {last.name}", lambda act=acts[fault], on=last: act(on)))  # type: ignore[misc]
        return moves

    def _freeze(self, actor: Actor) -> None:
        self._used.append("freeze")
        self.world.freeze(actor.host, LEASE_S * 1_000_000, "until its lease ends")

    def _crash(self, actor: Actor) -> None:
        self._used.append("crash")
        self.world.story.tell(actor.host.name, "crashes")
        self.world.scheduler.kill(actor.host)

    def _edit(self) -> None:
        self._used.append("edit")
        self.nature.edit_to(ONLY, "by hand")

    def _choose(self, options: Sequence[Actor | Move]) -> int:
        """By the list; the default is whoever went on last, else the first."""
        if not self._open or self.world.resting:
            return 0
        order = sorted(range(len(options)), key=lambda at: options[at] is not self._last)
        at = len(self.points)
        self.points.append(_Point(self._state(), tuple(options[place].name for place in order)))
        chosen = order[self._prescribed[at] if at < len(self._prescribed) else 0]
        option = options[chosen]
        self._last = option if isinstance(option, Actor) else self._last
        return chosen

    def _state(self) -> int:
        """Everything that what follows depends on: an actor's memory is the answers it got."""
        world = self.world
        actors = tuple(
            (a.name, a.steps, a.trace, a.wake_us, a.host.frozen_until_us, a.host.dead) for a in world.scheduler.actors
        )
        rows = repr(world.ledger.rows(world.pair.name, [KEY]))
        systems = repr((world.replica.rows(), world.authority.rows()))
        truth, last = repr(world.promises.truth), None if self._last is None else self._last.name
        return hash((world.scheduler.now_us, actors, rows, systems, truth, last, tuple(self._used)))


def _remember(actor: Actor, name: str, answer: object) -> None:
    actor.trace = hash((actor.trace, name, repr(answer)))


def search(kind: Kind, scope: Scope, deviations: int, schedules_max: int) -> Searched:
    """Plays all schedules with at most so many deviations, or the first `schedules_max` of them."""
    result = Searched(scope)
    seen: set[tuple[int, str, int]] = set()
    waiting: list[tuple[int, ...]] = [()]
    while waiting and result.schedules < schedules_max:
        prescribed = waiting.pop()
        schedule = _Schedule(kind, scope, prescribed)
        result.broken = schedule.play()
        result.schedules += 1
        if result.broken is not None:
            return result
        left = deviations - sum(choice > 0 for choice in prescribed)
        for at in range(len(prescribed), len(schedule.points) if left > 0 else 0):
            point = schedule.points[at]
            before = (*prescribed, *(0,) * (at - len(prescribed)))
            for choice in range(1, len(point.options)):
                step = point.state, point.options[choice], left
                if step in seen:
                    result.known += 1
                else:
                    seen.add(step)
                    waiting.append((*before, choice))
    result.complete = not waiting
    return result
