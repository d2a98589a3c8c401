"""What all benchmarks share: one program measured with all its children, and facts about the machine."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

_SAMPLE_SECONDS = 0.1
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Measured:
    """One run of a program.

    seconds: wall time. cpu_seconds: user and system, of all its processes. peak_bytes: most memory resident at
    once in all its processes, mapped files included. code: exit code; None where it was stopped for its time.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    code: int | None


def measure(command: Sequence[str], *, seconds_max: float, output: IO[Any], log: IO[Any]) -> Measured:
    """Runs a program to its end, or stops it and all its children after `seconds_max`."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=output, stderr=log, start_new_session=True)
    memory = _Memory(process.pid)
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(seconds_max, stop)
    timer.start()
    with memory:
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Measured(
        seconds=seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=memory.peak_bytes,
        code=None if stopped.is_set() else process.returncode,
    )


class _Memory:
    """Watches the resident memory of a process and its children; `with` starts and ends the watch."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            # Not what `wait4` tells: that begins with the memory of the process that started this one.
            together = sum(map(_resident_bytes, _tree(self._pid)))
            self.peak_bytes = max(self.peak_bytes, together, _highest_bytes(self._pid))


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from _tree(int(child))


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    return 0


def _highest_bytes(pid: int) -> int:
    """The most that one process ever had resident, so that a short peak between two samples counts."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return 0


def machine(*packages: str) -> dict[str, Any]:
    """What figures depend on: cores, memory, Python and libraries. No names of hosts or paths."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def environment(package: str, *more: str, folder: Path | None = None) -> str | None:
    """The Python of a virtual environment that has the newest release of a peer; None where it can't be had.

    package: may name extras, such as `celery[redis]`. more: what it is given beside. folder: where it is,
    if not released.
    """
    named, bracket, extras = package.partition("[")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trueup-bench" / named
    python = cache / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(cache)], check=True)
        install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--upgrade"]
        source = [package] if folder is None else ["--editable", f"{folder}{bracket}{extras}"]
        subprocess.run([*install, *source, *more], check=True)
    except subprocess.CalledProcessError:
        print(f"{named} could not be installed and is left out.", file=sys.stderr)
        return None
    return str(python)


def releases(python: str, *packages: str) -> dict[str, str]:
    """The versions of those of these packages that an environment holds."""
    program = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    known = json.loads(subprocess.run([python, "-c", program], check=True, capture_output=True).stdout)
    return {name: known[name] for name in packages if name in known}


def load() -> float:
    """Programs that were running or waiting to, averaged over the last minute."""
    return round(os.getloadavg()[0], 2)


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)
