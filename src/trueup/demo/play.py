"""The story of the demo. Every number it prints is computed from the two databases and the ledger."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import chdir, closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trueup.bound import BoundPair
from trueup.cli import report_text
from trueup.cli.main import main
from trueup.demo import flights
from trueup.demo.inject import WHERE, Injector, Key
from trueup.engine.report import Report
from trueup.model.change import Outcome
from trueup.model.record import key_text
from trueup.project import Project
from trueup.sides.sql import Sql

SEED = 20130101
EVENTS = 20_000
MEMORY_MB = 128
PLAN_SHOWN = 3
LEASE_S = 3


def declare(folder: Path, seed: int = SEED) -> Project:
    """The demo's project: flights → departures, two SQLite files, and the state beside them."""
    project = Project(state=f"sqlite:///{folder / 'trueup.db'}", seed=seed, memory_mb=MEMORY_MB, threads=1)
    project.pair(
        "flights",
        authority=Sql(f"sqlite:///{folder / 'flights.db'}", table="flights", key=list(flights.KEY), version="revision"),
        replica=Sql(f"sqlite:///{folder / 'board.db'}", table="departures", key=list(flights.KEY)),
        settle=0,
        lease=LEASE_S,
    )
    return project


class Demo:
    """Plays the story in a folder; answers whether everything ended as it should."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.folder, self.console = folder, console
        self.authority, self.replica = folder / "flights.db", folder / "board.db"
        self.started, self.worker_mib = time.monotonic(), 0

    def play(self) -> bool:
        """All chapters; False where a promise was not kept."""
        self.title("Two systems: the flights of 2013 from New York, and a departures board")
        total = flights.build(self.authority, self.replica)
        self.say(f"flights.db#flights → board.db#departures, {total:,} records each")
        injector = Injector(self.authority, self.replica, SEED)
        injector.before_adoption()
        with declare(self.folder) as project:
            pair = project.find("flights")
            self.before_adoption(pair)
            self.adopt(pair)
            self.drift(pair, injector)
            report = self.reconcile(pair)
            self.events(pair, injector)
            kept = self.kill_a_worker(pair, injector)
            return self.prove(pair, injector, report) and kept

    def before_adoption(self, pair: BoundPair) -> None:
        """A pair that nobody adopted only reports."""
        self.command("trueup run flights")
        report_text.show(pair.run(), pair.pair, PLAN_SHOWN)

    def adopt(self, pair: BoundPair) -> None:
        """Adoption stores what agrees as the common ancestor."""
        self.command("trueup adopt flights")
        report_text.show(pair.adopt(), pair.pair, PLAN_SHOWN)

    def drift(self, pair: BoundPair, injector: Injector) -> None:
        """Lost events, hand edits, deletions; then the plain comparison."""
        self.title("Weeks pass: events are lost, people edit by hand")
        injector.after_adoption()
        injector.normalised()
        injector.changed_in_order()
        for kind, keys in injector.injected.keys.items():
            self.say(f"  {len(keys):>4}  {kind}")
        left, right = "flights.db#flights", "board.db#departures"
        self.command(f"trueup diff {left} {right} --key {','.join(flights.KEY)} --ignore revision --limit 6")
        with chdir(self.folder):
            main(["diff", left, right, "--key", ",".join(flights.KEY), "--ignore", "revision", "--limit", "6",
              "--memory", str(MEMORY_MB)], standalone=False)  # fmt: skip

    def reconcile(self, pair: BoundPair) -> Report:
        """One run: sweep, compare, confirm, repair, ask."""
        self.command("trueup run flights")
        report = pair.run()
        report_text.show(report, pair.pair, PLAN_SHOWN)
        return report

    def events(self, pair: BoundPair, injector: Injector) -> None:
        """A newer event is applied; an older one is dropped at the door."""
        self.title("Events: newer applied, older dropped")
        [key] = injector.take(1)
        old, new = (self.change_at_authority([key], "dep_time", minute)[0] for minute in (1111, 2222))
        ident = key_text(str(part) for part in key)
        for name, values in (("newer", new), ("older", old)):
            [outcome] = pair.offer(values)
            ends = pair.perform(ident)
            said = "stale: dropped, nothing ran" if outcome is Outcome.STALE else f"{outcome}, {ends['done']} done"
            self.say(f" the {name} event, revision {values['revision']:,}, dep_time {values['dep_time']}: {said};")
            self.say(f" the board says {self.at_replica(key, 'dep_time')}")
        self.command(f"trueup explain flights '{ident}'")
        report_text.show_story(pair.explain(ident))

    def kill_a_worker(self, pair: BoundPair, injector: Injector) -> bool:
        """Kills a worker in the middle of many jobs; the next one goes on where it stopped."""
        self.title("kill -9 of a worker in the middle of its jobs")
        keys = injector.take(EVENTS)
        changed = self.change_at_authority(keys, "arr_time", 1)
        for at in range(0, len(changed), 1_000):
            pair.offer(changed[at : at + 1_000])
        pending = pair.status().counts["pending"]
        worker = subprocess.Popen([sys.executable, "-m", "trueup.demo.worker", str(self.folder)])  # noqa: S603
        deadline = time.monotonic() + 60
        while pair.status().counts["pending"] > pending // 2 and worker.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        self.worker_mib = peak_mib(worker.pid)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        counts = pair.status().counts
        self.say(
            f" {pending:,} jobs; killed after {pending - counts['pending']:,}, with {counts['leased']:,} in its hands"
        )
        ends = pair._project.worker([pair.name]).drain(2 * LEASE_S * 1_000_000)
        written = sum(self.at_replica(key, "arr_time") == 1 for key in keys)
        self.say(f" the next worker ended {ends['done']:,} more; {written:,} of {len(keys):,} changes are on the board")
        return written == len(keys)

    def prove(self, pair: BoundPair, injector: Injector, report: Report) -> bool:
        """The table of what was injected and what became of it, and a last comparison."""
        self.title("Proof: one more run, then every injected record looked at again on both sides")
        last = pair.run(only="compare")
        cases = {case.key: case for case in pair._project.archive.cases(pair.name)}
        found = {item.key for item in report.plan}
        table = Table("drift", "injected", "found", "repaired", "in review", "left", box=None, header_style="bold")
        sums = [0, 0, 0, 0, 0]
        for kind, keys in injector.injected.keys.items():
            row = self.fate(pair, kind, keys, found, set(cases))
            table.add_row(kind, *(f"{number:,}" for number in row))
            sums = [a + b for a, b in zip(sums, row, strict=True)]
        table.add_row("all", *(f"{number:,}" for number in sums), style="bold")
        self.console.print(table)
        differing = {item.key for item in last.plan}
        unlike = set(injector.injected.keys.get("unlike", []))
        asked = {key for key in cases if key} | (unlike if "" in cases else set())
        agrees = differing <= asked and sums[4] == 0
        self.say(
            f"last comparison: {last.counts['same']:,} agree, {len(differing):,} differ,"
            f" {len(differing - asked):,} of them not in review"
        )
        own_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        took_s = time.monotonic() - self.started
        self.say(f"{took_s:.0f} s; peak memory {own_mib} MiB, of the killed worker {self.worker_mib} MiB")
        return agrees

    def fate(self, pair: BoundPair, kind: str, keys: Sequence[str], found: set[str], cases: set[str]) -> list[int]:
        """[injected, found, repaired, in review, left], from the ledger and both sides as they are now."""
        records, ledger = pair.records, pair._project.ledger
        rows = ledger.rows(pair.name, keys)
        states, replicas = records.read_authority(keys), records.read_replica(keys)
        swept = {key for key in keys if key in rows and rows[key].high is not None and rows[key].wish > 0}
        agree = {key for key in keys if records.agree(states[key], replicas.get(key))}
        review = {key for key in keys if key not in agree and (key in cases or (kind == "unlike" and "" in cases))}
        return [len(keys), len(set(keys) & (found | swept)), len(agree), len(review), len(set(keys) - agree - review)]

    # ── the two databases ────────────────────────────────────────────────────────────────────────────

    def change_at_authority(self, keys: Sequence[Key], column: str, value: int) -> list[dict[str, object]]:
        """Changes one column under new revisions; answers the records as the source's events would carry them."""
        with closing(sqlite3.connect(self.authority)) as db:
            db.row_factory = sqlite3.Row
            top = db.execute("SELECT max(revision) FROM flights").fetchone()[0]
            numbered = [(value, top + at, *key) for at, key in enumerate(keys, start=1)]
            db.executemany(f"UPDATE flights SET {column} = ?, revision = ? WHERE {WHERE}", numbered)
            db.commit()
            return [dict(db.execute(f"SELECT * FROM flights WHERE {WHERE}", key).fetchone()) for key in keys]

    def at_replica(self, key: Key, column: str) -> object:
        """One value on the board."""
        with closing(sqlite3.connect(self.replica)) as db:
            row = db.execute(f"SELECT {column} FROM departures WHERE {WHERE}", key).fetchone()
            return row[0] if row else None

    # ── the page ─────────────────────────────────────────────────────────────────────────────────────

    def title(self, text: str) -> None:
        """A chapter."""
        self.console.print(f"\n[bold]{text}[/bold]")

    def command(self, text: str) -> None:
        """The command that does what comes next."""
        self.console.print(f"\n[bold green]$[/bold green] {text}", soft_wrap=True, highlight=False)

    def say(self, text: str) -> None:
        """A line."""
        self.console.print(text, soft_wrap=True, highlight=False, markup=False)


def peak_mib(pid: int) -> int:
    """Peak resident memory of a running process, where the system tells; else 0."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def play(folder: Path | None = None) -> int:
    """Plays the demo in `folder`, or in a temporary one; the exit code."""
    console = Console()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("flights.db", "board.db", "trueup.db"):
            for path in folder.glob(f"{name}*"):
                path.unlink()
        return 0 if Demo(folder, console).play() else 1
    with tempfile.TemporaryDirectory(prefix="trueup-demo-") as temporary:
        return 0 if Demo(Path(temporary), console).play() else 1
