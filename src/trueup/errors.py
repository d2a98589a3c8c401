"""Every error a user can meet.

    TrueupError                      carries what happened, to what, and a hint
    ├── ConfigError                  trueup.toml, a declaration, an unset ${VARIABLE}, an unknown name
    ├── SideError                    a system could not be read or written
    │   ├── Unreachable              no connection, refused login, no permission; may pass by itself
    │   ├── BadInput                 a file or a value that is not what it was declared to be
    │   ├── SchemaError              a missing table or column, columns that can't be compared
    │   └── IncompleteScan           an enumeration ended early; nothing may be concluded from absence
    ├── StateError                   the state store is missing, too new, locked or on unsafe storage
    ├── RunUnderWay                  another run of the pair is under way
    ├── RunStopped                   a run was told to stop, or lost its slot; the next one goes on with it
    ├── LeaseLost                    the right to work on a record ran out or went to another worker
    ├── HandlerError                 a handler is missing, or was used against its rules
    ├── DecisionRefused              a decision about a case lacks something, does not fit, or is made already
    │   └── MovedOn                  the records moved since the person looked at them; nothing was written
    └── EventRefused                 an event that arrived was not accepted; `status` answers its sender

Outcomes a handler raises on purpose (`Retry`, `RateLimited`, `WaitFor`, `Reject`) are not errors; they
live in `trueup.model.outcome`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


class TrueupError(Exception):
    """What happened and to what, in one sentence; `hint` says what to do next.

    Messages never contain values of records, credentials or connection strings with passwords.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} {self.hint}"


class ConfigError(TrueupError):
    """A declaration is wrong: an unknown option, an unset variable, a name that does not resolve."""


class SideError(TrueupError):
    """A system could not be read or written."""


class Unreachable(SideError):
    """A system does not answer or refuses the login. It may pass by itself, so no try is charged."""


class BadInput(SideError):
    """A file or value is not what it was declared to be; the message names file, line and column."""


class SchemaError(SideError):
    """A table or column is missing, or two columns can't be compared."""


class IncompleteScan(SideError):
    """An enumeration ended before its end. Nothing may be concluded from what it did not show."""


class StateError(TrueupError):
    """The state store is missing, newer than this program, locked, or on storage that loses writes."""


class RunUnderWay(TrueupError):
    """Another run of the pair is under way."""


class RunStopped(TrueupError):
    """A run was told to stop, or lost its slot; the next run of the pair goes on where it was."""


class LeaseLost(TrueupError):
    """The timed right to work on a record ran out, or another worker holds it now."""


class HandlerError(TrueupError):
    """A handler is missing, is declared twice, or was used against its rules."""


class DecisionRefused(TrueupError):
    """A decision about a case lacks something, does not fit it, or somebody else decides at this moment."""


class MovedOn(DecisionRefused):
    """The records moved since the person looked at them. Nothing was written; the case shows what is there now."""


class EventRefused(TrueupError):
    """An event that arrived was not accepted.

    status: the HTTP status that tells its sender. authentic: its signature was right, so that the body is worth
    keeping; a body whose sender is not known is not kept. What the message quotes of a body is made printable.
    """

    def __init__(self, message: str, *, status: int, authentic: bool = False, hint: str | None = None) -> None:
        super().__init__("".join(each if each.isprintable() else "?" for each in message[:500]), hint=hint)
        self.status = status
        self.authentic = authentic


SHOWN_MAX: Final = 40


def did_you_mean(name: str, known: Iterable[str], what: str) -> str:
    """A hint for a name that is not known: the closest known one, else all of them.

    what: plural of what they are, such as "Columns".
    """
    from difflib import get_close_matches  # noqa: PLC0415  needed only where something is wrong

    names = list(known)
    close = get_close_matches(name.lower(), [each.lower() for each in names], n=1)
    if close:
        return f"Did you mean {next(each for each in names if each.lower() == close[0])!r}?"
    more = f" and {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
    return f"{what}: {', '.join(names[:SHOWN_MAX])}{more}." if names else f"There are no {what.lower()}."


def own_words(said: str) -> str:
    """An error as text, such as `ValueError: …`, as far as its words are trueup's: else its type alone.

    What foreign code says may hold values of records.
    """
    kind, colon, _ = said.partition(": ")
    # Of a side's label, which may stand there too, one that looks like a type is taken for one.
    foreign = kind.isidentifier() and (kind[0].isupper() or kind.endswith("error")) and kind not in globals()
    return kind if colon and foreign else said
