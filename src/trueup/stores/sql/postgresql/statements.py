"""The statements of the ledger on PostgreSQL. They select and move rows; they decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from trueup.model.change import VERIFY_PRIORITY
from trueup.stores.history import ENTRIES_KEPT
from trueup.stores.sql.schema import COLUMNS, TYPES

PRUNE_BATCH: Final = 10_000
_NAMES = ", ".join(COLUMNS)
_ROW = f"{', '.join(f'r.{name}' for name in COLUMNS)}, r.id"
_DUE = "r.pair = asked.pair AND r.priority = asked.priority AND r.ready_at <= "
_ORDER = "ORDER BY r.ready_at, r.queued_at, r.key"
_NOW = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"


class Statements:
    """All of them for one schema. Names are qualified, because a caller's connection has its own search path.

    schema: quoted. A batch is a few arrays, one for each column: one statement, whatever its size.
    """

    def __init__(self, schema: str) -> None:
        schema = schema.replace("%", "%%")  # as the driver writes it beside its placeholders
        row, pair = f"{schema}.trueup_row", f"{schema}.trueup_pair"
        self.row = row
        self._about_history(row, f"{schema}.trueup_history")
        self._about_deliveries(f"{schema}.trueup_delivery")
        # Everybody locks in the order of the keys, so nobody waits for a transaction that waits for him.
        self.load = f"SELECT {_ROW} FROM {row} r WHERE pair = %s AND key = ANY (%s::text[]) ORDER BY key FOR UPDATE"
        self.rows = f"SELECT {_NAMES} FROM {row} WHERE pair = %s AND key = ANY (%s::text[])"
        # The offset has each key looked for by the index: else all rows of the pair may be read for some thousands.
        self.unlike = f"""
            SELECT s.key FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS s(key, action, digest, replica)
            LEFT JOIN LATERAL (
                SELECT done_at IS NOT NULL AND NOT unordered AS known, done_action, done_digest, done_replica
                FROM {row} WHERE pair = %s AND key = s.key OFFSET 0) AS r ON true
            WHERE r.known IS NULL
            OR s.digest IS NOT NULL
                AND NOT (r.known AND coalesce(r.done_action = s.action AND r.done_digest = s.digest, false))
            OR s.replica IS NOT NULL AND r.done_replica IS DISTINCT FROM s.replica
        """
        self.queues = f"""
            SELECT found.* FROM unnest(%s::text[]) AS of(pair)
            CROSS JOIN LATERAL (SELECT of.pair, priority FROM generate_series(0, {VERIFY_PRIORITY}) AS priority) asked
            CROSS JOIN LATERAL (
                SELECT r.priority, r.ready_at, r.queued_at, r.pair, r.key FROM {row} r
                WHERE {_DUE} coalesce(%s, {_NOW}) {_ORDER} LIMIT %s) found
        """
        # The lock stands inside, where the limit is: what others hold is passed over, and the next is taken.
        self.lock_due = f"""
            SELECT found.* FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS asked(pair, priority, quota)
            CROSS JOIN LATERAL (
                SELECT {_ROW} FROM {row} r
                WHERE {_DUE} coalesce(%s, {_NOW}) {_ORDER} LIMIT asked.quota FOR UPDATE SKIP LOCKED) found
        """
        self.sleepers = f"""
            SELECT pair, key FROM {row} WHERE waits_for = ANY (%s::text[]) AND waits_for IS NOT NULL ORDER BY pair, key
        """
        self.parked = f"SELECT key FROM {row} WHERE pair = %s AND state = 'parked' ORDER BY key"
        self.settled = f"SELECT 1 FROM {pair} WHERE pair = %s AND settled"
        self.settle = f"INSERT INTO {pair} VALUES (%s, true) ON CONFLICT (pair) DO UPDATE SET settled = true"
        sequence = f"{schema}.trueup_record".replace("'", "''")
        self.numbers = f"SELECT nextval('{sequence}') FROM generate_series(1, %s)"
        self.scan = {
            "all": f"SELECT {_NAMES} FROM {row} WHERE pair = %s AND key > %s ORDER BY key LIMIT %s",
            "parked": f"""
                SELECT {_NAMES} FROM {row} WHERE pair = %s AND key > %s AND state = 'parked' ORDER BY key LIMIT %s
            """,
        }
        self.pending_keys = f"SELECT key FROM {row} WHERE pair = %s AND ready_at IS NOT NULL ORDER BY key"
        busy = f"""
            SELECT (SELECT count(*) FROM {row} WHERE pair = q.pair AND ready_at IS NOT NULL),
                   (SELECT count(*) FROM {row} WHERE pair = q.pair AND state = 'parked'),
                   (SELECT count(*) FROM {row} WHERE pair = q.pair AND ready_at > q.now AND lease_until > q.now),
                   (SELECT min(due_at) FROM {row} WHERE pair = q.pair AND ready_at IS NOT NULL)
        """
        asked = f"FROM (SELECT %s::text AS pair, coalesce(%s, {_NOW}) AS now) q"
        self.busy = f"{busy} {asked}"
        # Every row is counted for it.
        self.counts = f"{busy}, (SELECT count(*) FROM {row} WHERE pair = q.pair) {asked}"
        self.due_pairs = f"""
            SELECT of.pair FROM unnest(%s::text[]) AS of(pair) WHERE EXISTS (
                SELECT 1 FROM generate_series(0, {VERIFY_PRIORITY}) AS asked(priority) CROSS JOIN LATERAL (
                    SELECT 1 FROM {row} r WHERE r.pair = of.pair AND r.priority = asked.priority
                    AND r.ready_at <= coalesce(%s, {_NOW}) LIMIT 1) AS found)
        """
        self.next_due = f"""
            SELECT min(found.ready_at) FROM unnest(%s::text[]) AS of(pair)
            CROSS JOIN generate_series(0, {VERIFY_PRIORITY}) AS priority
            CROSS JOIN LATERAL (
                SELECT r.ready_at FROM {row} r
                WHERE r.pair = of.pair AND r.priority = priority AND r.ready_at IS NOT NULL
                ORDER BY r.ready_at LIMIT 1) found
        """

    def _about_history(self, row: str, history: str) -> None:
        self.note = f"""
            INSERT INTO {history} (record, at, what, detail)
            SELECT record, %s, what, detail FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS n(record, what, detail)
        """
        # Of a record with few entries the inner query finds none, so nothing is deleted.
        self.prune_records = f"""
            DELETE FROM {history} h USING unnest(%s::bigint[]) AS asked(record)
            CROSS JOIN LATERAL (
                SELECT number FROM {history} WHERE record = asked.record
                ORDER BY number DESC LIMIT 1 OFFSET {ENTRIES_KEPT}) last
            WHERE h.record = asked.record AND h.number <= last.number
        """
        self.prune_older = f"""
            DELETE FROM {history} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {history} WHERE at < %s LIMIT {PRUNE_BATCH}))
        """
        self.history = f"""
            SELECT at, what, detail FROM {history}
            WHERE record = (SELECT id FROM {row} WHERE pair = %s AND key = %s) ORDER BY number DESC LIMIT %s
        """

    def _about_deliveries(self, delivery: str) -> None:
        self.first = f"""
            INSERT INTO {delivery} SELECT delivery, %s FROM unnest(%s::text[]) AS d(delivery)
            ON CONFLICT (delivery) DO NOTHING RETURNING delivery
        """
        self.forget = f"DELETE FROM {delivery} WHERE at <= %s"


@lru_cache(maxsize=1_024)
def insert_of(row: str, changed: tuple[bool, ...]) -> str:
    """The statement that inserts rows which differ from `ABSENT` in these columns; arrays of ids come last.

    It answers one line for each row that is new indeed.
    """
    names = [*(name for name, _ in _chosen(changed)), "id"]
    arrays = ", ".join([*(f"%s::{kind}[]" for _, kind in _chosen(changed)), "%s::bigint[]"])
    return (
        f"INSERT INTO {row} ({', '.join(names)}) SELECT * FROM unnest({arrays}) ON CONFLICT (pair, key) DO NOTHING "
        "RETURNING true"
    )


@lru_cache(maxsize=1_024)
def update_of(row: str, changed: tuple[bool, ...]) -> str:
    """The statement that updates these columns; arrays of pairs and keys come last.

    The pair comes with each key: of one pair for all, a planner without fresh statistics believes that it has few
    rows, and reads them all for each key.
    """
    chosen = _chosen(changed)
    arrays = ", ".join([*(f"%s::{kind}[]" for _, kind in chosen), "%s::text[]", "%s::text[]"])
    names = ", ".join([*(name for name, _ in chosen), "of_pair", "of_key"])
    sets = ", ".join(f"{name} = v.{name}" for name, _ in chosen)
    found = f"unnest({arrays}) AS v({names})"
    return f"UPDATE {row} AS r SET {sets} FROM {found} WHERE r.pair = v.of_pair AND r.key = v.of_key"


@lru_cache(maxsize=1_024)
def arrays_of(changed: tuple[bool, ...]) -> tuple[Callable[[Sequence[Any]], str], ...]:
    """How the values of each of these columns become an array."""
    return tuple(_ARRAYS[kind] for _, kind in _chosen(changed))


def texts(values: Sequence[str | None]) -> str:
    """A text[] as PostgreSQL reads it. NUL, which it can't hold, becomes U+FFFD."""
    if values and None not in values:
        joined = "\0".join(values)  # type: ignore[arg-type]
        if joined.count("\0") == len(values) - 1:  # all of them at once, which is several times faster
            return '{"' + _escaped(joined).replace("\0", '","') + '"}'
    quoted = ["NULL" if value is None else f'"{_escaped(value)}"' for value in values]
    return "{" + ",".join(quoted).replace("\0", "\ufffd") + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def numbers(values: Sequence[int | None]) -> str:
    """A bigint[] as PostgreSQL reads it."""
    if None not in values:
        return "{" + ",".join(map(int.__repr__, values)) + "}"
    return "{" + ",".join(["NULL" if value is None else int.__repr__(value) for value in values]) + "}"


def flags(values: Sequence[bool | None]) -> str:
    """A boolean[] as PostgreSQL reads it."""
    return "{" + ",".join(["t" if value else "f" for value in values]) + "}"


_ARRAYS: Final[dict[str, Callable[[Sequence[Any]], str]]] = {"text": texts, "bigint": numbers, "boolean": flags}


def _chosen(changed: tuple[bool, ...]) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind, differs in zip(COLUMNS, TYPES, changed, strict=True) if differs]
