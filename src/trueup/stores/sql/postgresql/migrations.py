"""The tables of a state store on PostgreSQL, as numbered steps, and how a store is brought up to them.

A step that was released is never edited: add another. Steps only add, so that programs that are already
running survive the upgrade of the store they use.
"""

from __future__ import annotations

import time
from typing import Final

from trueup.model.evidence import GENESIS
from trueup.stores.sql import alerts, anchors, tallies, trends
from trueup.stores.sql.postgresql.address import Address
from trueup.stores.sql.postgresql.database import Connection
from trueup.stores.sql.steps import Step, check_needs, needs

# Any number that no other program uses for an advisory lock: "trueup" in ASCII.
_LOCK: Final = 0x747275657570
# A step may wait for readers of a table, but must not make those who come after it wait long behind it.
_LOCK_TIMEOUT: Final = "10s"

# Run with the store's schema as search path. Keys compare by code point (COLLATE "C"), as in Python.
STEPS: Final[tuple[Step, ...]] = (
    Step(
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
    Step(
        """
        CREATE TABLE trueup_worker (
            name text COLLATE "C" PRIMARY KEY,
            host text NOT NULL,
            pid bigint NOT NULL,
            threads bigint NOT NULL,
            pairs text NOT NULL,
            stays bigint NOT NULL,
            ended bigint NOT NULL,
            started_us bigint NOT NULL,
            beat_us bigint NOT NULL
        )
        """,
    ),
    Step(
        """
        CREATE TABLE trueup_slot (
            pair text COLLATE "C" PRIMARY KEY,
            run bigint NOT NULL DEFAULT 0,
            owner text NOT NULL DEFAULT '',
            fence bigint NOT NULL DEFAULT 0,
            lease_until bigint NOT NULL DEFAULT 0,
            refusals bigint NOT NULL DEFAULT 0
        )
        """,
        """
        CREATE TABLE trueup_piece (
            run bigint NOT NULL,
            number bigint NOT NULL,
            low text,
            high text,
            state text NOT NULL,
            counts text NOT NULL,
            owner text NOT NULL,
            fence bigint NOT NULL,
            lease_until bigint NOT NULL,
            PRIMARY KEY (run, number)
        )
        """,
        # The first open piece is found without passing over all that are done.
        "CREATE INDEX trueup_piece_open ON trueup_piece (run, number) WHERE state = 'open'",
        """
        CREATE TABLE trueup_suspect (
            run bigint NOT NULL,
            key text COLLATE "C" NOT NULL,
            PRIMARY KEY (run, key)
        )
        """,
        """
        CREATE TABLE trueup_item (
            run bigint NOT NULL,
            key text COLLATE "C" NOT NULL,
            state text NOT NULL,
            drift text NOT NULL,
            verdict text NOT NULL,
            removes bigint NOT NULL,
            action text NOT NULL,
            version bigint,
            authority_digest text,
            replica_digest text,
            revision bigint NOT NULL,
            authority text,
            replica text,
            fields text NOT NULL,
            PRIMARY KEY (run, key)
        )
        """,
        "CREATE INDEX trueup_item_state ON trueup_item (run, state, key)",
        "ALTER TABLE trueup_run ADD COLUMN done text NOT NULL DEFAULT '[]'",
        "ALTER TABLE trueup_run ADD COLUMN memo text NOT NULL DEFAULT '{}'",
        "ALTER TABLE trueup_run ADD COLUMN forgotten bigint NOT NULL DEFAULT 0",
        "CREATE INDEX trueup_run_kept ON trueup_run (ended_us) WHERE forgotten = 0",
        "ALTER TABLE trueup_schema ADD COLUMN needs bigint NOT NULL DEFAULT 0",
    ),
    Step(
        "ALTER TABLE trueup_case ADD COLUMN authority_digest text",
        "ALTER TABLE trueup_case ADD COLUMN replica_digest text",
        "ALTER TABLE trueup_case ADD COLUMN authority_version bigint",
        "ALTER TABLE trueup_case ADD COLUMN changed_us bigint",
        "ALTER TABLE trueup_case ADD COLUMN agreed_us bigint",
        "ALTER TABLE trueup_case ADD COLUMN revision bigint NOT NULL DEFAULT 0",
        "ALTER TABLE trueup_case ADD COLUMN assignee text",
        "ALTER TABLE trueup_case ADD COLUMN due_us bigint",
        # Closed cases stay for ever; the open ones are found without passing over them.
        "CREATE INDEX trueup_case_waits ON trueup_case (pair, opened_us, number) WHERE closed_us IS NULL",
        "CREATE INDEX trueup_case_key ON trueup_case (pair, key, opened_us, number)",
        """
        CREATE TABLE trueup_comment (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            about bigint NOT NULL,
            person text NOT NULL,
            text text NOT NULL,
            at_us bigint NOT NULL
        )
        """,
        "CREATE INDEX trueup_comment_about ON trueup_comment (about, number)",
        """
        CREATE TABLE trueup_decision (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id text COLLATE "C" NOT NULL UNIQUE,
            about bigint NOT NULL,
            choice text NOT NULL,
            person text NOT NULL,
            reason text NOT NULL,
            shown text NOT NULL,
            edited text,
            until_us bigint,
            state text NOT NULL,
            note text NOT NULL,
            at_us bigint NOT NULL,
            lease_until bigint NOT NULL
        )
        """,
        "CREATE INDEX trueup_decision_about ON trueup_decision (about, number)",
        """
        CREATE TABLE trueup_acceptance (
            pair text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            authority_digest text,
            replica_digest text,
            fields text NOT NULL,
            person text NOT NULL,
            reason text NOT NULL,
            until_us bigint NOT NULL,
            at_us bigint NOT NULL,
            about bigint NOT NULL,
            PRIMARY KEY (pair, key)
        )
        """,
    ),
    Step(
        """
        CREATE TABLE trueup_schedule (
            pair text COLLATE "C" NOT NULL,
            what text COLLATE "C" NOT NULL,
            rule text NOT NULL,
            due_us bigint NOT NULL,
            ready_us bigint NOT NULL,
            owner text NOT NULL,
            fence bigint NOT NULL,
            started_us bigint,
            ended_us bigint,
            missed bigint NOT NULL,
            refused bigint NOT NULL,
            failures bigint NOT NULL,
            paused_by text,
            reason text NOT NULL,
            PRIMARY KEY (pair, what)
        )
        """,
    ),
    Step(
        "ALTER TABLE trueup_piece ADD COLUMN from_us bigint",
        "ALTER TABLE trueup_piece ADD COLUMN to_us bigint",
        """
        CREATE TABLE trueup_seal (
            pair text COLLATE "C" NOT NULL,
            from_us bigint NOT NULL,
            to_us bigint NOT NULL,
            authority_count bigint NOT NULL,
            authority_sum text NOT NULL,
            replica_count bigint NOT NULL,
            replica_sum text NOT NULL,
            asked text NOT NULL,
            run bigint NOT NULL,
            sealed_us bigint NOT NULL,
            checked_us bigint NOT NULL,
            PRIMARY KEY (pair, from_us, to_us)
        )
        """,
    ),
    Step(
        """
        CREATE TABLE trueup_evidence (
            number bigint PRIMARY KEY,
            kind text NOT NULL,
            pair text COLLATE "C" NOT NULL,
            about text NOT NULL,
            at_us bigint NOT NULL,
            body text NOT NULL,
            previous text NOT NULL,
            digest text NOT NULL,
            UNIQUE (kind, about)
        )
        """,
        "CREATE INDEX trueup_evidence_pair ON trueup_evidence (pair, number)",
        """
        CREATE TABLE trueup_chain (
            name text PRIMARY KEY,
            number bigint NOT NULL,
            digest text NOT NULL,
            runs_before bigint NOT NULL DEFAULT 0,
            decisions_before bigint NOT NULL DEFAULT 0
        )
        """,
        # What ended before has no entry, and is not missed.
        f"""
        INSERT INTO trueup_chain SELECT 'evidence', 0, '{GENESIS}',
            (SELECT coalesce(max(number), 0) FROM trueup_run WHERE ended <> 'open'),
            (SELECT coalesce(max(number), 0) FROM trueup_decision)
        """,
    ),
    alerts.STEP,
    anchors.STEP,
    trends.STEP,
    tallies.STEP,
)


def migrate(connection: Connection, address: Address) -> None:
    """Brings the store up to `STEPS`; programs that open it together do it one after the other.

    Raises StateError where a newer program has been here and left what this one can't use, and psycopg.Error.
    """
    if _steps_done(connection, address) >= len(STEPS):
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
    for number, step in enumerate(STEPS[done:], done + 1):
        for statement in step.statements:
            connection.execute(statement.encode())
        connection.execute("INSERT INTO trueup_schema (step, at) VALUES (%s, %s)", (number, time.time_ns() // 1_000))
        if needed := needs(number, step):
            connection.execute("UPDATE trueup_schema SET needs = %s WHERE step = %s", (needed, number))
    connection.commit()


def _steps_done(connection: Connection, address: Address) -> int:
    known = connection.execute("SELECT to_regclass(%s)", (f"{address.quoted_schema}.trueup_schema",)).fetchone()
    if known is None or known[0] is None:
        return 0
    found = connection.execute("SELECT coalesce(max(step), 0) FROM trueup_schema").fetchone()
    done = int(found[0]) if found else 0
    if done > len(STEPS):
        said = connection.execute("SELECT max(needs) FROM trueup_schema").fetchone()
        check_needs(address.label, int(said[0]) if said else 0, done, STEPS)
    return done
