"""What the program logs on standard error: lines for people, or one JSON object a line for programs.

Log calls hand over what they are about as `extra={"event": NAME, …}`; `EVENTS` lists the names. The message says the
same in words. Neither ever holds a value of a record or a secret.
"""

from __future__ import annotations

import enum
import json
import logging
import sys
from typing import Any, Final, TextIO


class Format(enum.StrEnum):
    """How a line looks."""

    TEXT = "text"
    JSON = "json"


class Level(enum.StrEnum):
    """What is said: this, and what is worse."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


JOB: Final = ("action", "origin", "attempt", "trace")
# Each event, and the facts beside `time`, `level`, `logger`, `event` and `message`.
EVENTS: Final = {
    "run_began": ("pair", "what", "run"),
    "phase_ended": ("pair", "run", "phase", "took_us"),
    "run_ended": ("pair", "what", "run", "how", "took_us"),
    "repair_offered": ("pair", "key", "run", "drift", "action"),
    "case_opened": ("pair", "key", "run", "case", "drift"),
    "case_decided": ("pair", "key", "case", "choice", "how"),
    "case_closed": ("pair", "key", "case", "why"),
    **{f"job_{how}": ("pair", "key", *JOB) for how in ("done", "verified", "lost")},
    "job_retried": ("pair", "key", *JOB, "why", "delay_us"),
    "job_waits": ("pair", "key", *JOB, "why", "delay_us"),
    "job_parked": ("pair", "key", *JOB, "why"),
    "run_failed": ("pair", "what", "error"),
    "runs_missed": ("pair", "what", "missed"),
    "run_taken_over": ("pair", "what"),
    "turn_ended": ("pair", "what", "how", "run", "late_us", "took_us"),
    "store_away": ("waiting", "pause_s", "error"),
    "system_paused": ("system", "pause_s", "why"),
    "system_back": ("system",),
    "system_held": ("system", "by"),
    "system_resumed": ("system",),
    "system_silent_on_pause": ("system",),
    "rhythm_failed": ("error",),
    "webhooks_wait": ("source", "error"),
    "webhook_refused": ("source", "status", "error"),
    "letters_dropped": ("source", "letters"),
}
FACTS: Final = tuple(sorted({name for facts in EVENTS.values() for name in facts}))


class Objects(logging.Formatter):
    """A record as one JSON object. `event` is `message` where the call named none."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        from datetime import UTC, datetime  # noqa: PLC0415  only where something is logged

        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", "message"),
            "message": record.getMessage(),
        }
        said |= {name: found for name in FACTS if (found := getattr(record, name, None)) is not None}
        if record.exc_info and record.exc_info[0] is not None:
            # The message of a foreign exception may hold values of records.
            said["exception"] = record.exc_info[0].__name__
        return json.dumps(said, ensure_ascii=False, default=str)


class _Ours(logging.StreamHandler[TextIO]):
    """Told apart from handlers of others."""


def set_up(form: Format, level: Level) -> None:
    """Has this process log so from now on. Libraries are heard from warnings on."""
    root = logging.getLogger()
    for each in [each for each in root.handlers if isinstance(each, _Ours)]:
        root.removeHandler(each)
    handler = _Ours(sys.stderr)
    handler.setFormatter(Objects() if form is Format.JSON else logging.Formatter("%(message)s"))
    root.addHandler(handler)
    logging.getLogger("trueup").setLevel(level.upper())


def for_programs() -> bool:
    """Whether a program reads the log."""
    return any(isinstance(each, _Ours) and isinstance(each.formatter, Objects) for each in logging.getLogger().handlers)
