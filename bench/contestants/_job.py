"""What every contestant of `bench.compare` is told, and how it answers. It needs nothing but Python itself.

Its one argument is a file:

    {"left": {"kind": "postgres", "url": "…"}, "right": {…}, "table": "orders", "key": ["id"],
     "fields": ["customer", …], "since": null, "memory_mb": 512, "answer": "answer.csv", "options": {}}

It writes the answer as CSV: key (parts joined by `|`), kind, and as far as it can tell field and both values; and
prints one line, `{"seconds": 1.2}`: from when its libraries were loaded until the answer was complete.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class Job:
    """The file, read; the clock starts."""

    def __init__(self) -> None:
        told: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
        self.left: dict[str, str] = told["left"]
        self.right: dict[str, str] = told["right"]
        self.table: str = told["table"]
        self.key: list[str] = told["key"]
        self.fields: list[str] = told["fields"]
        self.since: str | None = told["since"]
        self.memory_mb: int = told["memory_mb"]
        self.answer = Path(told["answer"])
        self.options: dict[str, Any] = told["options"]
        self._began = time.perf_counter()

    @property
    def sides(self) -> tuple[dict[str, str], dict[str, str]]:
        """Left and right."""
        return self.left, self.right

    def write(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """The answer."""
        with self.answer.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)

    def done(self, **more: Any) -> None:
        """Tells the time, and what else there is to tell."""
        print(json.dumps({"seconds": round(time.perf_counter() - self._began, 3), **more}))


def login(url: str) -> dict[str, Any]:
    """A URL in parts, without the escapes that not every library undoes."""
    parts = urlsplit(url)
    return {
        "host": parts.hostname, "port": parts.port, "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""), "database": parts.path.strip("/"),
    }  # fmt: skip
