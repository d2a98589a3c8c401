"""One host: its own way to the ledger and the systems, and the engine's real parts bound to them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trueup.compare.result import Comparison
from trueup.engine.comparing import Comparing
from trueup.engine.options import RunOptions
from trueup.engine.records import Records
from trueup.engine.run import Reconciliation
from trueup.engine.worker import Worker
from trueup.errors import RunStopped, RunUnderWay, SideError, StateError
from trueup.model.change import DELETE, Change
from trueup.model.record import Payload
from trueup.pair import ANY_ACTION, Handlers, declare
from trueup.ports import Side
from trueup.testing.simulation.comparison import compare_plainly
from trueup.testing.simulation.ports import ArchivePort, BudgetsPort, HostClock, LedgerPort, Wire
from trueup.testing.simulation.scheduler import Host
from trueup.testing.simulation.sides import AuthorityPort, ReplicaPort

if TYPE_CHECKING:
    from trueup.testing.simulation.world import World

PAIR = "people"
LEASE_S = 30
DROPPED = "dropped"


class SimulatedRun(Reconciliation):
    """A real run, but for the join of its comparison, which a handful of records do not need DuckDB for."""

    def _compared(self, left: Side, right: Side, comparing: Comparing, progress: Any) -> Comparison:
        return compare_plainly(left, right, self.records.plan)


class Station:
    """What runs on one host."""

    def __init__(self, world: World, host: Host) -> None:
        self.world, self.host = world, host
        wire = Wire(world, host)
        self.ledger, self.archive = LedgerPort(wire), ArchivePort(wire, "archive")
        self.budgets, self.clock = BudgetsPort(wire, "budgets"), HostClock(wire)
        self.authority = AuthorityPort(wire, "school", lambda: world.authority)
        self.replica = ReplicaPort(wire, "platform", lambda: world.replica)
        readable = world.scene.kind != "unreadable"
        self.pair = declare(
            PAIR, authority=self.authority, replica=self.replica if readable else None, **options(world)
        )
        self.records = Records(self.pair)
        self.handlers = Handlers(PAIR)
        if world.scene.handler:
            self.handlers.add(ANY_ACTION, self._put if readable else self._push)
        self.chance = random.Random(world.chance.getrandbits(32))

    def _put(self, change: Change, replica: Any) -> None:
        if change.action in (DELETE, DROPPED):
            replica.delete(change)
        else:
            replica.put(change)

    def _push(self, change: Change) -> None:
        gone = change.action in (DELETE, DROPPED)
        self.replica.push(change.key, None if gone else Payload.loads(change.payload).values)

    def worker(self) -> Worker:
        """The real worker, with one thread: an actor."""
        return Worker(
            self.ledger, self.archive, self.budgets, self.clock, {PAIR: (self.records, self.handlers)},
            owner=self.host.name, seed=1, threads=1,
        )  # fmt: skip

    def serve(self, ended: Callable[[], bool]) -> None:
        """Works until told to end; a store that fails is tried again."""
        worker = self.worker()
        while not ended():
            try:
                if not worker.once(self.chance):
                    self.ledger.wait(1.0)
            except StateError:
                self.clock.sleep(1.0)

    def drain(self, patience_us: int) -> None:
        """Works until nothing is left."""
        self.worker().drain(patience_us)

    def reconcile(self, run_options: RunOptions) -> None:
        """One run; what it can't reach, the next run will."""
        story = self.world.story
        story.tell(self.host.name, "begins: {}", _called(run_options))
        try:
            run = SimulatedRun(
                self.records, self.ledger, self.archive, self.clock, self.worker(), run_options, self.chance
            )
            report = run.perform()
        except (StateError, SideError, RunStopped, RunUnderWay) as error:
            story.tell(self.host.name, "gives up: {}", error)
        else:
            self.world.runs += not report.resumed  # what a dead run had seen says nothing of now
            story.tell(self.host.name, "ends")


def _called(run_options: RunOptions) -> str:
    if run_options.adopt:
        return "adopt" + " --backfill" * run_options.backfill + " --trust-authority" * run_options.trust_authority
    return "run" + (f" --only {run_options.only}" if run_options.only else "") + " --enqueue" * run_options.enqueue


def options(world: World) -> Mapping[str, Any]:
    """How the pair is declared."""
    scene = world.scene
    declared: dict[str, Any] = {
        "settle": scene.settle_s, "lease": LEASE_S, "recheck": 300, "overlap": 60, "tries": 8, "ignore": ["v"],
    }  # fmt: skip
    if scene.drops:
        declared |= {"action_field": "status", "absent_when": {"status": [DROPPED]}}
    if scene.orphans:
        declared |= {"on_drift": {"orphaned": "repair"}}
    return declared
