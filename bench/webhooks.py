"""Signed webhooks, acknowledged once they are durable: how many a second, and how fast?

    python bench/webhooks.py [--rate 1000] [--seconds 10] [--connections 128] [--folder DIR]

The server (uvicorn, one process, state in SQLite with synchronous=FULL) and the sender share the machine. Two loads:
*paced* sends at a fixed rate and measures each request from the moment at which it was due, so that a stall is not
hidden; *full* keeps every connection busy. Commits are counted from the times of the stored deliveries; where
`strace` is installed, a third, paced run counts how often the disk was told to keep what it has (fsync). It is slower.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from _common import load, machine

RESULTS: Final = Path(__file__).parent / "results"
KEY: Final = b"a key for this benchmark, no secret"
SECRET: Final = "whsec_" + base64.b64encode(KEY).decode()
SEED_RECORD: Final[dict[str, Any]] = {"id": 0, "status": "open", "amount": "1.00", "note": "x" * 60, "v": 0}


def serve(folder: Path, port: int) -> None:
    """Runs the receiver until it is told to stop."""
    import uvicorn

    import trueup
    from trueup.events.webhook import Source
    from trueup.web.ingest import app

    project = trueup.Project(f"sqlite:///{folder / 'state.db'}")
    orders = project.pair("orders", authority=trueup.Memory([SEED_RECORD], key="id", version="v"))
    source = Source("bench", "standard", [SECRET], lambda event: orders.event(event["record"]))
    project.ledger.settle("orders")
    uvicorn.run(app(project, [source]), host="127.0.0.1", port=port, log_level="error", http="httptools")
    project.close()


@dataclass
class Load:
    """One load as it was measured. latencies_ms: one for each answer, from the moment at which it was due."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    refused: int = 0

    def figures(self) -> dict[str, Any]:
        """What is printed and kept."""
        ordered = sorted(self.latencies_ms)
        return {
            "accepted": len(ordered),
            "refused": self.refused,
            "per_second": round(len(ordered) / self.seconds, 1),
            "p50_ms": round(ordered[len(ordered) // 2], 2),
            "p99_ms": round(ordered[int(len(ordered) * 0.99)], 2),
            "max_ms": round(ordered[-1], 2),
        }


def request(number: int) -> bytes:
    """A signed request about one record; each has a delivery of its own."""
    body = json.dumps({"type": "order.updated", "record": SEED_RECORD | {"id": number % 20_000, "v": number}}).encode()
    at, name = str(int(time.time())), f"msg_{number}"
    signature = base64.b64encode(hmac.digest(KEY, f"{name}.{at}.".encode() + body, hashlib.sha256)).decode()
    return (
        "POST /events/bench HTTP/1.1\r\nHost: bench\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"webhook-id: {name}\r\nwebhook-timestamp: {at}\r\nwebhook-signature: v1,{signature}\r\n\r\n"
    ).encode() + body


class Sender(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._answer: asyncio.Future[int] | None = None
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        """Ready to send."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """The status, once the answer is whole."""
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length and len(body) >= int(length[1]) and self._answer is not None:
            status, self._received = int(head.split(b" ", 2)[1]), b""
            self._answer.set_result(status)

    def connection_lost(self, error: Exception | None) -> None:
        """An answer that can't come any more."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionError("closed"))

    async def send(self, number: int) -> int:
        """The status of one request."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request(number))
        return await self._answer


async def _senders(port: int, count: int) -> list[Sender]:
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(Sender, "127.0.0.1", port) for _ in range(count)]
    return [sender for _, sender in made]


async def paced(port: int, connections: int, seconds: float, rate: int, first: int) -> Load:
    """Sends `rate` requests a second, whatever becomes of them."""
    measured, free = Load(), asyncio.Queue[Sender]()
    for sender in await _senders(port, connections):
        free.put_nowait(sender)

    async def one(number: int, due: float) -> None:
        sender = await free.get()
        status = await sender.send(number)
        free.put_nowait(sender)
        _count(measured, status, due)

    began, under_way = time.perf_counter(), []
    for number in range(int(seconds * rate)):
        due = began + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        under_way.append(asyncio.create_task(one(first + number, due)))
    await asyncio.gather(*under_way)
    measured.seconds = time.perf_counter() - began
    return measured


async def full(port: int, connections: int, seconds: float, first: int) -> Load:
    """Every connection sends its next request as soon as the last is answered."""
    measured, began = Load(), time.perf_counter()
    numbers = iter(range(first, sys.maxsize))

    async def keep_busy(sender: Sender) -> None:
        while (due := time.perf_counter()) < began + seconds:
            _count(measured, await sender.send(next(numbers)), due)

    await asyncio.gather(*(keep_busy(sender) for sender in await _senders(port, connections)))
    measured.seconds = time.perf_counter() - began
    return measured


def _count(measured: Load, status: int, due: float) -> None:
    if status == 200:
        measured.latencies_ms.append((time.perf_counter() - due) * 1_000)
    else:
        measured.refused += 1


@contextlib.contextmanager
def receiver(folder: Path, *, counted: Path | None = None) -> Iterator[tuple[int, int]]:
    """A receiver in a process of its own; answers its port and process. counted: where `strace` writes its counts."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    folder.mkdir()
    command = [sys.executable, __file__, "--serve", str(port), "--folder", str(folder)]
    if counted is not None:
        traced = "fsync,fdatasync,sync_file_range"
        command = ["strace", "-f", "--seccomp-bpf", "-c", "-e", f"trace={traced}", "-o", str(counted), *command]
    process = subprocess.Popen(command)
    try:
        _await(port, process)
        yield port, process.pid
    finally:
        # strace takes no signal for its child, so the child is told.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]) if counted and children else process.pid, signal.SIGINT)
        process.wait(30)


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("the receiver did not start")


def cpu_seconds(process: int) -> float:
    """User and system time of a process so far."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def commits(folder: Path) -> int:
    """Transactions that stored deliveries: each took its time under the lock, once."""
    with contextlib.closing(sqlite3.connect(folder / "state.db")) as db:
        return int(db.execute("SELECT count(DISTINCT at) FROM trueup_delivery").fetchone()[0])


def fsyncs(counted: Path) -> int:
    """The calls of a `strace -c` table."""
    rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*sync", counted.read_text(), re.MULTILINE)
    return sum(map(int, rows))


def disk_fsyncs_per_second(folder: Path) -> float:
    """How often the disk alone can be told to keep 4 KiB."""
    began, done = time.perf_counter(), 0
    with (folder / "probe").open("wb", buffering=0) as file:
        while time.perf_counter() < began + 1:
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            done += 1
    return done / (time.perf_counter() - began)


def main() -> None:
    """Runs the loads, prints the figures and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.folder, chosen.serve)
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        found = measure(Path(scratch), chosen)
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / "webhooks.json"
    kept.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(f"kept in {kept.relative_to(Path.cwd()) if kept.is_relative_to(Path.cwd()) else kept.name}")


def measure(scratch: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """All loads, each on a new store."""
    rate, seconds, connections = chosen.rate, chosen.seconds, chosen.connections
    found: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine("starlette", "uvicorn", "httptools"),
        "load_average_before": load(),
        "disk_fsyncs_per_second": round(disk_fsyncs_per_second(scratch)),
        "rate": rate, "seconds": seconds, "connections": connections,
    }  # fmt: skip
    print(f"the disk alone: {found['disk_fsyncs_per_second']:,} fsyncs/s; load average {found['load_average_before']}")
    names = ["paced", "full", *(["counted"] if shutil.which("strace") else [])]
    for name in names:
        folder, counted = scratch / name, scratch / "strace" if name == "counted" else None
        with receiver(folder, counted=counted) as (port, process):
            # The first requests load modules and lay out the store.
            asyncio.run(full(port, 8, 1.0, 10_000_000))
            before, spent = commits(folder), cpu_seconds(process)
            measured = asyncio.run(
                full(port, connections, seconds, 1) if name == "full" else paced(port, connections, seconds, rate, 1)
            )
            made, spent = commits(folder) - before, cpu_seconds(process) - spent
        found[name] = measured.figures() | {"commits_per_second": round(made / measured.seconds, 1)}
        if counted is None:
            found[name]["receiver_cpu_ms_each"] = round(spent * 1_000 / len(measured.latencies_ms), 3)
        else:
            # Of the whole life of the receiver, as its commits are here.
            found[name]["fsyncs_per_commit"] = round(fsyncs(counted) / commits(folder), 2)
        show(name, found[name])
    return found


def show(name: str, figures: dict[str, Any]) -> None:
    """One line for people."""
    spent = f", {figures['receiver_cpu_ms_each']} ms of CPU each" if "receiver_cpu_ms_each" in figures else ""
    synced = f", {figures['fsyncs_per_commit']} fsyncs each" if "fsyncs_per_commit" in figures else ""
    print(
        f"{name:8} {figures['per_second']:>8,.1f}/s durable, p50 {figures['p50_ms']} ms, p99 {figures['p99_ms']} ms, "
        f"max {figures['max_ms']} ms, {figures['refused']} refused, "
        f"{figures['commits_per_second']} commits/s{synced}{spent}"
    )


if __name__ == "__main__":
    main()
