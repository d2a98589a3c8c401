"""Virtual time and greenlets: at every pause the scheduler decides who goes on.

A seed (or a search) makes every decision, so that the same decisions give the same story. The idea is
FoundationDB's and TigerBeetle's: the real code, a world of one thread, and time that only moves when all wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from greenlet import GreenletExit, getcurrent, greenlet

from trueup.model.row import Claim
from trueup.testing.clock import START_US


class Killed(GreenletExit):
    """The host died: whatever its greenlets still try has no effect."""


@dataclass(eq=False)
class Host:
    """A machine with its own clock. frozen_until_us: nothing of it runs before. skew_us: how wrong its clock is."""

    name: str
    skew_us: int = 0
    frozen_until_us: int = 0
    dead: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What one read of the authority showed: number of the state in its history, and whether a reader lagged."""

    number: int
    lagging: bool = False


@dataclass(eq=False)
class Actor:
    """One thread of a host.

    claims, seen: what it holds, and read since. answered: when the store last answered about the lease, and whether
    it held then. looked: step and time at which it last looked at its clock. claimed_at, replica_read_at: steps at
    which it claimed the record and last read it at the replica. event: number of the state whose event it
    brings. doing: the call it is about to make. steps, trace: how often it went on, and a digest of all answers it got.
    """

    name: str
    host: Host
    wake_us: int
    thread: greenlet = field(repr=False, default=None)  # type: ignore[assignment]
    waiting: bool = False
    claims: dict[str, Claim] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    answered: dict[str, tuple[int, bool]] = field(default_factory=dict)
    looked: tuple[int, int] = (0, 0)
    claimed_at: dict[str, int] = field(default_factory=dict)
    replica_read_at: dict[str, int] = field(default_factory=dict)
    event: int | None = None
    doing: str = ""
    steps: int = 0
    trace: int = 0

    @property
    def done(self) -> bool:
        """Whether its function has returned."""
        return self.thread.dead


@dataclass(frozen=True, slots=True)
class Move:
    """Something that may happen next beside an actor going on."""

    name: str
    act: Callable[[], None]


# Chooses one of the actors that can go on, or a move; the answer is its index.
Choose = Callable[[Sequence[Actor | Move]], int]


class Scheduler:
    """Runs actors one at a time; the world ends when nobody is left or a limit of steps is passed."""

    def __init__(self, choose: Choose, moves: Callable[[], Sequence[Move]] = tuple) -> None:
        self.now_us = START_US
        self.steps = 0
        self.current: Actor | None = None
        self.actors: list[Actor] = []
        self._choose, self._moves = choose, moves
        self._hub = getcurrent()

    def spawn(self, host: Host, name: str, function: Callable[[], None], *, after_us: int = 0) -> Actor:
        """A new actor that begins after a while."""
        actor = Actor(name, host, self.now_us + after_us)
        actor.thread = greenlet(function, parent=self._hub)
        self.actors.append(actor)
        return actor

    def pause(self, microseconds: int, *, waiting: bool = False) -> None:
        """Lets others go on, at least for this long. waiting: `notify` ends it early."""
        actor = self.current
        assert actor is not None
        if actor.host.dead:
            raise Killed
        actor.wake_us, actor.waiting = self.now_us + microseconds, waiting
        self._hub.switch()
        actor.waiting = False
        if actor.host.dead:
            raise Killed

    def notify(self) -> None:
        """Wakes every actor that waits."""
        for actor in self.actors:
            if actor.waiting:
                actor.wake_us = min(actor.wake_us, self.now_us)

    def kill(self, host: Host) -> None:
        """Everything on this host ends where it stands; nothing of it has an effect any more."""
        host.dead = True
        for actor in self.actors:
            if actor.host is host and actor is not self.current:
                actor.wake_us, host.frozen_until_us = self.now_us, 0

    def drop(self, actor: Actor) -> None:
        """Ends an actor that is between two calls."""
        self.actors.remove(actor)
        actor.thread.parent = getcurrent()  # where control goes when it ends
        actor.thread.throw(Killed)

    def run(self, until: Callable[[], bool], steps_max: int) -> bool:
        """Goes on until the condition holds or nobody is left; False where that takes too many steps."""
        self._hub = getcurrent()
        last = self.steps + steps_max
        while self.actors and not until():
            if self.steps >= last:
                return False
            self.step()
        return True

    def step(self) -> None:
        """One actor goes on to its next pause, or one move is made."""
        ready = self._ready()
        options: Sequence[Actor | Move] = [*ready, *self._moves()]
        chosen = options[self._choose(options) if len(options) > 1 else 0]
        self.steps += 1
        if isinstance(chosen, Move):
            chosen.act()
            return
        self.current = chosen
        chosen.steps += 1
        try:
            chosen.thread.switch()
        finally:
            self.current = None
            if chosen.thread.dead and chosen in self.actors:
                self.actors.remove(chosen)

    def _ready(self) -> list[Actor]:
        """Who can go on now; where nobody can, time moves to the first who will."""
        while True:
            now_us, first_us, ready = self.now_us, -1, []
            for actor in self.actors:
                wake_us, frozen_us = actor.wake_us, actor.host.frozen_until_us
                wake_us = frozen_us if frozen_us > wake_us else wake_us
                if wake_us <= now_us:
                    ready.append(actor)
                elif first_us < 0 or wake_us < first_us:
                    first_us = wake_us
            if ready:
                return ready
            self.now_us = first_us

    def close(self) -> None:
        """Ends every actor without effect."""
        for actor in self.actors:
            actor.host.dead = True
        for actor in list(self.actors):
            self.current = actor
            actor.thread.throw(Killed)
        self.current = None
        self.actors.clear()
