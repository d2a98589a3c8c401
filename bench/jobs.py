"""Jobs offered, worked and overtaken by urgent ones: trueup beside job engines, in one run on one machine.

    python bench/jobs.py [--jobs 100000] [--runs 1] [--only NAME …] [--rate 50]

Servers are private ones on the loopback address; they, the one worker process and what enqueues share the machine's
cores. Every contestant is a program of its own (`contestants/jobs_*.py`) and does the same things in the same order.
See bench/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from _common import environment, load, machine, median, releases
from _servers import commits, empty_store

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results"
STAGE_SECONDS: Final = 60
STOP_SECONDS: Final = 120
ONE_BY_ONE: Final = 2_000
EVENTS_SECONDS: Final = 10
# Fewer events than these say little of a p99.
EVENTS_FEW: Final = 100
# Events that were not entered so long after the last was due count as lost in the queue.
GRACE_SECONDS: Final = 3
THROUGHPUT: Final = ("many", "work")
COUNTED: Final = ("one", *THROUGHPUT)
ALL: Final = ("one", *THROUGHPUT, "latency")


@dataclass(frozen=True)
class Contestant:
    """An engine on a store. python: of its environment. beside: the row that its ratios refer to.

    variant: what its program is told; stages: what is measured of it.
    """

    name: str
    script: str
    python: str
    store: str
    beside: str
    variant: str = ""
    stages: tuple[str, ...] = ALL
    note: str = ""


class Stopped(Exception):
    """A contestant's program did not end in time, or failed; the message says where."""


