"""One contestant, once: its time, its CPU and memory, the servers' CPU, and the bytes between them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from _common import load, measure

from .link import Link, linked
from .places import Place

_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Ran:
    """What a run told. code: None where it was stopped. told: the object that it printed."""

    figures: dict[str, Any]
    code: int | None
    told: dict[str, Any]
    failure: str


# Makes a command, from the ports to use by the servers' own; empty without a link.
Command = Callable[[Mapping[int, int]], Sequence[str]]


def run(command: Command, places: Sequence[Place], folder: Path, link: Link | None, seconds_max: float) -> Ran:
    """Runs a command to its end. What it prints is kept in `output` in the folder, what it complains of in `log`."""
    servers = {place.server for place in places if place.server is not None}
    ports = [place.port for place in places if place.port is not None]
    before = load()
    with contextlib.ExitStack() as stack:
        between = stack.enter_context(linked(link, ports)) if link is not None and ports else None
        told = command(between.ports if between else {})
        cpu, carried = cpu_seconds(servers), _loopback_bytes()
        with (folder / "output").open("wb") as output, (folder / "log").open("wb") as log:
            measured = measure(told, seconds_max=seconds_max, output=output, log=log)
        cpu, carried = cpu_seconds(servers) - cpu, _loopback_bytes() - carried
    if between is not None:
        carried = between.sent + between.received
    figures: dict[str, Any] = {
        "wall_seconds": round(measured.seconds, 3),
        "client_cpu_seconds": round(measured.cpu_seconds, 2),
        "server_cpu_seconds": round(cpu, 2) if servers else None,
        "peak_mib": round(measured.peak_bytes / 2**20),
        "bytes_moved": carried if ports else None,
        "load_before": before,
    }
    return Ran(figures, measured.code, _told(folder / "output"), _last_line(folder / "log"))


def _told(path: Path) -> dict[str, Any]:
    """The last line, where it is an object."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4_096))
        last = (file.read().strip().splitlines() or [b""])[-1]
    with contextlib.suppress(ValueError):
        found = json.loads(last)
        if isinstance(found, dict):
            return found
    return {}


def _last_line(path: Path) -> str:
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


# What the kernel knows.


def cpu_seconds(servers: Iterable[int]) -> float:
    """User and system time of these processes, of their children, and of children of theirs that have ended."""
    return sum(map(_ticks, servers)) * _TICK_S


def _ticks(pid: int) -> int:
    ticks = 0
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = sum(map(int, fields[11:15]))
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            ticks += sum(_ticks(int(child)) for child in children.read_text().split())
    return ticks


def _loopback_bytes() -> int:
    """Everything that went over the loopback device so far, headers included, each packet once."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    return 0
