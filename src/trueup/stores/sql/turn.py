"""Whose turn it is to write, among the programs that share a SQLite file."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

try:
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:  # where there is no such lock, SQLite's own order has to do
    fcntl = None

PATIENCE_S: Final = 0.25
_POLL_S: Final = 0.0005


class Turn:
    """A lock beside the file that whoever waits for the file holds, so that who waited is next.

    SQLite wakes nobody: who finds the file locked sleeps and tries again, and a program that writes one transaction
    after the other takes it each time before the sleeper is back. The lock only orders; SQLite's own keeps writers
    apart. So it is waited for a little while and no longer: a program that stands still must not stop the others.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + "-turn")
        self._file: int | None = None
        self._process = 0

    @contextmanager
    def waited(self) -> Iterator[None]:
        """Waits for those who wait already; they are waited for in turn until the end of the block."""
        file = self._opened()
        held = file is not None and self._take(file)
        try:
            yield
        finally:
            if held and file is not None:
                fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the file; it stays where it is, since others may hold it."""
        if self._file is not None and self._process == os.getpid():
            os.close(self._file)
        self._file = None

    def _opened(self) -> int | None:
        if fcntl is None:
            return None
        if self._file is None or self._process != os.getpid():  # a fork shares its parent's locks
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError:
                return None
            self._process = os.getpid()
        return self._file

    @staticmethod
    def _take(file: int) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_S)
            else:
                return True