def main() -> None:
    """Runs all contestants, prints a table, writes the figures."""
    options = _options()
    chosen = [each for each in _contestants() if not options.only or each.name in options.only]
    if not chosen:
        raise SystemExit(f"--only names nobody. Contestants: {', '.join(each.name for each in _contestants())}")
    before = load()
    runs: dict[str, list[dict[str, Any]]] = {each.name: [] for each in chosen}
    ledgers: dict[str, list[dict[str, Any]]] = {}
    for at in range(options.runs):
        for each in chosen[at % len(chosen) :] + chosen[: at % len(chosen)]:
            print(f"run {at + 1}: {each.name} …", file=sys.stderr, flush=True)
            runs[each.name].append(_run(each, options))
            if each.script == "jobs_trueup" and each.stages == ALL:
                ledgers.setdefault(each.name, []).append(_ledger(each, options))
    results = {"load_before": before, **_results(chosen, runs, ledgers, options)}
    _print(chosen, results)
    print(f"\nLoad of the machine before: {before} on {results['machine']['cores']} cores.")
    if not options.only:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "jobs.json").write_text(json.dumps(results, indent=1) + "\n")
        print("Written to bench/results/jobs.json.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=100_000, help="jobs that are enqueued in bulk, and worked")
    parser.add_argument("--runs", type=int, default=1, help="runs of each contestant; medians are reported")
    parser.add_argument("--rate", type=int, default=50, help="events a second, while the jobs wait")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these contestants; nothing is written")
    return parser.parse_args()


def _contestants() -> list[Contestant]:
    found = []
    for store, name in (("sqlite", "trueup on SQLite"), ("postgres-durable", "trueup on PostgreSQL")):
        ours = partial(Contestant, script="jobs_trueup", python=sys.executable, store=store, beside=name)
        found += [
            ours(name, variant="handler"),
            ours(f"{name}, not counted", variant="handler,off", stages=COUNTED, note="metrics = off"),
            ours(f"{name}, batch handler", variant="batch", stages=THROUGHPUT),
            ours(f"{name}, built-in writer", variant="writer", stages=THROUGHPUT),
        ]
    server, file, celery = "trueup on PostgreSQL", "trueup on SQLite", ("celery[redis]", "hiredis")
    peers = [
        ("pgqueuer", "jobs_pgqueuer", ("pgqueuer[asyncpg]", "uvloop"), "postgres-durable", server, ""),
        ("Procrastinate", "jobs_procrastinate", ("procrastinate",), "postgres-durable", server, ""),
        ("DBOS on PostgreSQL", "jobs_dbos", ("dbos",), "postgres-durable", server, ""),
        ("DBOS on SQLite", "jobs_dbos", ("dbos",), "sqlite", file, ""),
        ("Celery + Redis", "jobs_celery", celery, "redis-durable", server, "every write flushed"),
        ("Celery + Redis in memory", "jobs_celery", celery, "redis", server, "nothing is durable"),
    ]  # fmt: skip
    for name, script, packages, store, beside, note in peers:
        python = environment(*packages)
        if python is not None:
            found.append(Contestant(name, script, python, store, beside, note=note))
    return found


# Running.


def _run(each: Contestant, options: argparse.Namespace) -> dict[str, Any]:
    """All stages of one contestant, each pair of them on a store of its own."""
    figures: dict[str, Any] = {}
    try:
        with empty_store(each.store) as url:
            _play(each, "prepare", url, 0)
            queued = 0
            for stage in [stage for stage in ("one", "many") if stage in each.stages]:
                with _committing(each, url, figures, stage):
                    said = _play(each, stage, url, min(options.jobs, ONE_BY_ONE) if stage == "one" else options.jobs)
                figures[f"{stage}_per_second"] = said["count"] / said["seconds"]
                figures[f"{stage}_cpu_us"] = said["cpu_us_each"]
                queued += said["count"]
            with _committing(each, url, figures, "work"):
                said = _play(each, "work", url, queued)
            figures["jobs_per_second"] = said["count"] / said["seconds"]
            figures["worker_cpu_us_a_job"] = said["cpu_us_each"]
            if "commits" in said:
                figures["work_commits"] = said["commits"]
            if (written := figures.pop("work_commits", None)) is not None:
                figures["commits_a_job"] = written / max(1, said["count"])
        if "latency" in each.stages:
            with empty_store(each.store) as url:
                figures |= _latency(each, url, options)
    except Stopped as stopped:
        figures["stopped"] = str(stopped)
    return figures


def _play(each: Contestant, role: str, url: str, count: int) -> dict[str, Any]:
    """What a role answers; Stopped where it takes too long or fails."""
    command = _command(each, role, url, count, STAGE_SECONDS)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STOP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Stopped(f"{role}: stopped after {STOP_SECONDS} s") from None
    if done.returncode or not done.stdout.strip():
        last = (done.stderr.strip() or "no answer").splitlines()[-1]
        raise Stopped(f"{role}: failed: {last[:200]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _command(each: Contestant, role: str, url: str, count: int, seconds: float) -> list[str]:
    script = str(HERE / "contestants" / f"{each.script}.py")
    return [each.python, script, role, url, str(count), str(seconds), *([each.variant] if each.variant else [])]


@contextlib.contextmanager
def _committing(each: Contestant, url: str, figures: dict[str, Any], stage: str) -> Iterator[None]:
    """Counts what PostgreSQL committed meanwhile, and how often it flushed its log for that."""
    if not each.store.startswith("postgres"):
        yield
        return
    before, began = commits(url), time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    # Backends tell what they did when they end.
    time.sleep(0.5)
    after = commits(url)
    if stage == "work":
        figures["work_commits"] = after[0] - before[0]
    figures[f"{stage}_flushes_per_second"] = (after[1] - before[1]) / seconds


def _latency(each: Contestant, url: str, options: argparse.Namespace) -> dict[str, Any]:
    """Events at a steady rate from one process, while another works a long queue of less urgent jobs."""
    _play(each, "prepare", url, 0)
    queued = _play(each, "low", url, options.jobs)["count"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    offering = _command(each, "events", url, options.rate, EVENTS_SECONDS)
    working = _command(each, "latency", url, queued, EVENTS_SECONDS + GRACE_SECONDS)
    with (
        subprocess.Popen(offering, text=True, **pipes) as sender,
        subprocess.Popen(working, text=True, **pipes) as worker,
    ):
        try:
            said = _conversed(sender, worker)
        except subprocess.TimeoutExpired:
            raise Stopped(f"latency: stopped after {STOP_SECONDS} s") from None
        finally:
            sender.kill()
            worker.kill()
    sent, answer = said
    end = answer["empty_at"] or math.inf
    entered = dict(answer["events"])
    waits = [entered.get(moment, math.inf) for moment in sent["due"] if moment <= end]
    if not waits:
        raise Stopped("latency: the queue was empty before the first event")
    longest = (EVENTS_SECONDS + GRACE_SECONDS) * 1e3
    return {
        "event_p50_ms": min(_share(waits, 0.5), longest),
        "event_p99_ms": min(_share(waits, 0.99), longest),
        # Of that, the call that enqueues.
        "event_call_p50_ms": _share(sent["calls_ms"][: len(waits)], 0.5),
        "event_call_p99_ms": _share(sent["calls_ms"][: len(waits)], 0.99),
        "events": len(waits),
        "events_not_entered": sum(math.isinf(wait) for wait in waits),
    }


def _share(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]


def _conversed(sender: subprocess.Popen[str], worker: subprocess.Popen[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the sender and the worker say of the same events, which begin once both are at work."""
    assert sender.stdin is not None
    assert sender.stdout is not None
    assert worker.stdout is not None
    if not sender.stdout.readline() or not worker.stdout.readline():
        raise Stopped("latency: the worker or the sender failed")
    sender.stdin.write("\n")
    sender.stdin.flush()
    worked, _ = worker.communicate(timeout=STOP_SECONDS)
    # A sender that could not keep its rate is behind; what it has not sent by now was still due.
    sent, _ = sender.communicate(timeout=STOP_SECONDS)
    return json.loads(sent.splitlines()[-1]), json.loads(worked.splitlines()[-1])


def _ledger(each: Contestant, options: argparse.Namespace) -> dict[str, Any]:
    """What only trueup has: offers that are dropped at the door, commits shared by threads, bytes a record."""
    try:
        with empty_store(each.store) as url:
            figures = _play(each, "ledger", url, options.jobs)
            said = _play(each, "together", url, min(options.jobs, 5 * ONE_BY_ONE))
    except Stopped as stopped:
        return {"stopped": str(stopped)}
    return {**figures, "one_by_one_from_16_threads_per_second": round(said["count"] / said["seconds"])}


# Telling.

FIGURES: Final = (
    "one_per_second", "many_per_second", "jobs_per_second", "worker_cpu_us_a_job", "event_p50_ms", "event_p99_ms",
)  # fmt: skip


def _results(
    chosen: list[Contestant],
    runs: dict[str, list[dict[str, Any]]],
    ledgers: dict[str, list[dict[str, Any]]],
    options: argparse.Namespace,
) -> dict[str, Any]:
    medians: dict[str, dict[str, float]] = {}
    for name, several in runs.items():
        measured = {figure for run in several for figure, value in run.items() if isinstance(value, int | float)}
        medians[name] = {
            figure: _rounded(median([run[figure] for run in several if figure in run])) for figure in sorted(measured)
        }
    ratios = {
        each.name: {
            figure: round(medians[each.name][figure] / medians[each.beside][figure], 3)
            for figure in FIGURES
            if medians[each.name].get(figure) and medians.get(each.beside, {}).get(figure)
        }
        for each in chosen
    }
    return {
        "benchmark": "jobs",
        "machine": machine("trueup", "psycopg"),
        "peers": _peers(chosen),
        "input": {"jobs": options.jobs, "runs": options.runs, "events_per_second": options.rate},
        "ratios_beside": {each.name: each.beside for each in chosen},
        "ratios": ratios,
        "medians": medians,
        "ledger": ledgers,
        "runs": runs,
    }


def _peers(chosen: list[Contestant]) -> dict[str, str]:
    names = ("pgqueuer", "asyncpg", "procrastinate", "psycopg", "dbos", "celery", "kombu", "redis")
    found: dict[str, str] = {}
    for python in dict.fromkeys(each.python for each in chosen if each.python != sys.executable):
        found |= releases(python, *names)
    return found


def _rounded(value: float) -> float:
    return round(value) if value >= 100 else round(value, 2)


def _print(chosen: list[Contestant], results: dict[str, Any]) -> None:
    heads = ("one/s", "many/s", "jobs/s", "CPU µs", "p50 ms", "p99 ms")
    print(f"\n{'':38}" + "".join(f"{head:>9}" for head in heads) + "  × trueup: one, many, jobs, p99")
    for each in chosen:
        figures, ratios = results["medians"][each.name], results["ratios"][each.name]
        cells = "".join(f"{figures[name]:9,.0f}" if name in figures else f"{'–':>9}" for name in FIGURES)
        shown = (FIGURES[0], FIGURES[1], FIGURES[2], FIGURES[5])
        beside = ", ".join(f"{ratios[name]:.2f}" if name in ratios else "–" for name in shown)
        notes = [each.note, *sorted({run["stopped"] for run in results["runs"][each.name] if "stopped" in run})]
        if figures.get("events_not_entered"):
            notes.append(f"{figures['events_not_entered']:.0f} of {figures['events']:.0f} events not entered in time")
        elif figures.get("events", EVENTS_FEW) < EVENTS_FEW:
            notes.append(f"only {figures['events']:.0f} events")
        if "event_call_p99_ms" in figures:
            halves = (figures["event_call_p50_ms"], figures["event_call_p99_ms"])
            notes.append("of that enqueuing {:,.0f} and {:,.0f} ms".format(*halves))
        if "commits_a_job" in figures:
            notes.append(f"{figures['commits_a_job']:.3g} commits a job")
        print(f"{each.name:38}{cells}  {beside}  {'; '.join(filter(None, notes))}")
    for name, several in results["ledger"].items():
        last = several[-1]
        if "stopped" in last:
            print(f"\n{name}: {last['stopped']}")
            continue
        rates = ", ".join(f"{what} {rate:,}/s" for what, rate in last["offers_per_second"].items())
        print(f"\n{name}: offers of 1,000: {rates}")
        print(f"  one by one from 16 threads: {last['one_by_one_from_16_threads_per_second']:,}/s")
        for state, parts in last["bytes"].items():
            print(f"  bytes a record, {state}: " + ", ".join(f"{part} {size:,.0f}" for part, size in parts.items()))


if __name__ == "__main__":
    main()
