"""The tables of a state store on PostgreSQL, as numbered steps, and how a store is brought up to them.

A step that was released is never edited: add another. Steps only add, so that programs that are already
running survive the upgrade of the store they use.
"""

from __future__ import annotations

import time
from typing import Final

from trueup.errors import StateError
from trueup.stores.sql.postgresql.address import Address
from trueup.stores.sql.postgresql.database import Connection

# Any number that no other program uses for an advisory lock: "trueup" in ASCII.
_LOCK: Final = 0x747275657570
# A step may wait for readers of a table, but must not make those who come after it wait long behind it.
_LOCK_TIMEOUT: Final = "10s"

# Run with the store's schema as search path. Keys compare by code point (COLLATE "C"), as in Python.
STEPS: Final[tuple[tuple[str, ...], ...]] = (
    (
        # Numbers of records are given out in blocks (see `Numbers`) and never searched for.
        "CREATE SEQUENCE trueup_record AS bigint",
        """
        CREATE TABLE trueup_row (
            id bigint NOT NULL,
            pair text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            state text NOT NULL DEFAULT 'idle',
            wish bigint NOT NULL DEFAULT 0,
            wish_action text,
            wish_version bigint,
            wish_digest text,
            wish_payload text,
            wish_origin bigint NOT NULL DEFAULT 0,
            priority bigint NOT NULL DEFAULT 0,
            queued_at bigint NOT NULL DEFAULT 0,
            due_at bigint NOT NULL DEFAULT 0,
            refetch boolean NOT NULL DEFAULT false,
            verify boolean NOT NULL DEFAULT false,
            unsynced boolean NOT NULL DEFAULT false,
            judged_replica text,
            done_action text,
            done_version bigint,
            done_digest text,
            done_replica text,
            done_at bigint,
            verified_until bigint NOT NULL DEFAULT 0,
            high bigint,
            unordered boolean NOT NULL DEFAULT false,
            attempted text,
            evicted bigint NOT NULL DEFAULT 0,
            lease_owner text,
            lease_until bigint NOT NULL DEFAULT 0,
            fence bigint NOT NULL DEFAULT 0,
            revision bigint NOT NULL DEFAULT 0,
            touched_at bigint NOT NULL DEFAULT 0,
            tries bigint NOT NULL DEFAULT 0,
            last_error text,
            park_reason text,
            rejected boolean NOT NULL DEFAULT false,
            waits_for text,
            lagging text,
            repairs bigint NOT NULL DEFAULT 0,
            ready_at bigint,
            PRIMARY KEY (pair, key)
        ) WITH (autovacuum_vacuum_scale_factor = 0.05)
        """,
        # ready_at is null unless the row is pending, so this index holds the queue and nothing else. It finds
        # expired leases too, because ready_at is the later of the due time and the end of the lease.
        """
        CREATE INDEX trueup_row_queue ON trueup_row (pair, priority, ready_at, queued_at, key)
        WHERE ready_at IS NOT NULL
        """,
        "CREATE INDEX trueup_row_parked ON trueup_row (pair, key) WHERE state = 'parked'",
        "CREATE INDEX trueup_row_waits ON trueup_row (waits_for) WHERE waits_for IS NOT NULL",
        "CREATE TABLE trueup_pair (pair text PRIMARY KEY, settled boolean NOT NULL DEFAULT false)",
        """
        CREATE TABLE trueup_history (
            number bigint GENERATED ALWAYS AS IDENTITY,
            record bigint NOT NULL,
            at bigint NOT NULL,
            what text NOT NULL,
            detail text NOT NULL
        )
        """,
        "CREATE INDEX trueup_history_record ON trueup_history (record, number)",
        "CREATE INDEX trueup_history_at ON trueup_history USING brin (at) WITH (autosummarize = on)",
        """
        CREATE TABLE trueup_run (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            pair text NOT NULL,
            what text NOT NULL,
            started_us bigint NOT NULL,
            cutoff_us bigint,
            ended_us bigint,
            ended text NOT NULL,
            error text,
            counts text NOT NULL
        )
        """,
        "CREATE INDEX trueup_run_pair ON trueup_run (pair, number)",
        "CREATE TABLE trueup_cursor (name text PRIMARY KEY, value bigint NOT NULL)",
        """
        CREATE TABLE trueup_case (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            pair text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            drift text NOT NULL,
            opened_us bigint NOT NULL,
            authority text,
            replica text,
            fields text NOT NULL,
            ancestor text,
            run bigint NOT NULL,
            detail text NOT NULL,
            closed_us bigint,
            closed text,
            extra text NOT NULL
        )
        """,
        "CREATE INDEX trueup_case_pair ON trueup_case (pair, opened_us, number)",
        "CREATE UNIQUE INDEX trueup_case_open ON trueup_case (pair, key) WHERE closed_us IS NULL",
        "CREATE TABLE trueup_system (name text PRIMARY KEY, health text NOT NULL)",
        'CREATE TABLE trueup_delivery (delivery text COLLATE "C" PRIMARY KEY, at bigint NOT NULL)',
        "CREATE INDEX trueup_delivery_at ON trueup_delivery (at)",
        """
        CREATE TABLE trueup_letter (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            source text NOT NULL,
            received_us bigint NOT NULL,
            status bigint NOT NULL,
            reason text NOT NULL,
            size bigint NOT NULL,
            kept bigint NOT NULL,
            headers text NOT NULL,
            delivery text,
            body bytea NOT NULL
        )
        """,
        "CREATE INDEX trueup_letter_source ON trueup_letter (source, number)",
    ),
)


def migrate(connection: Connection, address: Address) -> None:
    """Brings the store up to `STEPS`; programs that open it together do it one after the other.

    Raises StateError where a newer program has been here, and psycopg.Error.
    """
    if _steps_done(connection, address) == len(STEPS):
        connection.rollback()
        return
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_TIMEOUT,))
    # Not IF NOT EXISTS: that asks for the right to create schemas, even where there is nothing to create.
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,)).fetchone()
    if found is None:
        connection.execute(f"CREATE SCHEMA {address.quoted_schema}".encode())
    done = _steps_done(connection, address)
    if not done:
        connection.execute("CREATE TABLE IF NOT EXISTS trueup_schema (step bigint PRIMARY KEY, at bigint)")
    for step in range(done, len(STEPS)):
        for statement in STEPS[step]:
            connection.execute(statement.encode())
        connection.execute("INSERT INTO trueup_schema VALUES (%s, %s)", (step + 1, time.time_ns() // 1_000))
    connection.commit()


def _steps_done(connection: Connection, address: Address) -> int:
    known = connection.execute("SELECT to_regclass(%s)", (f"{address.quoted_schema}.trueup_schema",)).fetchone()
    if known is None or known[0] is None:
        return 0
    found = connection.execute("SELECT coalesce(max(step), 0) FROM trueup_schema").fetchone()
    done = int(found[0]) if found else 0
    if done > len(STEPS):
        raise StateError(
            f"{address.label}: the state store was written by a newer trueup "
            f"(step {done}; this program knows {len(STEPS)}).",
            hint="Upgrade trueup here too, or name another state store.",
        )
    return done
