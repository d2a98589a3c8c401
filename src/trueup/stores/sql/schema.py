"""How ledger rows are kept as table rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from operator import attrgetter
from typing import Any, Final

from trueup.model.row import ROW_FIELDS, Row, State

_DECLARED = {field.name: field.type for field in fields(Row)}
_PLAIN = tuple(name for name in ROW_FIELDS if name != "attempted")
COLUMNS: Final = (*_PLAIN, "attempted", "ready_at")
# The type of each column: `bigint`, `boolean` or `text`.
TYPES: Final = tuple(
    {"int": "bigint", "bool": "boolean"}.get(str(declared).partition(" ")[0], "text")
    for declared in (*(_DECLARED[name] for name in _PLAIN), "str", "int")
)
_STATE, _ATTEMPTED = COLUMNS.index("state"), COLUMNS.index("attempted")
# Of an enum its text: a driver looks long for how to bind what is no plain str.
_plain = attrgetter(*("state._value_" if name == "state" else name for name in _PLAIN))
# json.dumps and json.loads would build an encoder, and look for white space, for every row.
_parsed = json.JSONDecoder().raw_decode
_STATES = {state.value: state for state in State}
_flags = attrgetter("refetch", "verify", "unsynced", "unordered", "rejected")


def kept(row: Row) -> tuple[Any, ...]:
    """The row as values of `COLUMNS`."""
    intents = row.attempted
    attempted = f"[{','.join([f'[{fence},{_quoted(digest)}]' for fence, digest in intents])}]" if intents else None
    ready_at = row.ready_at if row.state is State.PENDING else None
    return (*_plain(row), attempted, ready_at)


# What the table holds in a column that an insert leaves out.
ABSENT: Final = (None, None, *kept(Row("", ""))[2:])


def row_of(values: Sequence[Any]) -> Row:
    """The row that `kept` gave these values, whatever follows them."""
    row = Row(*values[:_ATTEMPTED])
    row.state = _STATES[values[_STATE]]
    attempted = values[_ATTEMPTED]
    if attempted:
        row.attempted = tuple([(fence, digest) for fence, digest in _parsed(attempted)[0]])
    if any(_flags(row)):
        row.refetch, row.verify, row.unsynced = bool(row.refetch), bool(row.verify), bool(row.unsynced)
        row.unordered, row.rejected = bool(row.unordered), bool(row.rejected)
    else:
        row.refetch = row.verify = row.unsynced = row.unordered = row.rejected = False
    return row


def counted(pending: int, parked: int, leased: int, oldest_us: int | None, total: int | None = None) -> dict[str, int]:
    """Rows by state, as ledgers tell them. total: of all rows, where they were counted."""
    idle = {} if total is None else {"idle": total - pending - parked}
    oldest = {} if oldest_us is None else {"oldest_due_us": oldest_us}
    return {**idle, "pending": pending, "parked": parked, "leased": leased, **oldest}


@lru_cache(maxsize=1_024)
def insert_of(changed: tuple[bool, ...]) -> str:
    """The statement that inserts a row whose values differ from `ABSENT` in these columns; the id comes last."""
    names = [*names_of(changed), "id"]
    return f"INSERT INTO trueup_row ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


@lru_cache(maxsize=1_024)
def update_of(changed: tuple[bool, ...]) -> str:
    """The statement that updates these columns of the row whose id comes last."""
    return f"UPDATE trueup_row SET {', '.join(f'{name} = ?' for name in names_of(changed))} WHERE id = ?"


def names_of(changed: tuple[bool, ...]) -> list[str]:
    """The columns marked in `changed`."""
    return [name for name, differs in zip(COLUMNS, changed, strict=True) if differs]
